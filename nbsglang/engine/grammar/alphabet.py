"""The classes of code points that a pattern can tell apart: two code points that no part of it parts are one class.

The sets of the pattern cut the code points into runs; a run's class is which sets it lies in. All of it is numpy on the
ends of the runs, so that a set of a million characters costs as much as one of ten.

Not here: where the sets come from (`classes.py`), what is done with the classes (`automaton.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.syntax import Ranges
from nbsglang.errors import ConstraintError

N_POINTS = 0x110000
MAX_CLASSES = 1 << 16
MAX_CELLS = 20_000_000  # sets times runs, about 10 ns each
_FEW = 8
_WORD = 62  # sets that go into one integer


class Alphabet:
    """The coarsest classes of code points that all the sets are unions of.

    `classes_of[set]` are the classes of each set. What lies in no set is one class; surrogates are in it. Raises
    ConstraintError for more of either than can be told apart in bounded time.
    """

    def __init__(self, sets: Sequence[Ranges]) -> None:
        single = [index for index, ranges in enumerate(sets) if _is_single(ranges)]
        wide = [index for index, ranges in enumerate(sets) if not _is_single(ranges)]
        points = np.array([sets[index][0][0] for index in single], dtype=np.int64)
        bounds = [_bounds(sets[index]) for index in wide]
        ends = np.concatenate([[0, N_POINTS], points, points + 1, *bounds])
        self._starts = np.unique(ends)[:-1]  # of the runs; every start and end of a set is one
        if len(wide) * len(self._starts) > MAX_CELLS:
            raise ConstraintError(
                f"the constraint has {len(wide)} different classes of characters, with {len(self._starts)} bounds in "
                "all; that is too many: use fewer"
            )
        runs = [np.searchsorted(self._starts, ends) for ends in bounds]
        numbers = self._by_sets(runs)
        singles = np.searchsorted(self._starts, points)
        numbers[singles] = len(numbers) + np.arange(len(single))  # one character that is a set has no fellow
        kept, first, numbers = np.unique(numbers, return_index=True, return_inverse=True)
        rank = np.empty(len(kept), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(kept))  # classes are numbered as they come, for whoever reads them
        self._classes = rank[numbers]
        self.n_classes = len(kept)
        if self.n_classes > MAX_CLASSES:
            raise ConstraintError(
                f"the constraint tells {self.n_classes} classes of characters apart, and {MAX_CLASSES} go: "
                "name fewer characters"
            )
        of_set = dict(zip(single, self._classes[singles, None], strict=True))
        of_set |= {index: self._of_runs(ends) for index, ends in zip(wide, runs, strict=True)}
        self.classes_of = [of_set[index] for index in range(len(sets))]

    @property
    def runs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The runs of code points of one class, ascending: where each begins, and its class."""
        return self._starts, self._classes

    @cached_property
    def class_of(self) -> npt.NDArray[np.uint16]:
        """The class of each code point. [0x110000]"""
        lengths = np.diff(self._starts, append=N_POINTS)
        return np.repeat(self._classes.astype(np.uint16), lengths)

    def _by_sets(self, runs: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """A number for each run, the same for those that lie in the same sets."""
        numbers = np.zeros(len(self._starts), dtype=np.int64)
        for at in range(0, len(runs), _WORD):
            steps = np.zeros(len(self._starts) + 1, dtype=np.int64)
            for bit, ends in enumerate(runs[at : at + _WORD]):
                steps[ends[::2]] += 1 << bit
                steps[ends[1::2]] -= 1 << bit
            bits = np.cumsum(steps)[:-1]
            if at:  # at most as many numbers as runs: the product fits
                bits = np.unique(bits, return_inverse=True)[1]
                bits = numbers * (len(bits) + 1) + bits
            numbers = np.unique(bits, return_inverse=True)[1]
        return numbers

    def _of_runs(self, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The classes of a set, given as the first run of each range and the one behind it."""
        if len(ends) <= _FEW:
            return np.unique(np.concatenate([self._classes[a:b] for a, b in ends.reshape(-1, 2)]))
        steps = np.zeros(len(self._starts) + 1, dtype=np.int8)
        steps[ends[::2]] += 1
        steps[ends[1::2]] -= 1
        return np.unique(self._classes[np.cumsum(steps[:-1], dtype=np.int8).astype(bool)])


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


@lru_cache(maxsize=1024)
def _bounds(ranges: Ranges) -> npt.NDArray[np.int64]:
    """The start of each range and the point behind it, one after the other."""
    bounds = np.array(ranges, dtype=np.int64).reshape(-1, 2)
    bounds[:, 1] += 1
    return bounds.ravel()
