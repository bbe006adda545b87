"""The shortest text of a constraint: it matches, and nothing shorter does."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.shortest import shortest_text
from nbsglang.errors import ConstraintError


@pytest.mark.parametrize(
    "pattern", [r"[1-5]", r"year: \d{4}!", r"a*", r"(yes|no|maybe)", r"x+y?z", r"[^a]", r"\w{2,5} ?", r"(ab|c)(d|ef)"]
)
def test_it_matches_and_is_no_longer_than_it_must_be(pattern: str) -> None:
    text = shortest_text(Constraint("regex", pattern))
    assert re.fullmatch(pattern, text)
    assert text.isprintable()
    for n in range(min(len(text), 3)):
        shorter = map("".join, itertools.product("0aA xzyb!c1ef", repeat=n))
        assert not any(re.fullmatch(pattern, other) for other in shorter)


def test_choices_and_schemas() -> None:
    assert shortest_text(Constraint("choices", ("banana", "kiwi", "fig"))) == "fig"
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "year": {"type": "integer", "minimum": 1500, "maximum": 2026}},
        "required": ["title", "year"],
        "additionalProperties": False,
    }
    found = json.loads(shortest_text(Constraint("schema", json.dumps(schema))))
    assert found["title"] == ""
    assert 1500 <= found["year"] <= 2026


def test_a_grammar_has_none() -> None:
    with pytest.raises(ConstraintError):
        shortest_text(Constraint("grammar", 'start: "a"'))
