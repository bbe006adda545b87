"""Masks in one array, each content once.

Not here: which mask belongs to what (`index.py`), rows that belong to one matcher (`matcher.MaskTable`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.limits import OutgrownError
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.trie import plain

_FEW = 48  # tokens
MAX_BYTES = 256 << 20  # of all masks of one array


class SharedRows:
    """Masks as rows of `array`, which is replaced by a larger one when it is full. Rows never change.
    `views` are they one by one, which cannot be written to.

    Any thread may read; those that add take turns by themselves.
    """

    def __init__(self, n_words: int, n_rows: int = 32) -> None:
        self.views: list[MaskRow] = []
        self._index: dict[bytes | frozenset[int], int] = {}  # few tokens as such
        self._lock = threading.Lock()
        self._have(np.zeros((n_rows, n_words), np.int32))

    def __len__(self) -> int:
        return len(self.views)

    def add(self, mask: MaskRow, tokens: Iterable[int] = ()) -> int:
        """The row with this content and these tokens. Raises ConstraintError when there would be too many."""
        if np.count_nonzero(mask) <= _FEW and int(np.bitwise_count(mask.view(np.uint32)).sum()) <= _FEW:
            return self.add_few([*_tokens(mask), *tokens])
        return self._add_many(bytearray(mask), tokens)

    def _add_many(self, data: bytearray, tokens: Iterable[int]) -> int:
        for token in tokens:
            data[token >> 3] |= 1 << (token & 7)
        content = bytes(data)
        with self._lock:
            found = self._index.get(content)
            if found is None:
                found = self._index[content] = self._take()
                self._bytes[found * self._n_bytes : (found + 1) * self._n_bytes] = content
            return found

    def add_few(self, tokens: Iterable[int]) -> int:
        """The row with these tokens, for which it is faster where they are few. Raises as `add` does."""
        content = frozenset(tokens)
        if len(content) > _FEW:
            return self._add_many(bytearray(self._n_bytes), content)
        with self._lock:
            found = self._index.get(content)
            if found is None:
                found = self._index[content] = self._take()
                data, first = self._bytes, found * self._n_bytes
                for token in content:
                    data[first + (token >> 3)] |= 1 << (token & 7)
            return found

    def gather(self, rows: Sequence[int] | npt.NDArray[np.intp], out: npt.NDArray[np.int32] | None = None) -> MaskRow:
        """The masks of a batch. [rows, n_words]"""
        if out is None:
            return self.array.take(rows, axis=0)
        return self.array.take(rows, axis=0, out=out, mode="clip")  # else numpy copies twice; all rows are there

    def _take(self) -> int:
        """A row without tokens."""
        row = len(self.views)
        if row == len(self.array):
            self._grow()
        self.views.append(self._locked[row])
        return row

    def _grow(self) -> None:
        if 2 * self.array.nbytes > MAX_BYTES:
            raise OutgrownError(
                f"this constraint has more than {len(self.array)} different masks; split it into shorter ones"
            )
        n_rows, n_words = self.array.shape
        larger = np.zeros((2 * n_rows, n_words), np.int32)
        larger[:n_rows] = self.array
        self._have(larger)

    def _have(self, array: npt.NDArray[np.int32]) -> None:
        """Go on with an array; in it are the rows that there are."""
        self._n_bytes = 4 * array.shape[1]
        self._bytes = plain(array.reshape(-1).view(np.uint8))
        self._locked = array.view()
        self._locked.flags.writeable = False
        self.views = [self._locked[row] for row in range(len(self.views))]
        self.array = array


def _tokens(mask: MaskRow) -> list[int]:
    """The tokens of a mask with few of them."""
    words = np.flatnonzero(mask)
    pairs = zip(words.tolist(), mask.view(np.uint32)[words].tolist(), strict=True)
    return [32 * word + bit for word, bits in pairs for bit in range(32) if bits >> bit & 1]
