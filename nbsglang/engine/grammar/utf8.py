"""UTF-8 in pieces: what a token's bytes are when it begins or ends in the middle of a character.

Not here: texts of whole characters, which are `str`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class Parts(NamedTuple):
    """Bytes as the end of a character, whole characters, and the beginning of one."""

    head: bytes
    middle: str
    tail: bytes

    @property
    def is_whole(self) -> bool:
        """Nothing but whole characters."""
        return not self.head and not self.tail


def parts(data: bytes) -> Parts | None:
    """The parts of some bytes; None if they can stand in no UTF-8 text."""
    n_head = 0
    while n_head < len(data) and data[n_head] & 0xC0 == 0x80:
        n_head += 1
    if n_head > 3:
        return None
    rest = data[n_head:]
    try:
        return Parts(data[:n_head], rest.decode(), b"")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return None
        return Parts(data[:n_head], rest[: error.start].decode(), rest[error.start :])


@lru_cache(maxsize=4096)
def completions(begun: bytes) -> tuple[int, int] | None:
    """The first and last code point whose bytes begin with `begun` and go on; None if there is none.

    Between the two all have, for no character's first byte or two are those of a surrogate and of another.
    """
    if not begun or len(begun) > 3:
        return None
    try:
        begun.decode()
    except UnicodeDecodeError as error:
        if error.start != 0 or error.reason != "unexpected end of data":
            return None
    else:
        return None
    n_bytes = 2 if begun[0] < 0xE0 else 3 if begun[0] < 0xF0 else 4
    lowest = {2: 0x80, 3: 0x800, 4: 0x10000}[n_bytes]
    value = begun[0] & (0x7F >> n_bytes)
    for byte in begun[1:]:
        value = value << 6 | byte & 0x3F
    shift = 6 * (n_bytes - len(begun))
    first, last = value << shift, (value + 1 << shift) - 1
    if n_bytes == 3 and first <= 0xD7FF:  # what follows are surrogates
        last = min(last, 0xD7FF)
    return max(first, lowest), min(last, 0x10FFFF)
