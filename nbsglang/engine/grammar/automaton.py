"""A deterministic automaton over classes of code points, made state by state as it is asked.

Its language is that of a node (`syntax.py`). Only states are handed out from which a match can be reached over code
points; whether the tokens of a vocabulary can reach it is not known here.

Not here: bytes, tokens and masks; what a state is made of (`plain.py`, `guarded.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.alphabet import Alphabet
from nbsglang.engine.grammar.build import build
from nbsglang.engine.grammar.guarded import Guarded
from nbsglang.engine.grammar.limits import Limits, Meter, NoTextError, OutgrownError
from nbsglang.engine.grammar.plain import Machine, Plain, positions_of
from nbsglang.engine.grammar.program import Program
from nbsglang.engine.grammar.syntax import Node

DEAD = -1
_Moves: TypeAlias = Sequence[tuple[int, Sequence[int]]]  # states with the classes that lead to each


class Automaton:
    """The automaton of a node. States are small integers, given in the order in which they are found.

    `n_classes` and `class_of` (uint16 [0x110000]) are the classes of code points: what no part of the pattern mentions
    is one class, and lone surrogates are in it. `sets` are the sets of characters that it has; `program` has its
    positions, None if there are gates. Raises ConstraintError when no text matches and past the limits, also
    later on, from `row` and `accepts`; what is known by then stays. After OutgrownError there is no room for more
    states: `renewed` has it again. For one thread at a time.
    """

    def __init__(self, node: Node, limits: Limits | None = None) -> None:
        self._node = node
        self._limits = limits or Limits()
        self._meter = Meter(self._limits.work)
        plan = build(node, self._limits)
        self._alphabet = Alphabet(plan.sets)
        self.n_classes = self._alphabet.n_classes
        self.sets = plan.sets
        self._main = plan.main
        self.program = None if plan.main.root.gates else Program(plan.main, self._alphabet)
        self._machine: Machine = (
            Guarded(plan, self._alphabet, self._meter) if self.program is None else Plain(self.program)
        )
        self._memory = 0
        self._ids: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._moves: list[_Moves | None] = []  # with dead states still in them, as in the rows
        self._rows: list[npt.NDArray[np.int32] | None] = []
        self._kept_rows: list[npt.NDArray[np.int32] | None] = []
        self._accepts: list[bool | None] = []
        self._live: list[bool | None] = []
        self.start = self._state(self._machine.start)
        if not self._is_live(self.start):
            raise NoTextError(
                "the constraint matches no text at all: its anchors, boundaries or lookarounds contradict each other"
            )

    def renewed(self) -> Automaton:
        """See `table.Automaton.renewed`."""
        return Automaton(self._node, self._limits)

    def key(self, state: int) -> Hashable:
        """See `table.Automaton.key`."""
        return self._keys[state]

    def state_of(self, key: Hashable) -> int:
        """See `table.Automaton.state_of`."""
        self._meter.reset()
        return self._state(key)

    @property
    def n_states(self) -> int:
        """How many states have been made so far; some of them may be dead."""
        return len(self._keys)

    @property
    def class_runs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The runs of code points of one class: where each begins, and its class."""
        return self._alphabet.runs

    @property
    def class_of(self) -> npt.NDArray[np.uint16]:
        """The class of each code point; made when first asked for. [0x110000]"""
        return self._alphabet.class_of

    def row(self, state: int) -> npt.NDArray[np.int32]:
        """The state that each class leads to, -1 where no match can be reached any more. [n_classes]

        The array is the automaton's own: not to be written to.
        """
        row = self._kept_rows[state]
        if row is None:
            self._meter.reset()
            row = self._row(state)
            if not self._machine.is_certain:
                row = row.copy()
                for target in np.unique(row[row != DEAD]).tolist():
                    if not self._is_live(target):
                        row[row == target] = DEAD
            row.flags.writeable = False
            self._kept_rows[state] = row
        return row

    def moves(self, state: int) -> _Moves:
        """See `table.KnowsMoves.moves`."""
        self._meter.reset()
        found = self._found(state)
        return found if self._machine.is_certain else tuple(move for move in found if self._is_live(move[0]))

    def places(self, state: int) -> Sequence[int]:
        """States that allow together what this one does: one for each position, if it has a few and no gates."""
        self._meter.reset()
        return [self._state(key) for key in self._machine.places(self._keys[state])]

    @cached_property
    def last_classes(self) -> frozenset[int]:
        """Classes that have the last character of each text that is not empty."""
        program = self.program or Program(self._main, self._alphabet)
        return frozenset(program.last_classes())

    def future(self, state: int) -> Hashable:
        """A value that two states have in common only where the same can follow them."""
        return self._machine.advanced(self._keys[state]) if isinstance(self._machine, Plain) else state

    def advanced(self, position: int) -> tuple[int, bool]:
        """The positions that can follow one, as bits, and whether the text may end, if there is a `program`."""
        assert isinstance(self._machine, Plain), "an automaton without gates"
        return self._machine.advanced((1, position))

    def positions(self, state: int) -> Sequence[int]:
        """The positions of a state, if there is a `program`."""
        return positions_of(self._keys[state])

    def accepts(self, state: int) -> bool:
        """Whether the text so far is a match."""
        self._meter.reset()
        return self._is_match(state)

    def live(self, state: int) -> bool:
        """Whether a match can be reached; so it is with every state that `start` and `row` give."""
        self._meter.reset()
        return state != DEAD and self._is_live(state)

    def _is_match(self, state: int) -> bool:
        known = self._accepts[state]
        if known is None:
            known = self._accepts[state] = self._machine.accepts(self._keys[state])
        return known

    def _row(self, state: int) -> npt.NDArray[np.int32]:
        row = self._rows[state]
        if row is None:
            row = np.full(self.n_classes, DEAD, dtype=np.int32)
            for target, classes in self._found(state):
                row[list(classes)] = target
            self._spend(row.nbytes)
            self._rows[state] = row
        return row

    def _found(self, state: int) -> _Moves:
        found = self._moves[state]
        if found is None:
            self._meter.spend(20 + self._machine.weight(self._keys[state]) // 100)
            moves = self._machine.moves(self._keys[state])
            # tuples, for these the garbage collector need not go through
            found = self._moves[state] = tuple([(self._state(key), tuple(classes)) for key, classes in moves])
            self._spend(sum(100 + 8 * len(classes) for _, classes in found))
        return found

    def _state(self, key: Hashable) -> int:
        state = self._ids.get(key)
        if state is None:
            if len(self._keys) >= self._limits.states:
                raise OutgrownError(
                    f"the constraint has more than {self._limits.states} states: make its repeats shorter, or the "
                    "parts before them easier to tell apart"
                )
            self._spend(self._machine.weight(key))
            state = self._ids[key] = len(self._keys)
            self._keys.append(key)
            for values in (self._moves, self._rows, self._kept_rows, self._accepts, self._live):
                values.append(None)
        return state

    def _spend(self, n_bytes: int) -> None:
        self._memory += n_bytes
        if self._memory > self._limits.memory:
            raise OutgrownError(
                f"the states of the constraint take more than {self._limits.memory} bytes: make its repeats shorter"
            )

    def _is_live(self, state: int) -> bool:
        """Follow the states depth first to one that accepts, or until there are no more."""
        known = self._known_live(state)
        if known is not None:
            return known
        seen = {state}
        path = [(state, self._targets(state))]
        while path:
            targets = path[-1][1]
            if not targets:
                path.pop()
                continue
            target = targets.pop()
            known = self._known_live(target)
            if known:
                for on_path, _ in path:
                    self._live[on_path] = True
                return True
            if known is None and target not in seen:
                seen.add(target)
                path.append((target, self._targets(target)))
        for dead in seen:
            self._live[dead] = False
        return False

    def _known_live(self, state: int) -> bool | None:
        """What is known without a search: None if nothing is."""
        if self._live[state] is None and (self._machine.is_live(self._keys[state]) or self._is_match(state)):
            self._live[state] = True
        return self._live[state]

    def _targets(self, state: int) -> list[int]:
        """The states that come next, those first that are made of most: they are asked last."""
        row = self._row(state)
        targets = [int(target) for target in np.unique(row[row != DEAD])]
        return sorted(targets, key=lambda target: -self._machine.weight(self._keys[target]))
