"""Masks in one array, each content once.

Not here: which mask belongs to what (`index.py`), rows that belong to one matcher (`matcher.MaskTable`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.limits import OutgrownError
from nbsglang.engine.grammar.matcher import MaskRow

MAX_BYTES = 256 << 20  # of all masks of one array


class SharedRows:
    """Masks as rows of `array`, which is replaced by a larger one when it is full. Rows never change.

    Any thread may read; those that add take turns by themselves.
    """

    def __init__(self, n_words: int, n_rows: int = 16) -> None:
        self.array: npt.NDArray[np.int32] = np.zeros((n_rows, n_words), np.int32)
        self._views: list[MaskRow] = []
        self._index: dict[bytes, int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._views)

    def add(self, mask: MaskRow) -> int:
        """The row with this content. Raises ConstraintError when there would be too many."""
        content = mask.tobytes()
        with self._lock:
            found = self._index.get(content)
            if found is not None:
                return found
            row = len(self._views)
            if row == len(self.array):
                self._grow()
            self.array[row] = mask
            self._views.append(_locked(self.array[row]))
            self._index[content] = row
            return row

    def view(self, row: int) -> MaskRow:
        """A mask, which cannot be written to."""
        return self._views[row]

    def gather(self, rows: Sequence[int] | npt.NDArray[np.intp], out: npt.NDArray[np.int32] | None = None) -> MaskRow:
        """The masks of a batch. [rows, n_words]"""
        return self.array.take(rows, axis=0, out=out)

    def _grow(self) -> None:
        if 2 * self.array.nbytes > MAX_BYTES:
            raise OutgrownError(
                f"this constraint has more than {len(self.array)} different masks; split it into shorter ones"
            )
        larger = np.concatenate([self.array, np.zeros_like(self.array)])
        self._views = [_locked(larger[row]) for row in range(len(self._views))]
        self.array = larger


def _locked(view: MaskRow) -> MaskRow:
    view.flags.writeable = False
    return view
