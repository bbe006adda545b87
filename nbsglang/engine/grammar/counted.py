"""Strings of so many characters, as the states of any string with a count.

Not here: which of a vocabulary's tokens have how many characters (`lengths.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nbsglang.engine.grammar.paired import Moves, Paired
from nbsglang.engine.grammar.rules import Piece


class CountedStrings(Paired):
    """A `rules.Piece` of the texts of an automaton of strings that have `least` to `most` characters.

    Between its quotes the automaton must be in one state wherever a character is whole (by `Piece.future`), from which
    any character or the closing quote may follow. The number of a state is that of whole characters so far, as far as
    it matters. For one thread at a time.
    """

    def __init__(self, inner: Piece, least: int, most: int | None) -> None:
        super().__init__(inner, inner.class_runs, inner.n_classes)
        self.least, self.most = least, most
        ((opened, _),) = inner.moves(inner.start)
        self._whole = inner.future(opened)
        self._is_whole: dict[int, bool] = {}
        self.body = opened
        self.start = self._state(inner.start, 0)

    def is_whole(self, at: int) -> bool:
        """Whether a state of the automaton is one between the quotes where no character has begun."""
        found = self._is_whole.get(at)
        if found is None:
            found = self._is_whole[at] = self.inner.future(at) == self._whole
        return found

    def accepts(self, state: int) -> bool:
        """See `rules.Piece`."""
        return self.inner.accepts(self.pair(state)[0])

    def at_count(self, at: int, n_chars: int) -> int:
        """The state of one of the automaton after so many characters."""
        return self._state(at, n_chars)

    def _made(self, at: int, n_chars: int) -> Moves:
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
        return super()._state(at, min(n_chars, self.least) if self.most is None else n_chars)
