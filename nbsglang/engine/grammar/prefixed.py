"""An automaton after a required text.

Not here: the automaton itself.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.table import DEAD, Automaton


class Prefixed:
    """An `Automaton` of the texts that begin with `prefix` and match `inner` after it.

    Its first states are the beginnings of the prefix, the others those of `inner`, moved up by their number.
    """

    def __init__(self, prefix: str, inner: Automaton) -> None:
        self._prefix, self._inner = prefix, inner
        points = sorted(set(map(ord, prefix)))
        self._before: npt.NDArray[np.uint16] = inner.class_of[points]  # the inner classes of these characters
        self.n_classes = inner.n_classes + len(points)
        self.class_of = inner.class_of.copy()
        self.class_of[points] = np.arange(inner.n_classes, self.n_classes)
        self._path: list[int] = self.class_of[list(map(ord, prefix))].tolist()
        self.start = 0 if prefix else inner.start

    def row(self, state: int) -> npt.NDArray[np.int32]:
        """See `Automaton.row`."""
        n_path = len(self._path)
        if state < n_path:
            row = np.full(self.n_classes, DEAD, np.int32)
            row[self._path[state]] = state + 1 if state + 1 < n_path else n_path + self._inner.start
            return row
        inner = self._inner.row(state - n_path)
        row = np.concatenate([inner, inner[self._before]])
        return np.where(row >= 0, row + n_path, DEAD).astype(np.int32)

    def accepts(self, state: int) -> bool:
        """See `Automaton.accepts`."""
        return state >= len(self._path) and self._inner.accepts(state - len(self._path))

    def renewed(self) -> Prefixed:
        """See `Automaton.renewed`."""
        return Prefixed(self._prefix, self._inner.renewed())

    def key(self, state: int) -> tuple[int, Hashable]:
        """See `Automaton.key`."""
        n_path = len(self._path)
        return (state, None) if state < n_path else (n_path, self._inner.key(state - n_path))

    def state_of(self, key: Hashable) -> int:
        """See `Automaton.state_of`."""
        assert isinstance(key, tuple)
        at: int = key[0]
        return at if at < len(self._path) else at + self._inner.state_of(key[1])
