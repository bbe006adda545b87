"""JSON Schemas that go to llguidance: they mean there what they mean to our own automaton."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.constraints import Constraints
from nbsglang.engine.grammar.external import Compiler, ExternalMatcher
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.grammar.schema import schema_rules
from nbsglang.errors import ConstraintError
from tests.engine.grammar.test_schema import SCHEMAS, dumped, validator

END = 256
STRING = {"type": "string"}


@pytest.fixture(scope="module")
def constraints() -> Constraints:
    """Bytes, and a token that ends a text."""
    return Constraints([bytes([byte]) for byte in range(256)] + [b""], [END])


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    """llguidance alone, for the same tokens."""
    return Compiler([bytes([byte]) for byte in range(256)] + [b""], [END])


def open_object(**properties: Any) -> dict[str, Any]:
    """An object that may have any others too."""
    return {"type": "object", "properties": properties}


def matcher_of(compiler: Compiler, schema: Any) -> ExternalMatcher:
    return compiler.compile(Constraint("schema", json.dumps(schema)))


def takes(start: Matcher, text: str) -> bool:
    matcher = start.fork()
    return all(matcher.accept(byte) for byte in text.encode()) and matcher.done


@pytest.mark.parametrize(
    ("schema", "fits", "fails"),
    [
        (
            {"type": "string", "format": "date"},
            ["2024-02-29", "2023-12-31"],
            ["2023-02-29", "2023-04-31", "2023-13-01"],
        ),
        ({"type": "string", "format": "time"}, ["23:59:59Z"], ["23:58:60Z", "24:00:00Z"]),
        ({"type": "string", "format": "date-time"}, ["2024-02-29T00:00:00+01:00"], ["2023-02-29T00:00:00Z"]),
        ({"type": "string", "format": "uri-reference"}, ["../a?b#c", "http://a.example/"], ["a b"]),
        ({"format": "ipv4"}, ["127.0.0.1", 7], ["127.0.0.256"]),
        ({"type": "string", "format": "email", "pattern": "^a"}, ["a@b.example"], ["b@b.example", "a"]),
        ({"type": "string", "format": "password"}, ["a b"], [3]),
        ({"type": "string", "format": "html-selector"}, ["a b"], [3]),
        ({"type": "string", "pattern": r"^\d$"}, ["1"], ["١", "11"]),
        ({"type": "string", "pattern": r"\S"}, ["a", " a"], ["", " ", "\ufeff", "\x85"]),
        ({"type": "string", "pattern": "b$"}, ["ab"], ["ba"]),
        ({"type": "string", "pattern": "^[a\\x01]b$"}, ["ab"], ["b", "bb"]),
        ({"type": "integer", "format": "int32"}, [2**31 - 1, -(2**31)], [2**31, 1.5]),
        ({"type": "number", "format": "int32"}, [5], [5.5]),
        ({"type": "number", "format": "double"}, [5, 5.5], ["5"]),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": False}, [[1, 1]], [["a"]]),
        ({"enum": [{"format": "date"}, "pattern"]}, [{"format": "date"}, "pattern"], ["date", {}]),
        (open_object(format=STRING, pattern={"type": "integer"}), [{"format": "a", "pattern": 1}], [{"format": 1}]),
    ],
)
def test_a_part_means_what_it_means_to_the_automaton(
    compiler: Compiler, schema: Any, fits: list[Any], fails: list[Any]
) -> None:
    start = matcher_of(compiler, open_object(a=schema))
    assert [value for value in fits if not takes(start, dumped({"a": value}))] == []
    assert [value for value in fails if takes(start, dumped({"a": value}))] == []


def test_a_name_has_one_spelling(compiler: Compiler) -> None:
    """Else a name that is not listed could be one that is: `\\u0061` is `a`."""
    start = matcher_of(compiler, {**open_object(a={"type": "integer"}), "additionalProperties": {"items": True}})
    assert takes(start, '{"a": 1}')
    assert takes(start, '{"b": "x"}')
    assert takes(start, '{"\\n": "x"}')
    assert not takes(start, '{"\\u0061": "x"}')


def test_names_are_not_counted_twice(compiler: Compiler) -> None:
    start = matcher_of(compiler, {**open_object(a=STRING), "required": ["a"], "minProperties": 2})
    assert takes(start, '{"a": "x", "b": [1]}')
    assert not takes(start, '{"a": "x"}')
    for schema in ({"minProperties": 2}, {"type": "object", "minProperties": 3, "required": ["a", "a"]}):
        with pytest.raises(ConstraintError, match="'minProperties' at #/properties/b:"):
            compiler.compile(Constraint("schema", json.dumps(open_object(b=schema))))


@pytest.mark.parametrize("value", ["a\x01b", ["a\x01b"], {"b": "\x00"}])
def test_values_that_could_not_be_written_are_refused(compiler: Compiler, value: Any) -> None:
    for schema in ({"const": value}, {"enum": [value, 1]}):
        with pytest.raises(ConstraintError, match=f"'{next(iter(schema))}' at #/properties/a:"):
            compiler.compile(Constraint("schema", json.dumps(open_object(a=schema))))


def test_choices_that_exclude_each_other_are_taken(compiler: Compiler) -> None:
    cat = {**open_object(kind={"const": "cat"}, lives={"type": "integer"}), "required": ["kind"]}
    dog = {**open_object(kind={"enum": ["dog", "wolf"]}, owner=STRING), "required": ["kind"]}
    start = matcher_of(compiler, {"type": "array", "items": {"$ref": "#/$defs/pet"}, "$defs": {
        "pet": {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}]}, "cat": cat, "dog": dog}})  # fmt: skip
    assert takes(start, '[{"kind": "cat", "lives": 9}, {"kind": "wolf", "owner": "a"}]')
    assert not takes(start, '[{"kind": "cat", "lives": "a"}]')
    sibling = {**open_object(kind=STRING), "required": ["kind"], "oneOf": [
        {"properties": {"kind": {"const": kind}}} for kind in ("cat", "dog")]}  # fmt: skip
    assert takes(matcher_of(compiler, sibling), '{"kind": "dog", "a": []}')


def test_choices_that_may_overlap_are_refused(compiler: Compiler) -> None:
    schema = {"oneOf": [{**open_object(a=STRING), "required": ["a"]}, {**open_object(b=STRING), "required": ["b"]}]}
    with pytest.raises(ConstraintError, match="oneOf"):
        compiler.compile(Constraint("schema", json.dumps(schema)))


@pytest.mark.parametrize("keyword", ["contains", "uniqueItems", "unevaluatedProperties"])
def test_keywords_that_neither_has_are_refused_by_name(compiler: Compiler, keyword: str) -> None:
    value = True if keyword == "uniqueItems" else {"type": "integer"}
    with pytest.raises(ConstraintError, match=keyword):
        compiler.compile(Constraint("schema", json.dumps(open_object(a={}, b={keyword: value}))))


def test_a_misspelt_keyword_is_refused_here_too(compiler: Compiler) -> None:
    for schema in (open_object(a={}, b={"minimun": 3}), {"items": [{}, {"anyOf": [{"maxlength": 3}]}]}):
        with pytest.raises(ConstraintError, match=r"'m(in|ax)[a-z]+' at #/.*write 'm(inimum|axLength)'"):
            compiler.compile(Constraint("schema", json.dumps(schema)))
    matcher_of(compiler, {**open_object(minimun={}), "other": {"minimun": 3}, "default": {"minimun": 3}})


@pytest.mark.parametrize(
    "words",
    [
        {"self": {"format": "jsonschema", "version": "1-0-0"}, "version": 1},
        {"_format": "date", "x-order": 1, "@context": "a"},
        {"links": [{"href": "/"}], "strictProperties": True, "propertyOrder": 3, "enumNames": ["a"]},
    ],
)
def test_unknown_keywords_say_nothing(words: dict[str, Any]) -> None:
    assert schema_rules({"type": "integer", **words}) == schema_rules({"type": "integer"})


@pytest.mark.parametrize(
    ("word", "meant"),
    [("minlength", "minLength"), ("ref", "$ref"), ("requires", "required"), ("additionalProperty", "additionalP"),
     ("oneof", "oneOf"), ("enums", "enum"), ("Items", "items")],
)  # fmt: skip
def test_words_like_keywords_are_refused(word: str, meant: str) -> None:
    with pytest.raises(ConstraintError, match=rf"'{word}' at #/items: .*write '{meant.replace('$', '[$]')}"):
        schema_rules({"type": "array", "items": {"type": "integer", word: []}})


# ------------------------------------------------------------------------------------------ at random


def loosened(schema: Any, draw: random.Random) -> Any:
    """A schema with many of its objects open, and some references to all of it."""
    if isinstance(schema, list):
        return [loosened(part, draw) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "patternProperties"):
            found[keyword] = {name: loosened(part, draw) for name, part in value.items()}
        else:
            found[keyword] = value if keyword in ("enum", "required") else loosened(value, draw)
    if found.get("type") == "object" and draw.random() < 0.7:
        for keyword in ("additionalProperties", "propertyNames", "minProperties", "maxProperties"):
            found.pop(keyword, None)
    if found.get("type") == "array" and draw.random() < 0.3:
        found["items"] = draw.choice([True, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}])
    if found.get("type") == "string" and draw.random() < 0.2:
        found["format"] = draw.choice(["date", "time", "uuid", "ipv4", "email", "password"])
    return found


def walked(matcher: Matcher, draw: random.Random, longest: int = 60) -> str | None:
    """A text by masks, mostly of bytes that matter to JSON; None if it does not come to an end."""
    ids: list[int] = []
    while len(ids) < 4 * longest and not matcher.ended:
        bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")[: END + 1]
        allowed = np.flatnonzero(bits).tolist()
        if END in allowed and (len(ids) > longest or draw.random() < 0.4):
            break
        wanted = '"}]' if len(ids) > longest else '"\\{}[],:abcdu012-.eE \n' if draw.random() < 0.6 else ""
        some = [token for token in allowed if token < END and chr(token) in wanted]
        token = draw.choice(some or [token for token in allowed if token < END])
        assert matcher.accept(token)
        ids.append(token)
    return bytes(ids).decode() if matcher.done else None


@settings(max_examples=80)
@given(SCHEMAS, st.integers(0, 10**6))
def test_random_texts_are_valid_whoever_holds_the_schema(constraints: Constraints, schema: Any, seed: int) -> None:
    draw = random.Random(seed)
    schema = loosened(schema, draw)
    try:
        start = constraints.compile(Constraint("schema", json.dumps(schema)))
    except ConstraintError:
        return
    is_valid = validator(schema).is_valid
    for _ in range(5):
        text = walked(start.fork(), draw)
        assert text is None or is_valid(json.loads(text)), text
