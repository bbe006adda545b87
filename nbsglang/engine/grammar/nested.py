"""An automaton of texts that have the like of themselves inside, to any depth: trees, free-form JSON.

Such a language is written in several parts, of which each may have places for others (`syntax.call`). A state is a set
of frames: where each of some parts stands, and what is gone back to when it has come to its end. As with all automata
here, states are made when they are first met, so that it does not matter that there is no end of them.

Not here: which parts a schema has (`schema_nodes.py`), the automaton of each (`asked.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.asked import Asked, common
from nbsglang.engine.grammar.limits import Limits, OutgrownError
from nbsglang.engine.grammar.productive import with_texts
from nbsglang.engine.grammar.rules import Rule
from nbsglang.engine.grammar.table import DEAD

_N_POINTS = 0x110000


class Frame(NamedTuple):
    """Where a part stands, and the number of the frames that follow its end; 0 is the end of the text."""

    rule: int
    state: int
    back: int


class _Kept:
    """What frames go back to, for all automata of the language. The same object is the same, others may be."""

    __slots__ = ("frames",)

    def __init__(self, frames: _KeptFrames) -> None:
        self.frames = frames


_KeptFrames: TypeAlias = tuple[tuple[int, Hashable, _Kept], ...]
_Moves: TypeAlias = Sequence[tuple[int, Sequence[int]]]


_END = _Kept(())


class Nested:
    """A `table.Automaton` of the first of some parts, which refer to each other by their places in the sequence.

    With `alone` it shares no automaton with others, so that there is room for as many states as the limits say. Raises
    NoTextError where the first part has no text, ConstraintError past the limits. For one thread at a time.
    """

    def __init__(self, rules: Sequence[Rule], limits: Limits | None = None, alone: bool = False) -> None:
        self._limits = limits or Limits()
        self.is_alone = alone
        inner = replace(self._limits, memory=self._limits.memory // (len(rules) + 1))
        self._given, pieces = with_texts(rules, inner, alone)
        self.class_runs, self.n_classes, classes = common(pieces)
        self.rules = [Asked(*each) for each in zip(self._given, pieces, classes, strict=True)]
        self._memory = 0
        self._backs: list[frozenset[Frame]] = [frozenset()]
        self._back_ids = {self._backs[0]: 0}
        self._kept = {0: _END}
        self._numbers = {_END: 0}
        self._closed: dict[Frame, frozenset[Frame]] = {}
        self._ids: dict[frozenset[Frame], int] = {}
        self._states: list[frozenset[Frame]] = []
        self._moves: list[_Moves | None] = []
        self._rows: dict[int, npt.NDArray[np.int32]] = {}
        self.start = self._state(self._closure([Frame(0, pieces[0].start, 0)]))

    @cached_property
    def class_of(self) -> npt.NDArray[np.uint16]:
        """The class of each code point. [0x110000]"""
        starts, classes = self.class_runs
        return np.repeat(classes.astype(np.uint16), np.diff(starts, append=_N_POINTS))

    @property
    def n_states(self) -> int:
        """How many states have been made so far."""
        return len(self._states)

    def renewed(self) -> Nested:
        """See `table.Automaton.renewed`."""
        return Nested(self._given, self._limits, alone=True)

    def row(self, state: int) -> npt.NDArray[np.int32]:
        """See `table.Automaton.row`."""
        row = self._rows.get(state)
        if row is None:
            row = np.full(self.n_classes, DEAD, np.int32)
            for target, classes in self.moves(state):
                row[list(classes)] = target
            row.flags.writeable = False
            self._spend(row.nbytes)
            self._rows[state] = row
        return row

    def moves(self, state: int) -> _Moves:
        """See `table.KnowsMoves.moves`."""
        found = self._moves[state]
        if found is None:
            found = self._moves[state] = self._made(self._states[state])
            self._spend(sum(100 + 8 * len(classes) for _, classes in found))
        return found

    def step(self, state: int, cls: int) -> int:
        """See `table.KnowsSteps.step`."""
        found = []
        for rule, at, back in self._states[state]:
            to = self.rules[rule].after(at).get(cls)
            if to is not None:
                found.append(Frame(rule, to, back))
        return self._after(frozenset(found)) if found else DEAD

    def accepts(self, state: int) -> bool:
        """See `table.Automaton.accepts`."""
        return any(back == 0 and self.rules[rule].accepts(at) for rule, at, back in self._states[state])

    def key(self, state: int) -> Hashable:
        """See `table.Automaton.key`. Keys have what they go back to in common, so that deep ones are not large."""
        frames = self._states[state]
        self._keep_backs(frames)
        return self._as_kept(frames)

    def state_of(self, key: Hashable) -> int:
        """See `table.Automaton.state_of`."""
        assert isinstance(key, tuple)
        todo = [kept for _, _, kept in key if kept not in self._numbers]
        while todo:
            deeper = [kept for _, _, kept in todo[-1].frames if kept not in self._numbers]
            if deeper:
                todo += deeper
            else:
                kept = todo.pop()
                self._numbers[kept] = self._back(self._frames(kept.frames))
        return self._state(self._frames(key))

    def _keep_backs(self, frames: Iterable[Frame]) -> None:
        """Have what the frames go back to in a form that other automata know."""
        todo = [frame.back for frame in frames if frame.back not in self._kept]
        while todo:
            inner = self._backs[todo[-1]]
            deeper = [frame.back for frame in inner if frame.back not in self._kept]
            if deeper:
                todo += deeper
            else:
                back = todo.pop()
                self._kept.setdefault(back, _Kept(self._as_kept(inner)))

    def _as_kept(self, frames: Iterable[Frame]) -> _KeptFrames:
        return tuple((rule, self.rules[rule].key(at), self._kept[back]) for rule, at, back in frames)

    def _frames(self, kept: _KeptFrames) -> frozenset[Frame]:
        return frozenset(Frame(rule, self.rules[rule].state_of(at), self._numbers[back]) for rule, at, back in kept)

    def frames(self, state: int) -> frozenset[Frame]:
        """What a state is made of: it allows what its frames allow together."""
        return self._states[state]

    def back(self, number: int) -> frozenset[Frame]:
        """The frames that are gone back to, each after its place for the part that has come to its end."""
        return self._backs[number]

    def _made(self, frames: frozenset[Frame]) -> _Moves:
        if len(frames) == 1:
            ((rule, at, back),) = frames
            steps = self.rules[rule].steps(at)
            return [(self._after(frozenset([Frame(rule, to, back)])), classes) for to, classes in steps.moves]
        by_class: dict[int, list[Frame]] = {}
        for rule, at, back in frames:
            for to, classes in self.rules[rule].steps(at).moves:
                for cls in classes:
                    by_class.setdefault(cls, []).append(Frame(rule, to, back))
        together: dict[frozenset[Frame], list[int]] = {}
        for cls, some in by_class.items():
            together.setdefault(frozenset(some), []).append(cls)
        return [(self._after(some), classes) for some, classes in together.items()]

    def _after(self, frames: frozenset[Frame]) -> int:
        """The state of some frames that have read a character."""
        if len(frames) > 1:
            return self._state(self._closure(frames))
        (frame,) = frames
        closed = self._closed.get(frame)
        if closed is None:
            closed = self._closed[frame] = self._closure(frames)
        return self._state(closed)

    def _closure(self, frames: Iterable[Frame]) -> frozenset[Frame]:
        """The frames that the next character matters to: those given, those gone back to, and those that begin."""
        found = dict.fromkeys(frames)
        todo = list(found)
        called: dict[int, set[Frame]] = {}
        kept: list[Frame] = []
        while todo:
            frame = todo.pop()
            rule = self.rules[frame.rule]
            steps, ends = rule.steps(frame.state), rule.accepts(frame.state)
            if steps.moves or (ends and frame.back == 0):
                kept.append(frame)
            nexts = list(self._backs[frame.back]) if ends else []
            for other, to in steps.calls:
                called.setdefault(other, set()).add(Frame(frame.rule, rule.behind(to), frame.back))
            if not todo and not nexts:
                nexts = [Frame(other, self.rules[other].start, self._back(some)) for other, some in called.items()]
            fresh = [one for one in nexts if one not in found]
            found.update(dict.fromkeys(fresh))
            todo += fresh
        return frozenset(kept)

    def _back(self, frames: Iterable[Frame]) -> int:
        content = frozenset(frames)
        number = self._back_ids.get(content)
        if number is None:
            self._spend(200 + 100 * len(content))
            number = self._back_ids[content] = len(self._backs)
            self._backs.append(content)
        return number

    def _state(self, frames: frozenset[Frame]) -> int:
        state = self._ids.get(frames)
        if state is None:
            if len(self._states) >= self._limits.states:
                raise OutgrownError(f"the constraint has more than {self._limits.states} states")
            self._spend(300 + 150 * len(frames))
            state = self._ids[frames] = len(self._states)
            self._states.append(frames)
            self._moves.append(None)
        return state

    def _spend(self, n_bytes: int) -> None:
        self._memory += n_bytes
        if self._memory > self._limits.memory // 2:  # the other part is that of the nodes
            raise OutgrownError(f"the states of the constraint take more than {self._limits.memory} bytes")
