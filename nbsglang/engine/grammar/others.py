"""The texts of an automaton but for a few: names of properties that are not listed.

Not here: which names are listed (`schema_keys.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nbsglang.engine.grammar.paired import Moves, Paired
from nbsglang.engine.grammar.rules import Indices, Piece

_OFF = -1  # no longer a beginning of one of the texts


class Without(Paired):
    """A `rules.Piece` of the texts of an automaton but for `texts`; to begin like one of these, and to go on, is free.

    So there must be a text of the automaton with every beginning that is not the whole of one of them. The number of a
    state is the beginning of the texts that has been read. For one thread at a time.
    """

    def __init__(self, inner: Piece, texts: Sequence[str]) -> None:
        self._nexts: list[dict[int, int]] = [{}]  # of each beginning of the texts, by code points
        self._is_whole = {self._add(text) for text in texts}
        class_runs, n_classes, self._inner_class, self._point = self._classes(inner)
        super().__init__(inner, class_runs, n_classes)
        self._classes_of: list[list[int]] = [[] for _ in range(inner.n_classes)]
        for cls, own in enumerate(self._inner_class):
            self._classes_of[own].append(cls)
        self._class_of_point = {point: cls for cls, point in self._point.items()}
        self.start = self._state(inner.start, 0)

    def is_one(self, beginning: int) -> bool:
        """Whether a beginning of the texts, which is a number, is the whole of one."""
        return beginning in self._is_whole

    def nexts(self, beginning: int) -> Iterable[tuple[int, int]]:
        """The characters that go on as one of the texts does, as code points with the beginnings after them."""
        return self._nexts[beginning].items() if beginning != _OFF else ()

    def accepts(self, state: int) -> bool:
        """See `rules.Piece`."""
        at, begun = self.pair(state)
        return begun not in self._is_whole and self.inner.accepts(at)

    def _made(self, at: int, begun: int) -> Moves:
        nexts = {} if begun == _OFF else self._nexts[begun]
        own = {self._class_of_point[point]: after for point, after in nexts.items()}
        found: list[tuple[int, Sequence[int]]] = []
        for target, classes in self.inner.moves(at):
            off = [cls for one in classes for cls in self._classes_of[one] if cls not in own]
            if off:
                found.append((self._state(target, _OFF), off))
            for cls, after in own.items():
                is_end = after in self._is_whole and not self.inner.moves(target)
                if self._inner_class[cls] in classes and not is_end:
                    found.append((self._state(target, after), [cls]))
        return found

    def _add(self, text: str) -> int:
        at = 0
        for char in text:
            after = self._nexts[at].get(ord(char))
            if after is None:
                after = self._nexts[at][ord(char)] = len(self._nexts)
                self._nexts.append({})
            at = after
        return at

    def _classes(self, inner: Piece) -> tuple[tuple[Indices, Indices], int, list[int], dict[int, int]]:
        """The automaton's classes, with each character of the texts in a class of its own."""
        starts, classes = inner.class_runs
        points = np.array(sorted({point for nexts in self._nexts for point in nexts}), np.int64)
        cut = np.unique(np.concatenate([starts, points, points + 1]))
        cut = cut[cut < 0x110000]
        numbers = classes[np.searchsorted(starts, cut, "right") - 1]
        n_inner = inner.n_classes
        inner_class = [*range(n_inner), *numbers[np.searchsorted(cut, points)].tolist()]
        numbers[np.searchsorted(cut, points)] = n_inner + np.arange(len(points))
        return (cut, numbers), n_inner + len(points), inner_class, dict(enumerate(points.tolist(), n_inner))
