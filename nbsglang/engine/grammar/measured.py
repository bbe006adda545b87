"""Strings of a pattern that have at most so many characters, as the states of the pattern with a count.

A lookahead for the length would say the same, with as many states and a set of threads in each.

Not here: which tokens are too long (`too_long.py`), strings without a pattern (`counted.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from nbsglang.engine.grammar.limits import NoTextError
from nbsglang.engine.grammar.paired import Moves, Paired
from nbsglang.engine.grammar.rules import Piece

_PLACES = 6  # in a character: before it, after its backslash, and after each sign of \u00XX but the last


class MeasuredStrings(Paired):
    """A `rules.Piece` of the texts of an automaton of strings in quotes that have up to `most` characters.

    Each character has one spelling (`schema_spelling.spelled`). The number of a state is that of the characters so
    far, one that has begun included, times `_PLACES`, and the place in the last one. From every state a closing quote
    can be reached in time. Raises NoTextError where no string is short enough. For one thread at a time.
    """

    def __init__(self, inner: Piece, most: int) -> None:
        super().__init__(inner, inner.class_runs, inner.n_classes)
        self.most = most
        starts, classes = inner.class_runs
        self._backslash, self._u = classes[np.searchsorted(starts, [ord("\\"), ord("u")], "right") - 1].tolist()
        self._fewest: dict[int, int] = {}
        ((opened, _),) = inner.moves(inner.start)
        if self._to_come(opened, 0) > most:
            raise NoTextError(f"no string of the pattern has {most} characters or less")
        self.start = self._state(inner.start, 0)

    def n_chars(self, state: int) -> int:
        """The characters so far, one that has begun included."""
        return self.pair(state)[1] // _PLACES

    def accepts(self, state: int) -> bool:
        """See `rules.Piece`."""
        return self.inner.accepts(self.pair(state)[0])

    def places(self, state: int) -> Sequence[int]:
        """See `rules.Piece`."""
        at, number = self.pair(state)
        if at == self.inner.start:
            return [state]
        n_chars, place = divmod(number, _PLACES)
        alone = [one for one in self.inner.places(at) if n_chars + self._to_come(one, place) <= self.most]
        return [self._state(one, number) for one in alone]

    def _made(self, at: int, number: int) -> Moves:
        if at == self.inner.start:
            return [(self._state(target, 0), classes) for target, classes in self.inner.moves(at)]
        n_chars, place = divmod(number, _PLACES)
        found: list[tuple[int, Sequence[int]]] = []
        for target, classes in self.inner.moves(at):
            if self.inner.accepts(target):
                found.append((self._state(target, 0), classes))
                continue
            n_then, then = n_chars + (place == 0), self._next(place, classes)
            if n_then + self._to_come(target, then) <= self.most:
                found.append((self._state(target, _PLACES * n_then + then), classes))
        return found

    def _next(self, place: int, classes: Sequence[int]) -> int:
        """The place in a character after a sign of these classes, which lead to one state and so to one place."""
        if place == 0:
            return 1 if self._backslash in classes else 0
        if place == 1:
            return 2 if self._u in classes else 0
        return (place + 1) % _PLACES

    def _to_come(self, at: int, place: int) -> int:
        """The fewest characters that bring a state to the closing quote, those that have begun left out."""
        found = self._fewest.get(at)
        if found is None:
            found = self._fewest[at] = self._searched(at, place)
        return found

    def _searched(self, at: int, place: int) -> int:
        """Breadth first, where only the first sign of a character costs one."""
        todo = deque([(0, at, place)])
        seen = set()
        while todo:
            n_chars, at, place = todo.popleft()
            if at in seen:
                continue
            seen.add(at)
            for target, classes in self.inner.moves(at):
                if self.inner.accepts(target):
                    return n_chars
                then = self._next(place, classes)
                if place == 0:
                    todo.append((n_chars + 1, target, then))
                else:
                    todo.appendleft((n_chars, target, then))
        raise NoTextError("from a state of a pattern its end cannot be reached")
