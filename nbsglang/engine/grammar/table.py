"""The rows of an automaton over classes of code points, for gathers and for single steps.

`Automaton` says what an automaton must offer; it grows while it is used, and so does the table.

Not here: how an automaton is made, what its classes hold (`partition.py`), tokens (`walk.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.partition import FEW, Classes, runs_of
from nbsglang.engine.grammar.rules import Piece
from nbsglang.engine.grammar.trie import Indices

DEAD = -1


class Automaton(Protocol):
    """A deterministic automaton over classes of code points; from each of its states a full match can be reached.

    States are small numbers from 0 on, made when they are first met.
    """

    @property
    def n_classes(self) -> int:
        """Classes are numbered from 0 on."""
        ...

    @property
    def class_of(self) -> npt.NDArray[np.uint16]:
        """The class of each code point. [0x110000]"""
        ...

    @property
    def start(self) -> int:
        """The state of the empty text."""
        ...

    def row(self, state: int) -> npt.NDArray[np.int32]:
        """The next state for each class, -1 where no match can follow. [n_classes]"""
        ...

    def accepts(self, state: int) -> bool:
        """The text so far is a full match."""
        ...

    def renewed(self) -> Automaton:
        """The same automaton, without the states that were met if there is a limit to them. Safe from any thread."""
        ...

    def key(self, state: int) -> Hashable:
        """What a state is, as a value that renewed automata know too."""
        ...

    def state_of(self, key: Hashable) -> int:
        """The state with this key. Raises OutgrownError when there would be too many."""
        ...


@runtime_checkable
class KnowsRuns(Protocol):
    """An `Automaton` that has its classes as runs of code points, so that no table of all of them need be made."""

    @property
    def class_runs(self) -> tuple[Indices, Indices]:
        """The first code point of each run, ascending from 0 on, and the class of each."""
        ...


@runtime_checkable
class KnowsMoves(Protocol):
    """An `Automaton` that tells what can follow a state without a row, which costs more where that is little."""

    def moves(self, state: int) -> Sequence[tuple[int, Sequence[int]]]:
        """The next states with the classes that lead to each, a class once."""
        ...


@runtime_checkable
class KnowsSteps(Protocol):
    """An `Automaton` that tells one next state without all others."""

    def step(self, state: int, cls: int) -> int:
        """The next state for a class, -1 where no match can follow."""
        ...


class Table:
    """The rows of an automaton's states, as one array for many steps at once and as lists for single ones.

    Any thread may use it. The automaton is asked under `lock`, which tables of one automaton share; what was met before
    costs no lock.
    """

    def __init__(self, automaton: Automaton | Piece, lock: threading.RLock | None = None) -> None:
        self.n_classes = automaton.n_classes
        self.start = automaton.start
        self.lock = threading.RLock() if lock is None else lock
        runs = automaton.class_runs if isinstance(automaton, KnowsRuns) else runs_of(automaton.class_of)
        self.classes = Classes(*runs, self.n_classes)
        self._automaton = automaton
        self._made = automaton.moves if isinstance(automaton, KnowsMoves) else self._moves_by_row
        self._moves: dict[int, Sequence[tuple[int, Sequence[int]]]] = {}
        self._step = automaton.step if isinstance(automaton, KnowsSteps) else None
        self._steps: dict[tuple[int, int], int] = {}
        self._flat = np.full(16 * self.n_classes, DEAD, np.int32)  # rows one after the other
        self._is_filled = np.zeros(16, bool)
        self._rows: dict[int, memoryview[int]] = {}
        self._accepts: dict[int, bool] = {}
        self._few: dict[int, list[tuple[int, int]] | None] = {}

    def key(self, state: int) -> Hashable:
        """See `Automaton.key`."""
        with self.lock:
            return self._automaton.key(state)

    def state_of(self, key: Hashable) -> int:
        """See `Automaton.state_of`."""
        with self.lock:
            return self._automaton.state_of(key)

    def accepts(self, state: int) -> bool:
        """The text so far is a full match."""
        found = self._accepts.get(state)
        if found is None:
            with self.lock:
                found = self._accepts[state] = bool(self._automaton.accepts(state))
        return found

    def after(self, state: int) -> memoryview[int]:
        """The next state for each class, in the automaton's own row; a view, for it gives plain ints."""
        found = self._rows.get(state)
        if found is None:
            with self.lock:
                row: Any = self._automaton.row(state)
                found = self._rows[state] = memoryview(row)
        return found

    def moves(self, state: int) -> Sequence[tuple[int, Sequence[int]]]:
        """The next states with the classes that lead to each, a class once."""
        found = self._moves.get(state)
        if found is None:
            with self.lock:
                found = self._moves[state] = self._made(state)
        return found

    def goes_on(self, state: int) -> bool:
        """Whether a character can follow."""
        few = self.few(state)
        return few is None or len(few) > 0

    def met(self) -> npt.NDArray[np.bool_]:
        """The classes that can follow one of the states met so far. [n_classes]"""
        found = np.zeros(self.n_classes, bool)
        for row in list(self._rows.values()):
            found |= np.asarray(row) >= 0
        return found

    def read(self, state: int, text: str) -> int:
        """The state after a text, `DEAD` if it leads nowhere."""
        class_of = self.classes.of
        for char in text:
            point = ord(char)
            if self._step is not None:
                state = self._stepped(state, class_of(point))
            elif (few := self.few(state)) is None:
                state = self.after(state)[class_of(point)]
            else:
                state = next((after for wanted, after in few if wanted == point), DEAD)
            if state < 0:
                return DEAD
        return state

    def _stepped(self, state: int, cls: int) -> int:
        found = self._steps.get((state, cls))
        if found is None:
            assert self._step is not None, "an automaton that knows steps"
            with self.lock:
                found = self._steps[state, cls] = self._step(state, cls)
        return found

    def gather(self, states: Indices, classes: Indices) -> Indices:
        """The next states of many (state, class) pairs."""
        with self.lock:
            self._fill(states)
            return self._flat.take(states * self.n_classes + classes).astype(np.intp)

    def few(self, state: int) -> list[tuple[int, int]] | None:
        """The characters that can follow, with the next states; None where there are more than a few."""
        if state not in self._few:
            self._few[state] = self._found_few(state)
        return self._few[state]

    def _found_few(self, state: int) -> list[tuple[int, int]] | None:
        moves = self.moves(state)
        if sum(len(classes) for _, classes in moves) > FEW:
            return None
        small, sizes = self.classes.small, self.classes.sizes
        live = sorted((cls, after) for after, classes in moves for cls in classes)
        if sum(sizes[cls] for cls, _ in live) > FEW:
            return None
        return [(point, after) for cls, after in live for point in small.get(cls, ())]

    def _moves_by_row(self, state: int) -> Sequence[tuple[int, Sequence[int]]]:
        found: dict[int, list[int]] = {}
        for cls, after in enumerate(self.after(state)):
            if after >= 0:
                found.setdefault(after, []).append(cls)
        return [*found.items()]

    def _fill(self, states: Indices) -> None:
        """Have the rows of these states in the array."""
        if not len(states):
            return
        last = int(states.max())
        if last >= len(self._is_filled):
            n_more = max(last + 1, 2 * len(self._is_filled)) - len(self._is_filled)
            self._flat = np.concatenate([self._flat, np.full(n_more * self.n_classes, DEAD, np.int32)])
            self._is_filled = np.concatenate([self._is_filled, np.zeros(n_more, bool)])
        filled = self._is_filled.take(states)
        if filled.all():
            return
        for state in set(states[~filled].tolist()):
            self._flat[state * self.n_classes : (state + 1) * self.n_classes] = self.after(state)
            self._is_filled[state] = True
