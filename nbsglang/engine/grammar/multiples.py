"""Whole numbers by what is left of them when they are divided, beside the states of an automaton of such numbers.

Not here: which numbers a schema asks for (`schema_numbers.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nbsglang.engine.grammar.limits import NoTextError
from nbsglang.engine.grammar.paired import Moves, Paired
from nbsglang.engine.grammar.rules import Indices, Piece

_DIGITS = range(ord("0"), ord("9") + 1)


class Residues(Paired):
    """A `rules.Piece` of the numbers of an automaton that leave one of some rests when divided by `step`.

    The automaton's texts are bounded, and have digits with a sign before them. The number of a state is the rest of
    what has been read. Raises NoTextError if there is no such number. For one thread at a time.
    """

    def __init__(self, inner: Piece, step: int, rests: frozenset[int]) -> None:
        class_runs, n_classes, self._inner_class, self._digit = _classes(inner)
        super().__init__(inner, class_runs, n_classes)
        self._step, self._rests = step, rests
        self._own: list[list[int]] = [[] for _ in range(inner.n_classes)]
        for cls, inner_class in enumerate(self._inner_class):
            self._own[inner_class].append(cls)
        self._live: dict[tuple[int, int], bool] = {}
        if not self._is_live(inner.start, 0):
            raise NoTextError("no number within the bounds is such a multiple")
        self.start = self._state(inner.start, 0)

    def accepts(self, state: int) -> bool:
        """See `rules.Piece`."""
        return self._is_end(*self.pair(state))

    def _is_end(self, at: int, rest: int) -> bool:
        return rest in self._rests and self.inner.accepts(at)

    def _is_live(self, at: int, rest: int) -> bool:
        """Whether such a number can be reached: no deeper than it has digits."""
        known = self._live.get((at, rest))
        if known is None:
            known = self._is_end(at, rest) or any(self._is_live(*after) for _, *after in self._steps(at, rest))
            self._live[at, rest] = known
        return known

    def _steps(self, at: int, rest: int) -> Iterator[tuple[int, int, int]]:
        """The classes that can come next, with what they lead to."""
        for target, classes in self.inner.moves(at):
            for cls in (own for one in classes for own in self._own[one]):
                digit = self._digit.get(cls)
                yield cls, target, rest if digit is None else (10 * rest + digit) % self._step

    def _made(self, at: int, number: int) -> Moves:
        together: dict[int, list[int]] = {}
        for cls, target, rest in self._steps(at, number):
            if self._is_live(target, rest):
                together.setdefault(self._state(target, rest), []).append(cls)
        return list(together.items())


def _classes(inner: Piece) -> tuple[tuple[Indices, Indices], int, list[int], dict[int, int]]:
    """The automaton's classes with each digit in one of its own: runs, number, inner class of each, digits."""
    starts, classes = inner.class_runs
    points = np.array(_DIGITS, np.int64)
    cut = np.unique(np.concatenate([starts, points, points + 1]))
    numbers = classes[np.searchsorted(starts, cut, "right") - 1]
    at = np.searchsorted(cut, points)
    inner_class = [*range(inner.n_classes), *numbers[at].tolist()]
    numbers[at] = inner.n_classes + np.arange(len(points))
    return (cut, numbers), len(inner_class), inner_class, {inner.n_classes + digit: digit for digit in range(10)}
