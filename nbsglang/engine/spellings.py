"""Which tokens of a vocabulary begin with given bytes and go on.

Not here: what follows from it (`jump.py`, `heal.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class Spellings:
    """The bytes of all tokens that are text, in order: `bytes_table` has them by id, b"" for what is no text."""

    def __init__(self, bytes_table: Sequence[bytes]) -> None:
        ordered = sorted((data, token) for token, data in enumerate(bytes_table) if data)
        self._spelled = [data for data, _ in ordered]
        self._tokens = np.array([token for _, token in ordered], np.int32)

    def longer(self, begin: bytes) -> npt.NDArray[np.int32]:
        """The tokens that are longer than `begin` and begin with it: a view, not to be written to."""
        first = bisect_right(self._spelled, begin)
        end = _above(begin)
        return self._tokens[first : bisect_left(self._spelled, end, lo=first) if end else None]


def _above(begin: bytes) -> bytes:
    """The least bytes above all that begin so; b"" where there are none."""
    kept = begin.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b""
