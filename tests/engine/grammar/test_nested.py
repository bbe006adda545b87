"""Languages whose texts are inside themselves: masks against reading character by character, depth, limits, threads."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from nbsglang.engine.grammar.automatic import AutomatonMatcher
from nbsglang.engine.grammar.compiled import Grammar
from nbsglang.engine.grammar.limits import Limits
from nbsglang.engine.grammar.nested import Nested
from nbsglang.engine.grammar.schema import compile_json_schema, schema_automaton, schema_rules
from nbsglang.engine.grammar.schema_places import NotRegularError
from nbsglang.engine.grammar.utf8 import completions
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError
from tests.engine.grammar.oracle import allowed, split
from tests.engine.grammar.test_schema import SCHEMAS, closed
from tests.engine.grammar.test_schema_handed import loosened

WORDS = [
    '", "', '": ', '": "', '"}', '"]', '"}]', '["', '[{"', "}}", "]]", "[[", ": ", ", ", '{"', "name", "nam", 'me"',
    'e": ', "true", "tru", "false", "null", "12", "-1", "0.", "e+", "3}", "5, ",
    '\\"', "\\n", "\\u", "a\\", "ab", 'ab"',
    "abc", '日"', "日本", "u00", "é", '"x"', "ne", "ext", '"ne', "t\": ", "a-b", "  ",
]  # fmt: skip
BROKEN = [
    b"\xe6\x97",
    b"a\xe6",
    b"\xa5b",
    b'\xa5"',
    b'"\xe6',
    b'": "\xe6\x97',
    b"\x97\xa5",
    b"\xf0\x9f",
    b'b"\xc3',
    b"\xa9",
]
TOKENS = [*(bytes([byte]) for byte in range(256)), *(word.encode() for word in WORDS), *BROKEN, b""]
END = len(TOKENS) - 1
TREE = closed({"name": {"type": "string"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "name")
CASES: dict[str, Any] = {
    "any value": {},
    "any object": {"type": "object"},
    "open": {"type": "object", "properties": {"name": {"type": "integer"}, "next": {}, "ne": {"type": "null"}}},
    "open, of one type": {"properties": {"name": {"const": "ab"}, "日": {}}, "additionalProperties": {"type": "string"},
                          "type": "object", "required": ["name"]},
    "tree": TREE,
    "tree of lists": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3},
    "counted": {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 4}},
    "at least": {"type": "object", "additionalProperties": {"type": "string", "minLength": 3}},
    "long": {"type": "array", "items": {"type": "string", "maxLength": 100_000}},
    "strings together": {"type": "array", "items": {"anyOf": [
        {"type": "string", "pattern": "b"}, {"enum": ["ab", "a\n日"]}, {"type": "string", "maxLength": 1}]}},
    "objects together": {"type": "array", "items": {"anyOf": [
        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        {"type": "object", "additionalProperties": {"$ref": "#"}}, TREE["properties"]["name"]]}},
    "a tree in two ways": {"anyOf": [{"type": "array", "items": {"$ref": "#"}},
                                     {"type": "array", "items": {"type": "array", "items": {"$ref": "#"}}},
                                     {"type": "number", "minimum": 0}]},
    "names by pattern": {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {}}},
    "names by schema": {"type": "object", "propertyNames": {"maxLength": 2}, "additionalProperties": {}},
    "formats": {"type": "object", "properties": {"name": {"type": "string", "format": "date"}}},
    "multiples": {"type": "array", "items": {"type": "integer", "multipleOf": 12, "minimum": -40}},
    "no multiples": {"type": "array", "items": {"type": "number", "not": {"multipleOf": 3}, "maximum": 200}},
    "strings but for some": {"type": "array", "items": {"type": "string", "not": {"enum": ["ab", "name"]}}},
    "strings without a pattern": {"type": "array", "items": {"type": "string", "not": {"pattern": "^(a|nam)*$"}}},
    "with some": {"type": "array", "items": {"type": ["integer", "null"]}, "contains": {"type": "null"}},
    "all differ": {"type": "array", "items": {"enum": ["ab", "a", True, None]}, "uniqueItems": True},
    "not closed": {"type": "object", "properties": {"name": {"const": 1}}, "not": closed({"name": {}, "ne": {}})},
    "overlapping": {"oneOf": [closed({"name": {}, "ne": {"type": "integer"}}), {"type": "object", "required": ["ne"]}]},
}  # fmt: skip


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    """Bytes, pieces of JSON, pieces of characters, and a token that ends a text."""
    return Vocab(TOKENS, [END])


class Characters:
    """What may follow a text, found by reading each token character by character."""

    def __init__(self, automaton: Any) -> None:
        self._automaton = automaton
        self._class_of = automaton.class_of
        self._after = lru_cache(None)(self._read)
        self._begun = lru_cache(None)(self._classes)

    def allowed(self, text: bytes) -> set[int]:
        """The tokens that may come after a text that may be begun so."""
        found = {token for token, data in enumerate(TOKENS) if data and self._is_live(text + data)}
        whole, begun = split(text)
        return found | ({END} if not begun and self._automaton.accepts(self._after(whole)) else set())

    def _is_live(self, data: bytes) -> bool:
        try:
            whole, begun = split(data)
        except UnicodeDecodeError:
            return False
        state = self._after(whole)
        if state < 0 or not begun:
            return state >= 0
        return bool((self._automaton.row(state)[self._begun(begun)] >= 0).any())

    def _classes(self, begun: bytes) -> Any:
        ends = completions(begun)
        return [] if ends is None else np.unique(self._class_of[ends[0] : ends[1] + 1])

    def _read(self, text: str) -> int:
        if not text:
            return int(self._automaton.start)
        before = self._after(text[:-1])
        return int(self._automaton.row(before)[self._class_of[ord(text[-1])]]) if before >= 0 else -1


def walk(matcher: AutomatonMatcher, draw: random.Random, longest: int) -> Sequence[int]:
    """Tokens at random, more often those of several characters."""
    ids: list[int] = []
    while len(ids) < longest and not matcher.ended:
        tokens = sorted(allowed(matcher) - {END})
        some = [token for token in tokens if len(TOKENS[token]) > 1] or tokens
        token = draw.choice(some if draw.random() < 0.6 else tokens)
        assert matcher.accept(token)
        ids.append(token)
    return ids


def check(schema: Any, vocab: Vocab, seed: int, n_walks: int, longest: int = 14) -> None:
    """Compare the masks along some texts."""
    grammar, oracle = compile_json_schema(schema, vocab), Characters(schema_automaton(schema))
    draw = random.Random(seed)
    for _ in range(n_walks):
        matcher, text = grammar.matcher(), b""
        for token in walk(grammar.matcher(), draw, longest):
            assert allowed(matcher) == oracle.allowed(text), text
            assert matcher.accept(token)
            text += TOKENS[token]
        assert allowed(matcher) == oracle.allowed(text), text


@pytest.mark.parametrize("name", CASES)
def test_masks_are_those_of_reading_characters(vocab: Vocab, name: str) -> None:
    check(CASES[name], vocab, 0, 12)


@settings(max_examples=60)
@given(SCHEMAS, st.integers(0, 10**6))
def test_masks_of_random_schemas(vocab: Vocab, schema: Any, seed: int) -> None:
    schema = loosened(schema, random.Random(seed))
    try:
        check(schema, vocab, seed, 2, 10)
    except (ConstraintError, NotRegularError):
        return


@pytest.mark.parametrize("name", ["any value", "a tree in two ways", "open, of one type"])
def test_texts_go_on_when_there_is_no_room_for_more_states(vocab: Vocab, name: str) -> None:
    rules = schema_rules(CASES[name])
    small = Grammar("small", Nested(rules, Limits(states=25)), vocab)
    whole, draw, is_met = compile_json_schema(CASES[name], vocab), random.Random(1), False
    for _ in range(12):
        matcher, other = small.matcher(), whole.matcher()
        for token in walk(whole.matcher(), draw, 40):
            assert allowed(matcher) == allowed(other)
            assert matcher.accept(token)
            assert other.accept(token)
        is_met = is_met or matcher._grammar is not small
        matcher.rollback(len(matcher._past) + len(matcher._before))
        assert allowed(matcher) == allowed(whole.matcher())
    assert is_met, "the limit was met"


def test_depth_has_no_end(vocab: Vocab) -> None:
    grammar = Grammar("deep", Nested(schema_rules({}), Limits(states=1000)), vocab)
    matcher, n = grammar.matcher(), 300
    data = b"[" * n + b'{"a": ' * n + b"1" + b"}" * n + b"]" * n
    assert all(map(matcher.accept, data))
    assert matcher.ended
    assert matcher._grammar is not grammar
    matcher.rollback(n)
    assert allowed(matcher) >= {ord("]"), ord(",")}
    assert END not in allowed(matcher)
    matcher.rollback(len(data) - n)
    assert allowed(matcher) == allowed(grammar.matcher())


def test_what_is_inside_itself_without_end_has_no_value(vocab: Vocab) -> None:
    for schema in (closed({"next": {"$ref": "#"}}, "next"), {"type": "array", "items": {"$ref": "#"}, "minItems": 1}):
        with pytest.raises(ConstraintError, match="no value fits"):
            compile_json_schema(schema, vocab)


def test_equal_parts_lead_to_equal_states() -> None:
    """The second item of a list is in the states of the first, as the same can follow it."""
    automaton = schema_automaton({"type": "array", "items": closed({"name": {"type": "string"}}, "name")})

    def state(text: str) -> int:
        at = automaton.start
        for char in text:
            at = int(automaton.row(at)[automaton.class_of[ord(char)]])
        return at

    assert state('[{"name": "a') == state('[{"name": "a"}, {"name": "bc') == state('[{"name": ""}, {"name": "b')
    assert state("[]") != state("[")


def test_grammars_share_their_strings_on_several_threads(vocab: Vocab) -> None:
    def masks(seed: int) -> list[bytes]:
        schema = {"type": "object", "properties": {f"p{seed % 3}": {"type": "string", "maxLength": 7}}}
        grammar, draw = compile_json_schema(schema, Vocab(TOKENS, [END]) if seed < 0 else vocab), random.Random(seed)
        matcher = grammar.matcher()
        found = []
        for token in walk(grammar.matcher(), draw, 30):
            found.append(matcher.mask().tobytes())
            assert matcher.accept(token)
        return found

    seeds = [seed % 6 for seed in range(24)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(masks, seeds))
    assert found == [masks(seed) for seed in seeds]


@pytest.mark.smollm2
def test_every_token_of_the_default_model(smollm2_folder: Path) -> None:
    """As by the long way, which is that of automata without parts."""
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder)
    vocab = Vocab.from_tokenizer(tokenizer)
    text = '{"name": "Hög\\"warts 日本", "tags": ["a", {"b": [1.5e3, null]}], "when": "2024-02-29", "x": {}}'
    schema = {"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 40}, "tags": {}, "when": {"format": "date"}}}  # fmt: skip
    index = compile_json_schema(schema, vocab).index
    matcher = compile_json_schema(schema, vocab).matcher()
    composed, n_checked = index._composed, 0
    assert composed is not None
    for token in tokenizer.encode(text, add_special_tokens=False):
        state = matcher._state
        if not state[1]:
            index._composed = None
            same = index.table.state_of(matcher._index.table.key(state[0]))
            long_way = index._text_mask((same, b""))
            index._composed = composed
            mask = matcher.mask() & ~vocab.eos_row
            assert np.array_equal(mask, long_way), state
            n_checked += 1
        assert matcher.accept(token)
    assert matcher.ended
    assert n_checked > 30
    assert json.loads(text)


@pytest.mark.parametrize("missing", ["t", "]", "0"])
def test_what_is_inside_itself_is_left_to_others_where_tokens_lack_its_characters(missing: str) -> None:
    """A search for a match could go deeper without end. What is not inside itself is ours."""
    tokens = [bytes([byte]) for byte in range(32, 127) if chr(byte) != missing]
    vocab = Vocab([*tokens, b""], [len(tokens)], [len(tokens)])
    with pytest.raises(NotRegularError, match="inside"):
        compile_json_schema({}, vocab)
    grammar = compile_json_schema(closed({"a": {"type": "boolean"}}), vocab)
    assert grammar.matcher().accept(tokens.index(b"{"))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": ["string", "null"], "minLength": 6, "pattern": r"^\w{2,5}$"}, "null"),
        ({"type": "object", "properties": {"a": {"type": "integer"}}, "propertyNames": False}, "{}"),
        (closed({"a": {"type": "integer"}, "b": {"type": "array", "items": {"$ref": "#/properties/b"}, "minItems": 1}}),
         '{"a": 1}'),
    ],
)  # fmt: skip
def test_a_part_without_a_text_is_left_out(schema: dict[str, Any], text: str) -> None:
    automaton = schema_automaton(schema)
    state = automaton.start
    for char in text:
        row = automaton.row(state)
        state = int(row[automaton.class_of[ord(char)]])
        assert state >= 0
    assert automaton.accepts(state)
