"""Names of streams; hostile texts are in the tests of pictures."""

from __future__ import annotations

from nbsglang.viz.text import name_of


def test_a_stream_is_called_by_its_label_or_its_number() -> None:
    assert name_of("judge", "a1.1", "", 0) == "judge"
    assert name_of("clarity", "a1.2", "a1.1", 0) == "branch clarity"
    assert name_of("", "a1.2", "a1.1", 3) == "branch 3", "a log without texts, or a key that is empty"
    assert name_of("", "a1.1", "", 0) == "a1.1"
