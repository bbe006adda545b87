"""What masks of strings need is made while a schema is compiled, and changes no mask."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from nbsglang.engine.grammar import Vocab, compile_json_schema, index
from nbsglang.engine.grammar.composed import Composed
from nbsglang.engine.grammar.limits import TooLargeError
from nbsglang.engine.grammar.parts import Parts

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[a-f0-9]{4}-(?:x|y)+$"},
        "url": {"type": "string", "pattern": "^https?://", "maxLength": 60},
        "kind": {"type": "string", "pattern": "list|date$"},
        "n": {"type": "integer", "minimum": 3},
    },
    "required": ["id", "url", "kind"],
    "additionalProperties": False,
}
TEXT = '{"id": "0a9f-xyx", "url": "https://a.b/é", "kind": "a list", "n": 17}'


def masks(tokenizer: AutoTokenizer, vocab: Vocab) -> list[np.ndarray]:
    matcher = compile_json_schema(json.dumps(SCHEMA), vocab).matcher()
    found = []
    for token in tokenizer.encode(TEXT, add_special_tokens=False):
        found.append(matcher.mask().copy())
        assert matcher.accept(token)
    assert matcher.done
    return found


@pytest.mark.smollm2
def test_strings_begin_without_a_search(smollm2_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder)
    matcher = compile_json_schema(json.dumps(SCHEMA), Vocab.from_tokenizer(tokenizer)).matcher()
    searched: list[int] = []
    made = Parts._made
    monkeypatch.setattr(Parts, "_made", lambda parts, state, node: searched.append(state) or made(parts, state, node))
    for token in tokenizer.encode('{"id": "', add_special_tokens=False):
        matcher.mask()
        assert matcher.accept(token)
    matcher.mask()
    assert not searched
    vocab = Vocab.from_tokenizer(tokenizer)
    monkeypatch.setattr(Composed, "prepare", lambda composed, seconds: None)
    matcher = compile_json_schema(json.dumps(SCHEMA), vocab).matcher()
    searched.clear()
    for token in tokenizer.encode('{"id": "', add_special_tokens=False):
        matcher.mask()
        assert matcher.accept(token)
    matcher.mask()
    assert searched  # so that the first half can fail


@pytest.mark.smollm2
def test_masks_are_the_same_however_much_was_prepared(smollm2_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder)
    found = []
    for seconds in (0.0, 0.001, 10.0):
        monkeypatch.setattr(index, "_PREPARING", seconds)
        found.append(masks(tokenizer, Vocab.from_tokenizer(tokenizer)))
    for some in zip(*found, strict=True):
        assert all(np.array_equal(mask, some[0]) for mask in some)


def test_a_part_past_its_budget_is_no_error_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is met where a text comes there, if one does."""

    def past(composed: Composed, seconds: float) -> None:
        raise TooLargeError("too much")

    monkeypatch.setattr(Composed, "prepare", past)
    vocab = Vocab([bytes([byte]) for byte in range(256)] + [b""], [256], [256])
    matcher = compile_json_schema('{"type": "array", "items": {"type": "boolean"}}', vocab).matcher()
    assert all(matcher.accept(byte) for byte in b"[true, false]")
    assert matcher.done
