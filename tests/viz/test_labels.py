"""Labels of the tree: short, broken where words end, and complete.

Not here: pictures as a whole (`test_pictures.py`).
"""

from __future__ import annotations

import pytest

from nbsglang.viz.dot import _LINE, wrapped
from nbsglang.viz.text import SPECIAL, brief


def test_special_tokens_take_one_sign_each() -> None:
    assert brief("<|im_start|>user\nHi<|im_end|>\n") == f"{SPECIAL}user\nHi{SPECIAL}\n"
    for text in ("a <| b |> c", "<||>", "<|a|b|>", "<|" + "x" * 50 + "|>", "a < b | c > d"):
        assert brief(text) == text, "no special token"


@pytest.mark.parametrize(
    "text",
    ["", "one", "Question: Which is heavier, a whale or a mouse?", "x" * 50, "a" * 17 + " b", f"is it?{SPECIAL}⏎" * 4],
)
def test_lines_are_short_and_nothing_is_lost(text: str) -> None:
    lines = wrapped(text)
    assert "".join(lines) == text
    assert all(len(line.rstrip()) <= _LINE for line in lines)
    assert len(lines) <= 1 + len(text) // (_LINE // 2)


def test_lines_break_between_words() -> None:
    assert wrapped("The capital of France is Paris") == ["The capital of ", "France is Paris"]
