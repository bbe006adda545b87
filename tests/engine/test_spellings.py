"""Tokens that begin with given bytes and go on, beside a look at every token."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from nbsglang.engine.spellings import Spellings

BYTES = st.lists(st.sampled_from([0, 97, 98, 0xFE, 0xFF]), max_size=4).map(bytes)  # many that begin alike


@given(st.lists(BYTES, max_size=30), BYTES)
@example([b"a", b"ab", b"ab", b"b"], b"a")  # two ids of one text
@example([b"\xff", b"\xff\xff", b"\xff\xff\xff"], b"\xff\xff")  # nothing is above it
@example([b"a", b"", b"b"], b"")
def test_longer_tokens_are_those_that_begin_so(table: list[bytes], begin: bytes) -> None:
    found = Spellings(table).longer(begin)
    wanted = [i for i, data in enumerate(table) if data.startswith(begin) and len(data) > len(begin)]
    assert sorted(found.tolist()) == wanted


def test_without_tokens() -> None:
    assert Spellings([]).longer(b"a").tolist() == []
