"""What is told while a model is loaded."""

from __future__ import annotations

import pytest

from nbsglang.events import Event, Loading
from nbsglang.notebook.progress import loading_words


def at(seconds: float, done: int, total: int) -> Event:
    return Event(1, int(seconds * 1e9), "loading", Loading("downloading smollm2", done, total))


@pytest.mark.parametrize(
    ("first", "now", "words"),
    [
        (at(0, 0, 98_000_000), at(2, 49_000_000, 98_000_000), "49 of 98 MB, 50% · 24.5 MB/s · 2.0 s left"),
        (at(0, 20_000_000, 98_000_000), at(0, 20_000_000, 98_000_000), "20 of 98 MB, 20%"),
        (at(0, 90_000_000, 98_000_000), at(4, 94_000_000, 98_000_000), "94 of 98 MB, 96% · 1.0 MB/s · 4.0 s left"),
        (at(0, 0, 3), at(1, 1, 3), "step 2 of 3"),
    ],
)
def test_bytes_have_a_rate_and_steps_a_number(first: Event, now: Event, words: str) -> None:
    assert loading_words(first, now) == f"downloading smollm2: {words}"


def test_work_of_one_step_is_only_named() -> None:
    assert loading_words(at(0, 0, 1), at(1, 0, 1)) == "downloading smollm2 …"
