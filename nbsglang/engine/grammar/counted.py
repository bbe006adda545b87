"""Strings of so many characters, as the states of any string with a count.

Not here: which of a vocabulary's tokens have how many characters (`lengths.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.rules import Piece

_Moves: TypeAlias = Sequence[tuple[int, Sequence[int]]]


class Count(NamedTuple):
    """A state of any string, and the number of whole characters so far, as far as it matters."""

    at: int
    n_chars: int


class CountedStrings:
    """A `rules.Piece` of the texts of an automaton of strings that have `least` to `most` characters.

    Between its quotes the automaton must be in one state wherever a character is whole (by `Piece.future`), from which
    any character or the closing quote may follow. For one thread at a time.
    """

    def __init__(self, inner: Piece, least: int, most: int | None) -> None:
        self.inner, self.least, self.most = inner, least, most
        self.class_runs, self.n_classes = inner.class_runs, inner.n_classes
        ((opened, _),) = inner.moves(inner.start)
        self._whole = inner.future(opened)
        self._is_whole: dict[int, bool] = {}
        self.body = opened
        self._ids: dict[Count, int] = {}
        self._states: list[Count] = []
        self._moves: dict[int, _Moves] = {}
        self.start = self._state(inner.start, 0)

    def count(self, state: int) -> Count:
        """What a state is."""
        return self._states[state]

    def is_whole(self, at: int) -> bool:
        """Whether a state of the automaton is one between the quotes where no character has begun."""
        found = self._is_whole.get(at)
        if found is None:
            found = self._is_whole[at] = self.inner.future(at) == self._whole
        return found

    def accepts(self, state: int) -> bool:
        """See `rules.Piece`."""
        return self.inner.accepts(self._states[state].at)

    def moves(self, state: int) -> _Moves:
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
        at, n_chars = self._states[state]
        return self.inner.key(at), n_chars

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

    def at_count(self, at: int, n_chars: int) -> int:
        """The state of one of the automaton after so many characters."""
        return self._state(at, n_chars)

    def _made(self, at: int, n_chars: int) -> _Moves:
        if at == self.inner.start:
            return [(self._state(self.body, 0), classes) for _, classes in self.inner.moves(at)]
        found: list[tuple[int, Sequence[int]]] = []
        has_room = self.most is None or n_chars < self.most
        for target, classes in self.inner.moves(at):
            if self.inner.accepts(target):
                if n_chars >= self.least:
                    found.append((self._state(target, 0), classes))
            elif has_room and self.is_whole(target):
                found.append((self._state(self.body, n_chars + 1), classes))
            elif has_room:
                found.append((self._state(target, n_chars), classes))
        together: dict[int, list[int]] = {}
        for state, classes in found:
            together.setdefault(state, []).extend(classes)
        return list(together.items())

    def _state(self, at: int, n_chars: int) -> int:
        count = Count(at, min(n_chars, self.least) if self.most is None else n_chars)
        state = self._ids.get(count)
        if state is None:
            state = self._ids[count] = len(self._states)
            self._states.append(count)
        return state
