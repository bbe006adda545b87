"""The classes of code points that an automaton tells apart: what is in them, and in which one a character is.

Not here: how they come about (`alphabet.py`), what follows them (`table.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.trie import Indices, members
from nbsglang.engine.grammar.utf8 import completions

FEW = 4  # characters: a state that no more can follow is walked one by one


class Run(NamedTuple):
    """Neighbouring code points, both ends included."""

    first: int
    last: int


class Classes:
    """What the classes of an automaton hold, given as runs: where each starts, from 0 on, and its class."""

    def __init__(self, starts: Indices, classes: Indices, n_classes: int) -> None:
        self.n_classes = n_classes
        self._starts, self._class_of_run = _plain(starts), _plain(classes)
        # From here on without surrogates, for they are in no text.
        ends = [0xD800, 0xE000]
        starts = np.union1d(starts, ends)
        classes = classes[np.searchsorted(self._starts, starts, "right") - 1]
        firsts, lasts = starts, np.append(starts[1:], 0x110000) - 1
        is_text = (firsts < 0xD800) | (firsts >= 0xE000)
        self._firsts, self._lasts, self._classes = firsts[is_text], lasts[is_text], classes[is_text]
        sizes = np.bincount(self._classes, self._lasts - self._firsts + 1, self.n_classes)
        self.is_empty: npt.NDArray[np.bool_] = sizes == 0  # [n_classes]
        self.sizes: list[int] = sizes.astype(np.intp).tolist()  # characters of each class

    def of(self, point: int) -> int:
        """The class of a code point."""
        return self._class_of_run[bisect_right(self._starts, point) - 1]

    def of_all(self, points: Indices) -> Indices:
        """The classes of code points."""
        found: Indices = self._classes.take(np.searchsorted(self._firsts, points, "right") - 1)
        return found

    def within(self, firsts: Indices, lasts: Indices) -> npt.NDArray[np.bool_]:
        """Which classes have a character in each range of code points, both ends included. [ranges, n_classes]"""
        found = np.zeros((len(firsts), self.n_classes), bool)
        runs, counts = members(np.searchsorted(self._lasts, firsts), np.searchsorted(self._firsts, lasts, "right"))
        found[np.repeat(np.arange(len(firsts)), counts), self._classes[runs]] = True
        return found

    def begun_by(self, begun: bytes) -> list[bool]:
        """Which classes have a character whose bytes begin so, without being all of it. [n_classes]"""
        ends = completions(begun)
        if ends is None:
            return [False] * self.n_classes
        found: list[bool] = self.within(*np.array(ends).reshape(2, 1))[0].tolist()
        return found

    def meeting(self, firsts: Indices, lasts: Indices) -> npt.NDArray[np.bool_]:
        """Which classes have a character in some of these ranges, which ascend and lie apart. [n_classes]"""
        found = np.zeros(self.n_classes, bool)
        meets = np.searchsorted(firsts, self._lasts, "right") > np.searchsorted(lasts, self._firsts)
        found[self._classes[meets]] = True
        return found

    def runs(self, classes: npt.NDArray[np.bool_]) -> list[Run]:
        """The characters of some classes."""
        runs: list[Run] = []
        at = np.flatnonzero(classes[self._classes])
        for first, last in zip(self._firsts[at].tolist(), self._lasts[at].tolist(), strict=True):
            if runs and runs[-1].last + 1 == first:
                runs[-1] = Run(runs[-1].first, last)
            else:
                runs.append(Run(first, last))
        return runs

    @cached_property
    def small(self) -> dict[int, list[int]]:
        """The code points of the classes that hold few."""
        of = np.array(self.sizes)[self._classes] <= FEW
        points: dict[int, list[int]] = {}
        for cls, first, last in zip(
            self._classes[of].tolist(), self._firsts[of].tolist(), self._lasts[of].tolist(), strict=True
        ):
            points.setdefault(cls, []).extend(range(first, last + 1))
        return points


def runs_of(class_of: npt.NDArray[np.uint16]) -> tuple[Indices, Indices]:
    """Where runs of one class start, and the class of each, from the class of each code point."""
    starts = np.append(0, np.flatnonzero(class_of[1:] != class_of[:-1]) + 1)
    return starts, class_of[starts].astype(np.intp)


def _plain(values: Indices) -> list[int]:
    found: list[int] = values.tolist()
    return found
