"""Which tokens of a vocabulary begin with given bytes and go on.

Not here: what follows from it (`jump.py`, `heal.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence


class Spellings:
    """The bytes of all tokens that are text, in order: `bytes_table` has them by id, b"" for what is no text."""

    def __init__(self, bytes_table: Sequence[bytes]) -> None:
        self._ordered = sorted((data, token) for token, data in enumerate(bytes_table) if data)
        self._n_vocab = len(bytes_table)

    def longer(self, begin: bytes) -> Iterator[int]:
        """The tokens that are longer than `begin` and begin with it."""
        first = bisect_left(self._ordered, (begin, self._n_vocab))
        for at in range(first, len(self._ordered)):
            data, token = self._ordered[at]
            if not data.startswith(begin):
                return
            yield token
