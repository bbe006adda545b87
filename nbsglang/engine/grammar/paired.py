"""Automata whose states are those of another one, each with a number beside it.

Not here: what the number is, and how it changes (`counted.py`, `others.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.rules import Indices, Piece

Moves: TypeAlias = Sequence[tuple[int, Sequence[int]]]


class Paired(ABC):
    """A `rules.Piece` made of `inner`. Who makes one sets `start`. For one thread at a time."""

    start: int

    def __init__(self, inner: Piece, class_runs: tuple[Indices, Indices], n_classes: int) -> None:
        self.inner = inner
        self.class_runs, self.n_classes = class_runs, n_classes
        self._ids: dict[tuple[int, int], int] = {}
        self._states: list[tuple[int, int]] = []
        self._moves: dict[int, Moves] = {}

    @abstractmethod
    def accepts(self, state: int) -> bool:
        """See `rules.Piece`."""

    @abstractmethod
    def _made(self, at: int, number: int) -> Moves:
        """What follows a state of the other automaton with this number."""

    def pair(self, state: int) -> tuple[int, int]:
        """The other automaton's own state, and the number."""
        return self._states[state]

    def moves(self, state: int) -> Moves:
        """See `rules.Piece`."""
        found = self._moves.get(state)
        if found is None:
            found = self._moves[state] = self._made(*self._states[state])
        return found

    def row(self, state: int) -> npt.NDArray[np.int32]:
        """See `rules.Piece`."""
        row = np.full(self.n_classes, -1, np.int32)
        for target, classes in self.moves(state):
            row[list(classes)] = target
        return row

    def key(self, state: int) -> Hashable:
        """See `rules.Piece`."""
        at, number = self._states[state]
        return self.inner.key(at), number

    def state_of(self, key: Hashable) -> int:
        """See `rules.Piece`."""
        assert isinstance(key, tuple)
        return self._state(self.inner.state_of(key[0]), key[1])

    def future(self, state: int) -> Hashable:
        """See `rules.Piece`."""
        return state

    def places(self, state: int) -> Sequence[int]:
        """See `rules.Piece`."""
        return [state]

    def _state(self, at: int, number: int) -> int:
        state = self._ids.get((at, number))
        if state is None:
            state = self._ids[at, number] = len(self._states)
            self._states.append((at, number))
        return state
