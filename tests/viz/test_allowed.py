"""What a constraint allows, as a table for notebooks: every token with its numbers, and hostile texts as text."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from nbsglang.engine.allowed import Allowed, Candidate
from nbsglang.viz.allowed import allowed_html
from tests.viz.scenes import HOSTILE

TOKENS = (Candidate(1, "A", 0.02, 0.5), Candidate(2, "<|end|>", 0.02, 0.5, ends=True))
BANNED = (Candidate(3, " the", 0.4, 0.0), Candidate(4, "\ufffd", 0.1, 0.0), Candidate(5, "  ", 1e-9, 0.0))


def answer(**other: Any) -> Allowed:
    fields: dict[str, Any] = {
        "constraint": "A|B",
        "after": "",
        "forced": "",
        "done": True,
        "n_vocab": 1000,
        "n_allowed": 2,
        "kept": 0.04,
        "removed": 0.96,
        "tokens": TOKENS,
        "banned": BANNED,
    }
    return Allowed(**fields | other)


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_each_token_has_its_numbers_and_a_sign() -> None:
    html = allowed_html(answer(forced=" x"))
    words = plain(html)
    assert "at the beginning under A|B : 2 of 1,000 tokens are allowed, with 4% of the probability;" in words
    assert "96% is removed; forced: ␣x" in words
    assert "✓ A 2% 50%" in words
    assert "✓ &lt;|end|&gt; (ends it) 2% 50%" in words
    assert "✗ ␣the 40%" in words
    assert "✗ id 4 10%" in words
    assert "✗ ␣␣ 1e-07%" in words
    assert "… 995 more" in words
    assert [float(width) for width in re.findall(r";width:([\d.]+)px;min", html)] == [8.0, 8.0, 160.0, 40.0, 0.0]


def test_without_a_constraint_nothing_is_banned() -> None:
    words = plain(allowed_html(answer(constraint="", n_allowed=1000, banned=(), kept=1.0, removed=0.0)))
    assert "without a constraint" in words
    assert "not allowed" not in words
    assert "… 998 more" in words
    assert "NaN" not in allowed_html(answer(tokens=(Candidate(1, "A", math.nan, 0.0),), banned=()))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(text: str) -> None:
    html = allowed_html(answer(constraint=text, after=text, forced=text, tokens=(Candidate(1, text, 0.5, 1.0),)))
    tags = set(re.findall(r"<(/?\w+)", html))
    assert tags <= {"div", "/div", "b", "/b", "table", "/table", "tr", "/tr", "td", "/td"}
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200f]", html)
