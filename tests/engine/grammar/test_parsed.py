"""Grammars behind the door of our own constraints, which is the package's."""

from __future__ import annotations

import numpy as np
import pytest

from nbsglang.engine import grammar
from nbsglang.errors import ConstraintError

VOCAB = grammar.Vocab([b"", b"a", b"b", b"ab", b"!", b"(", b")"], [0])


def words(mask: np.ndarray) -> list[bytes]:
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return [data for token, data in enumerate(VOCAB.token_bytes) if bits[token] and data]


def test_a_grammar_that_is_not_regular():
    made = grammar.compile_grammar('start: pair "!"\npair: "(" pair? ")"', VOCAB)
    matcher, other = made.matcher(), made.matcher()
    assert words(matcher.mask()) == [b"("]
    for token in (5, 5, 6):
        assert matcher.accept(token)
    assert words(matcher.mask()) == [b")"]
    assert not matcher.accept(4)
    for token in (6, 4):
        assert matcher.accept(token)
    assert matcher.done
    assert words(other.mask()) == [b"("], "matchers go their own ways"


def test_one_that_cannot_be_used_says_why():
    with pytest.raises(ConstraintError, match="grammar"):
        grammar.compile_grammar("start: nowhere", VOCAB)


def test_all_names_of_the_package_are_there():
    for name in ("Vocab", "compile_regex", "compile_json_schema", "compile_grammar"):
        assert callable(getattr(grammar, name))
        assert name in dir(grammar)
    with pytest.raises(AttributeError, match="compile_nothing"):
        grammar.compile_nothing  # noqa: B018
