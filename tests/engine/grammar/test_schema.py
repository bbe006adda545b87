"""JSON Schemas as automata: what is accepted is valid, what is valid is accepted, and what cannot be is refused."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import heapq
import itertools
import json
import random
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import numpy as np
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from benchmarks.schema_files import bounded, read
from benchmarks.schemas import Figures, measure, measured, table
from nbsglang.engine.grammar import compile_json_schema as lazily_loaded
from nbsglang.engine.grammar.limits import OutgrownError
from nbsglang.engine.grammar.schema import compile_json_schema, schema_automaton, schema_rules
from nbsglang.engine.grammar.schema_places import Document, NotRegularError, UnreadError
from nbsglang.engine.grammar.schema_reader import Reader
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError
from nbsglang.lang.types import typed
from tests.engine.grammar.schema_cases import CASES, INT, RAW, closed

FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    """Bytes, and a token that ends a text."""
    return Vocab([bytes([byte]) for byte in range(256)] + [b""], [256])


class Texts:
    """The automaton of a schema: which texts it takes, and some of them at random."""

    def __init__(self, schema: Any) -> None:
        self.automaton = schema_automaton(json.dumps(schema))
        class_of = self.automaton.class_of
        self._chars = [
            [chr(point) for point in _some(np.flatnonzero(class_of == index))]
            for index in range(self.automaton.n_classes)
        ]

    def takes(self, text: str) -> bool:
        """Whether the text is one."""
        state = self.automaton.start
        for char in text:
            state = int(self.automaton.row(state)[self.automaton.class_of[ord(char)]])
            if state < 0:
                return False
        return self.automaton.accepts(state)

    def walk(self, draw: random.Random, longest: int = 80) -> str:
        """A text at random, which is brought to an end soon when it gets long."""
        text, state = "", self.automaton.start
        while len(text) < longest:
            moves = self._moves(state)
            if not moves or (self.automaton.accepts(state) and draw.random() < 0.3):
                break
            # Each target alike: most characters lead to the same one.
            target = draw.choice(list(moves))
            text += draw.choice(self._chars[draw.choice(moves[target])])
            state = target
        return text + self._ending(state)

    def _moves(self, state: int) -> dict[int, list[int]]:
        moves: dict[int, list[int]] = {}
        for index, target in enumerate(self.automaton.row(state).tolist()):
            if target >= 0 and self._chars[index]:
                moves.setdefault(target, []).append(index)
        return moves

    def _ending(self, state: int) -> str:
        """A short rest: what closes a bracket is tried before what opens one."""
        found, todo = {state: ""}, [(0, 0, state)]
        while todo:
            if len(found) > 3000:
                raise OutgrownError("the search goes too deep")
            cost, _, at = heapq.heappop(todo)
            if self.automaton.accepts(at):
                return found[at]
            for target, classes in self._moves(at).items():
                if target not in found:
                    char = min((self._chars[index][0] for index in classes), key=_cost)
                    found[target] = found[at] + char
                    heapq.heappush(todo, (cost + _cost(char), len(found), target))
        raise AssertionError("a state from which no text can be finished")


def _cost(char: str) -> int:
    return 0 if char in "]}" else 12 if char in "[{" else 2


def _some(points: np.ndarray[Any, Any]) -> list[int]:
    points = points[(points < 0xD800) | (points > 0xDFFF)]
    return [int(points[n * (len(points) - 1) // 6]) for n in range(min(7, len(points)))]


@cache
def texts_of(name: str) -> Texts:
    return Texts(CASES[name].schema if name in CASES else RAW[name][0])


def validator(schema: Any) -> Any:
    return jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema, format_checker=FORMATS)


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize("name", CASES)
def test_values_that_fit_are_accepted_and_others_are_not(name: str) -> None:
    case, texts = CASES[name], texts_of(name)
    assert [value for value in case.valid if not texts.takes(dumped(value))] == []
    assert [value for value in case.invalid if texts.takes(dumped(value))] == []


@pytest.mark.parametrize("name", CASES)
def test_the_cases_are_right(name: str) -> None:
    """Values that are invalid only because of the style are those in another order, and numbers that are too long."""
    valid = validator(CASES[name].schema).is_valid
    assert [value for value in CASES[name].valid if not valid(value)] == []


@pytest.mark.parametrize("name", RAW)
def test_texts_are_in_one_style(name: str) -> None:
    _, accepted, refused = RAW[name]
    texts = Texts(RAW[name][0])
    assert [text for text in accepted if not texts.takes(text)] == []
    assert [text for text in refused if texts.takes(text)] == []


@pytest.mark.parametrize("name", CASES)
def test_random_texts_are_json_and_valid(name: str) -> None:
    texts, draw, is_valid = texts_of(name), random.Random(name), validator(CASES[name].schema).is_valid
    for _ in range(60):
        text = texts.walk(draw)
        assert is_valid(json.loads(text)), text
        text.encode()


def test_formats_are_those_of_other_readers() -> None:
    """Random texts of formats are read by Python's own modules."""
    import ipaddress
    import uuid

    readers = {
        "date": datetime.date.fromisoformat,
        "date-time": datetime.datetime.fromisoformat,
        "ipv4": ipaddress.IPv4Address,
        "ipv6": ipaddress.IPv6Address,
        "uuid": uuid.UUID,
    }
    for name, parse in readers.items():
        texts, draw = texts_of(name), random.Random(0)
        for _ in range(200):
            parse(json.loads(texts.walk(draw)))  # type: ignore[operator]


# ------------------------------------------------------------------------------------------ at random

_KEYS = st.sampled_from("abc")
_STRINGS = st.text('ab1"\\\né', max_size=3)
_NUMBERS = st.one_of(st.integers(-12, 120), st.sampled_from([0.5, 1.5, -2.25, 10.75, 99.5, 100.125]))
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _STRINGS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=5,
)


def _maybe(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


_COUNT = st.integers(0, 3)
_LEAVES = st.one_of(
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"type": ["integer", "null"]}, {"type": "string"}, False]),
    st.builds(lambda values: {"enum": values}, st.lists(_VALUES, min_size=1, max_size=3)),
    st.builds(
        lambda kind, more: {"type": kind, **more},
        st.sampled_from(["integer", "number"]),
        _maybe(
            minimum=_NUMBERS,
            maximum=_NUMBERS,
            exclusiveMinimum=_NUMBERS,
            exclusiveMaximum=_NUMBERS,
            multipleOf=st.sampled_from([2, 3, 7, 12]),
        ),
    ),
    st.builds(
        lambda more: {"type": "string", **more},
        _maybe(
            minLength=_COUNT,
            maxLength=_COUNT,
            pattern=st.sampled_from(
                ["a", "^a", '[b"\\\\]$', "^[^a]*$", "^(a|1)+$", "^a|b$", "\\n", "^$", "(?!a)b", "^.{2}"]
            ),
            **{"not": st.sampled_from([{"pattern": "^(a+)+$"}, {"pattern": "1$"}, {"minLength": 2}, {"const": "a"}])},
        ),
    ),
    st.sampled_from([{"$ref": "#/$defs/part"}, {"$ref": "#"}]),
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.builds(
        lambda more, others: {"type": "object", "additionalProperties": others, **more},
        _maybe(
            properties=st.dictionaries(_KEYS, inner, max_size=3),
            required=st.lists(_KEYS, unique=True, max_size=2),
            minProperties=st.integers(0, 2),
            maxProperties=_COUNT,
            patternProperties=st.dictionaries(st.sampled_from(["^a", "[bc]"]), inner, max_size=2),
            propertyNames=st.sampled_from([{"enum": ["a", "b"]}, {"pattern": "^[ac]"}, {"maxLength": 1}]),
        ),
        st.one_of(st.just(False), inner),
    )
    arrays = st.builds(
        lambda more, items: {"type": "array", "items": items, **more},
        _maybe(
            prefixItems=st.lists(inner, min_size=1, max_size=2),
            minItems=_COUNT,
            maxItems=_COUNT,
            contains=inner,
            uniqueItems=st.booleans(),
        ),
        inner,
    )
    together = st.builds(
        lambda keyword, branches: {keyword: branches},
        st.sampled_from(["anyOf", "allOf", "oneOf"]),
        st.lists(inner, min_size=1, max_size=3),
    )
    logic = st.builds(
        lambda schema, more: {**schema, **more} if isinstance(schema, dict) else more,
        inner,
        st.one_of(
            st.builds(lambda schema: {"not": schema}, inner),
            st.builds(lambda schema, more: {"if": schema, **more}, inner, _maybe(**{"then": inner, "else": inner})),
            st.builds(
                lambda names, more: {"type": "object", "dependentRequired": names, **more},
                st.dictionaries(_KEYS, st.lists(_KEYS, unique=True, max_size=2), min_size=1, max_size=2),
                _maybe(dependentSchemas=st.dictionaries(_KEYS, inner, max_size=1)),
            ),
        ),
    )
    listed = st.builds(
        lambda values, schema: {"enum": values, **(schema if isinstance(schema, dict) else {})},
        st.lists(_VALUES, min_size=1, max_size=5),
        inner,
    )
    open_ones = st.builds(
        lambda members, required: {"type": "object", "properties": members, "required": required},
        st.dictionaries(_KEYS, inner, min_size=1, max_size=2),
        st.lists(_KEYS, unique=True, max_size=1),
    )
    overlapping = st.builds(
        lambda keyword, branches, more: {keyword: branches if keyword == "oneOf" else branches[0], **more},
        st.sampled_from(["oneOf", "not"]),
        st.lists(st.one_of(objects, open_ones, arrays), min_size=2, max_size=3),
        st.sampled_from([{}, {"type": "object"}, {"type": ["object", "array"]}]),
    )
    return st.one_of(objects, arrays, together, logic, listed, open_ones, overlapping)


def _rooted(schema: Any, part: Any) -> Any:
    """With the part that its references go to."""
    return {**schema, "$defs": {"part": part}} if isinstance(schema, dict) else schema


SCHEMAS = st.builds(
    _rooted, st.recursive(_LEAVES, _schemas, max_leaves=6), st.recursive(_LEAVES, _schemas, max_leaves=3)
)


def orders(value: Any) -> Iterator[Any]:
    """The value with its properties in all orders."""
    if isinstance(value, list):
        yield from map(list, itertools.product(*map(list, map(orders, value))))
    elif isinstance(value, dict):
        for keys in itertools.permutations(value):
            for values in itertools.product(*(list(orders(value[key])) for key in keys)):
                yield dict(zip(keys, values, strict=True))
    else:
        yield value


@settings(max_examples=400)
@given(SCHEMAS, st.lists(_VALUES, max_size=8), st.integers(0, 1000))
def test_random_schemas_agree_with_a_validator(schema: Any, values: list[Any], seed: int) -> None:
    is_valid = validator(schema).is_valid
    try:
        texts = Texts(schema)
    except (NotRegularError, UnreadError):
        return
    except ConstraintError as error:
        is_said = "'uniqueItems'" in str(error)
        assert is_said or not any(map(is_valid, values))
        return
    draw = random.Random(seed)
    try:
        for _ in range(10):
            text = texts.walk(draw, 20)
            assert is_valid(json.loads(text)), text
            values = [*values, json.loads(text)]
    except OutgrownError:  # by the search for an end of what is inside itself
        texts = Texts(schema)
    for value in values:
        taken = any(texts.takes(dumped(other)) for other in orders(value))
        may_differ = "$" in json.dumps(schema) and "\\n" in dumped(value)  # Python's "$" may stand before a newline
        assert taken == is_valid(value) or (may_differ and not taken), value


@settings(max_examples=400)
@given(
    st.decimals(-200, 200, places=3), st.decimals(0, 30, places=2), st.booleans(), st.booleans(), st.integers(0, 1000)
)
def test_bounds_of_numbers(low: Any, width: Any, low_open: bool, high_open: bool, seed: int) -> None:
    low, high = float(low), float(low + width)
    schema = {
        "type": "number",
        "exclusiveMinimum" if low_open else "minimum": low,
        "exclusiveMaximum" if high_open else "maximum": high,
    }
    is_valid = validator(schema).is_valid
    near = [round(bound + step, 4) for bound in (low, high) for step in (-1, -0.01, -0.0001, 0, 0.0001, 0.01, 1, 10)]
    if low == high and (low_open or high_open):
        with pytest.raises(ConstraintError, match="no value fits"):
            schema_rules(schema)
        return
    texts, draw = Texts(schema), random.Random(seed)
    for value in (*near, *map(int, near)):
        is_small = 0 < abs(value) < 1e-4  # written with an exponent
        assert texts.takes(repr(value)) == is_valid(value) or (is_small and is_valid(value)) or str(value) == "-0.0"
    for _ in range(10):
        text = texts.walk(draw, 8)
        assert is_valid(json.loads(text)), text


# ------------------------------------------------------------------------------- types of the language


class Color(enum.Enum):
    RED = "red"
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0
    label: str | None = None


class Movie(TypedDict, total=False):
    title: str
    year: int
    seen: datetime.date


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, pydantic.Field(ge=1, le=9)] = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    tags: set[Color] = pydantic.Field(default_factory=set, json_schema_extra={"uniqueItems": False})


class Home(pydantic.BaseModel):
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    color: Color
    where: Point
    since: datetime.datetime
    codes: dict[str, list[int]]
    pair: tuple[int, str] = (1, "a")
    zip_code: Annotated[str, pydantic.Field(pattern=r"^\d{5}$")]


TYPES: list[tuple[Any, list[Any]]] = [
    (Point, [{"x": 1}, {"x": 1, "y": 1.5, "label": None}, {"x": -1, "label": "a"}]),
    (Movie, [{}, {"title": "a", "seen": "2024-02-29"}]),
    (int | None, [1, None]),
    (int | str | list[bool], [1, "a", [True]]),
    (list[Color], [[], ["red", 2]]),
    (dict[str, float], [{}, {"a": 1.5}]),
    (dict[Literal["a", "b"], int], [{"a": 1}]),
    (list[Point], [[{"x": 1}]]),
    (tuple[int, str], [[1, "a"]]),
    (datetime.datetime, ["2024-02-29T10:00:00Z"]),
    (list[datetime.date], [["2024-02-29"]]),
    (set[Literal["a", "b", 3]], [[], ["b"], [3, "a"]]),
    (set[bool], [[], [True, False]]),
    (frozenset[Color], [["red", 2]]),
    (Cat, [{"kind": "cat"}, {"kind": "cat", "lives": 3}]),
    (
        Home,
        [
            {"pet": {"kind": "dog", "tags": ["red"]}, "color": 2, "where": {"x": 1}, "since": "2024-02-29T10:00:00Z",
             "codes": {"a": [1]}, "zip_code": "12345"},
            {"pet": {"kind": "cat"}, "color": "red", "where": {"x": 1, "y": 2.0}, "since": "2024-02-29T10:00:00Z",
             "codes": {}, "pair": [2, "b"], "zip_code": "00000"},
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(kind) for kind, _ in TYPES])
def test_types_of_the_language(kind: Any, values: list[Any]) -> None:
    """Random texts are read back as the type; the values, as other libraries write them, are accepted."""
    constraint, read = typed(kind)
    assert constraint is not None
    texts, draw = Texts(json.loads(str(constraint.value))), random.Random(0)
    assert [value for value in values if not texts.takes(dumped(value))] == []
    for _ in range(40):
        read(texts.walk(draw))


# ------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("schema", "keyword", "pointer"),
    [
        ({"type": "object", "properties": {"a/b": {"minContains": 2}}}, "'minContains'", "#/properties/a~1b"),
        ({"if": {}, "then": {"minimum": "a"}}, "'minimum'", "#/then"),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "'uniqueItems'", "#"),
        ({"type": "array", "items": {"maxContains": 2}}, "'maxContains'", "#/items"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$dynamicRef": "#a"}}}, "'$dynamicRef'", "#/$defs/a"),
        ({"type": "object", "properties": {"a": {"$reff": "#"}}}, "'$reff'", "#/properties/a"),
        ({"enum": ["a"], "anyOf": [{"const": "a"}, {"maxContains": 2}]}, "'maxContains'", "#/anyOf/1"),
        ({"anyOf": [{"type": "null"}, {"minimun": 3}]}, "'minimun'", "#/anyOf/1"),
        ({"type": "string", "format": "idn-email"}, "'format'", "#"),
        ({"$ref": "https://example.org/a.json"}, "'$ref'", "#"),
        ({"items": {"$ref": "#/$defs/b"}, "$defs": {"a": {}}, "type": "array"}, "'$ref'", "#/items"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "'$ref'", "#/$defs/a"),
        ({"type": "text"}, "'type'", "#"),
        ({"type": "string", "maxLength": -1}, "'maxLength'", "#"),
        ({"type": "string", "minLength": "a"}, "'minLength'", "#"),
        ({"type": "integer", "minimum": "a"}, "'minimum'", "#"),
        ({"type": "integer", "multipleOf": 0}, "'multipleOf'", "#"),
        ({"type": "object", "required": "a"}, "'required'", "#"),
        ({"type": "object", "properties": []}, "'properties'", "#"),
        ({"type": "object", "properties": {"a": 3}}, "3 is not a schema", "#/properties/a"),
        ({"enum": 3}, "'enum'", "#"),
        ({"anyOf": []}, "'anyOf'", "#"),
        ({"type": "string", "pattern": r"(a*)b\1"}, "'pattern'", "#"),
        ({"type": "array", "items": {"type": "string", "pattern": r"\bword"}}, "'pattern'", "#/items"),
        ({"type": "string", "pattern": "(?<=a)b"}, "'pattern'", "#"),
        ({"const": "\ud800"}, "'const'", "#"),
        ({"unevaluatedProperties": False, "type": "object"}, "'unevaluatedProperties'", "#"),
        ({"type": "object", "dependentRequired": {"a": "b"}}, "'dependentRequired'", "#"),
        ({"type": "object", "dependencies": ["b"]}, "'dependencies'", "#"),
        ({"type": "string", "format": "datetime"}, "'format'", "#"),
        ({"type": "string", "format": "iri"}, "'format'", "#"),
    ],
)
def test_refusals_name_the_keyword_and_its_place(schema: Any, keyword: str, pointer: str) -> None:
    with pytest.raises(ConstraintError) as raised:
        schema_rules(schema)
    assert f"{keyword} at {pointer}:" in str(raised.value) or f" at {pointer}: {keyword}" in str(raised.value)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 3},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "array", "minItems": 1, "items": False},
        {"type": "array", "prefixItems": [{"type": "integer"}, False], "minItems": 2},
        closed({"a": {"type": "integer"}}, "b"),
        closed({"a": False}, "a"),
        closed({}, minProperties=1),
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"enum": ["a"], "type": "integer"},
        {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6},
    ],
)
def test_contradictions_are_said(schema: Any) -> None:
    with pytest.raises(ConstraintError, match="no value fits"):
        schema_rules(json.dumps(schema))


def test_a_contradiction_has_a_place() -> None:
    inner = {"type": "integer", "minimum": 3, "maximum": 2}
    with pytest.raises(ConstraintError, match="#/properties/a/items"):
        schema_rules(closed({"a": {"type": "array", "items": inner, "minItems": 1}}, "a"))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"a"', "null", '{"maximum": NaN}', "[" * 100_000])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(ConstraintError, match="json_schema"):
        schema_rules(text)


def test_a_dict_that_is_no_json_is_refused() -> None:
    for schema in ({"const": float("nan")}, {"const": {1, 2}}):
        with pytest.raises(ConstraintError, match="cannot be written as JSON"):
            schema_rules(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"type": "array", "uniqueItems": True}, {"type": "array"}]},
        {"type": "number", "multipleOf": 0.01},
        {"type": "integer", "multipleOf": 1007},
        {"type": "object", "additionalProperties": {"type": "null"}, "minProperties": 2},
        {"type": "string", "pattern": r"\p{L}"},
        {"type": "string", "not": {"format": "date"}},
        {"type": "number", "not": {"multipleOf": 0.5}},
        {"type": "object", "not": {"additionalProperties": {"type": "null"}}},
        {"type": "object", "not": {"required": [f"name {n}" for n in range(1000)]}},
    ],
)
def test_what_is_beyond_an_automaton_says_so(schema: Any) -> None:
    with pytest.raises(NotRegularError):
        schema_automaton(json.dumps(schema))


@pytest.mark.parametrize(
    ("draft", "excluded"),
    [
        ("draft-04", {"type": "array", "contains": {"const": 1}}),
        ("draft-04", {"const": 1}),
        ("draft-04", {"type": "integer", "exclusiveMinimum": 3}),
        ("draft-04", {"if": {"type": "string"}, "then": {"minLength": 2}}),
        ("draft-06", {"type": "integer", "minimum": 1, "exclusiveMinimum": True}),
        ("draft-07", {"$ref": "#/definitions/text", "maxLength": 2}),
        ("draft-07", {"dependentRequired": {"a": ["b"]}}),
        ("draft-07", {"prefixItems": [{"type": "null"}]}),
        ("draft/2019-09", {"prefixItems": [{"type": "null"}]}),
        ("draft/2019-09", {"dependencies": {"a": ["b"]}}),
        ("draft/2020-12", {"items": [{"type": "null"}]}),
    ],
)
def test_what_a_draft_passes_over_excludes_nothing(draft: str, excluded: dict[str, Any]) -> None:
    named = {"$schema": f"http://json-schema.org/{draft}/schema#", "definitions": {"text": {"type": "string"}}}
    for schema in ({"not": excluded}, {"oneOf": [excluded, {"maxItems": 1}]}, {"not": {"not": {"not": excluded}}}):
        with pytest.raises(NotRegularError, match="the draft of the schema"):
            schema_automaton({**named, **schema})
    schema_automaton({**named, "allOf": [excluded]})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "maxLength": 255, "not": {"pattern": r"\s(a|b){9}"}},
        {"oneOf": [{"type": "string", "pattern": "foo", "maxLength": 100}, {"type": "string", "pattern": "bar"}]},
        {"type": "string", "allOf": [{"pattern": f"(a|b)*a(a|b){{{n}}}"} for n in range(30)]},
    ],
)
def test_what_is_too_large_is_left_to_others(schema: Any, vocab: Vocab) -> None:
    with contextlib.suppress(NotRegularError):
        compile_json_schema(schema, vocab)


# ------------------------------------------------------------- what readers of schemas do not agree on

_WORD: dict[str, Any] = {"type": "string", "pattern": r"^\w$"}
_LONG_TIME = "2024-02-29T00:00:00.1234567890123Z"  # of more digits than ours have
_BIG = 99_999_999_999
_INT32 = {"type": "integer", "format": "int32"}


@pytest.mark.parametrize(
    ("schema", "left", "unsure"),
    [
        ({"enum": ["é", "!"], "not": _WORD}, ["!"], ["é", "a"]),
        ({"enum": ["é\u00a0", "!"], "not": {"pattern": r"^\W\s$"}}, ["!"], ["é\u00a0"]),
        ({"enum": ["é", "a"], "if": _WORD, "then": {"const": "a"}}, ["a"], ["é"]),
        ({"enum": ["é", "a", 1], "not": {"enum": ["é"], "pattern": r"^\w$"}}, ["a", 1], ["é"]),
        ({"enum": ["é", "a", 1], "not": {"enum": ["é", "a"], "not": _WORD}}, ["a", 1], ["é"]),
        ({"enum": [["é"], ["!"]], "not": {"items": _WORD}}, [["!"]], [["é"]]),
        ({"enum": [{"é": 1}, {"a": "b"}], "not": {"patternProperties": {r"^\w$": INT}}}, [{"a": "b"}], [{"é": 1}]),
        ({"enum": [{"é": "a"}, {"é": 1}, 2], "patternProperties": {r"^\w$": INT}}, [{"é": 1}, 2], [{"é": "a"}]),
        ({"enum": [_LONG_TIME, 1], "not": {"type": "string", "format": "date-time"}}, [1], [_LONG_TIME]),
        ({"enum": ["a b@c", 1], "not": {"type": "string", "format": "email"}}, [1], ["a b@c"]),
        ({"type": ["integer", "null"], "not": _INT32}, [None], [1, _BIG]),
        ({"enum": [_BIG, "a"], "if": _INT32, "then": False}, ["a"], [_BIG, 1]),
    ],
)
def test_what_may_fit_to_some_reader_is_not_outside(schema: Any, left: list[Any], unsure: list[Any]) -> None:
    texts = Texts(schema)
    assert [value for value in left if not texts.takes(dumped(value))] == []
    assert [value for value in unsure if texts.takes(dumped(value))] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"const": "é"}, _WORD),
        ({"const": _LONG_TIME}, {"type": "string", "format": "date-time"}),
        ({"const": "a b@c"}, {"type": "string", "format": "email"}),
        ({"const": _BIG}, _INT32),
        ({"type": "integer", "minimum": _BIG}, _INT32),
    ],
)
def test_choices_that_may_overlap_to_some_reader_are_told_apart_for_all(one: Any, other: Any) -> None:
    """What may fit both to any reader is left out."""
    objects = [{"properties": {"a": choice}, "required": ["a"], "type": "object"} for choice in (one, other)]
    lists = [{"type": "array", "items": choice, "minItems": 1, "maxItems": 1} for choice in (one, other)]
    value = one.get("const", one.get("minimum"))
    for choices, taken in (([one, other], value), ([other, one], value), (objects, {"a": value}), (lists, [value])):
        schema = {"oneOf": choices}
        assert not Texts(schema).takes(dumped(taken))
        document = Document(json.dumps(schema))
        assert not Reader(document).is_exclusive(document.root)


def test_patterns_of_names_that_are_the_same_hold_together() -> None:
    objects = [{"type": "object", "patternProperties": {"^.$": {"enum": some}}} for some in (["a", "b"], ["b", "c"])]
    texts = Texts({"allOf": objects})
    assert texts.takes('{"x": "b", "xy": 1}')
    assert not any(map(texts.takes, ('{"x": "a"}', '{"x": "c"}')))


def test_nothing_is_left_where_all_may_fit() -> None:
    for schema in ({"const": "é", "not": _WORD}, {"type": "integer", "not": {"format": "int32"}}):
        with pytest.raises(ConstraintError, match="no value fits"):
            schema_rules(json.dumps(schema))


@pytest.mark.parametrize("name", ["a", "pattern"])  # with a pattern, what must not fit is read otherwise
def test_choices_that_hold_themselves_are_told_apart(name: str) -> None:
    choices = [closed({key: {"$ref": "#"}}, key) for key in (name, "b")]
    texts = Texts({"oneOf": [*choices, {"type": "null"}]})
    assert texts.takes(dumped({name: {"b": {name: None}}}))
    assert not texts.takes(dumped({name: {}}))


def _inside(n_lists: int, value: Any) -> Any:
    for _ in range(n_lists):
        value = [value]
    return value


def test_a_deep_value_is_looked_at_once_a_schema() -> None:
    tree = {"$ref": "#/$defs/tree"}
    ways = {"anyOf": [{"type": "array", "items": tree}, {"type": "array", "items": tree, "maxItems": 5}]}
    deep = _inside(40, "a")
    texts = Texts({"$defs": {"tree": ways}, "allOf": [{"enum": [deep, 1]}, {"anyOf": [{"type": "integer"}, tree]}]})
    assert texts.takes("1")
    assert not texts.takes(dumped(deep))


def _doubled(n: int, keyword: str) -> dict[str, Any]:
    """References that double n times."""
    names = [f"d{index}" for index in range(n)]
    defs: dict[str, Any] = {
        name: {keyword: [{"$ref": f"#/$defs/{after}"}] * 2, "type": ["array", "string"]}
        for name, after in itertools.pairwise([*names, "end"])
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, "end": {"type": "string"}}}


_MEGABYTE = closed({f"property number {n}": {"type": "string", "maxLength": 9} for n in range(15_000)})
HOSTILE: dict[str, Any] = {
    "long strings": {"type": "string", "maxLength": 10**9},
    "at least long strings": {"type": "string", "minLength": 10**9},
    "many items": {"type": "array", "items": {"type": "null"}, "minItems": 10**6},
    "many items in many": {"type": "array", "minItems": 999, "items": {"type": "array", "items": INT, "minItems": 999}},
    "a megabyte": _MEGABYTE,
    "a large enum": {"enum": [f"value {n}" for n in range(50_000)]},
    "large enums that exclude": {"oneOf": [{"enum": list(range(n, 20_000 + n))} for n in (0, 10_000)]},
    "choices of choices": {"allOf": [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(40)]},
    "names that must not be": {"not": {"required": [f"name {n}" for n in range(1000)]}},
    "fewer of these": {"type": "object", "not": {"required": [f"name {n}" for n in range(200)]}},
    "back and forth": {"enum": ["a" * 5000 + "b", "aa"], "pattern": "^(a+)+$"},
    "a pattern of letters": {"type": "string", "pattern": "^" + "ab" * 50_000 + "$"},
    "a pattern of choices": {"type": "string", "pattern": "^(" + "|".join(f"w{n:05}" for n in range(14_000)) + ")$"},
    "a pattern of repeats": {"type": "string", "pattern": "(ab)*" * 20_000},
    "a long value": {"enum": ["ab" * 100_000], "pattern": "(a|b)*a(a|b){12}$"},
    "choices that overlap": {"oneOf": [closed({f"p{m}": {} for m in range(n)}) for n in range(60)]},
    "objects that are not these": {"not": {"anyOf": [{"properties": {f"p{n}": INT}} for n in range(60)]}},
    "doubled items": _doubled(40, "prefixItems"),
    "doubled choices": _doubled(40, "anyOf"),
    "doubled parts": _doubled(40, "allOf"),
    "deep": json.loads('{"type": "array", "items": ' * 300 + "{}" + "}" * 300),
    "a long number": {"type": "integer", "minimum": 10**4000},
    "a small number": {"type": "number", "minimum": 1e-300},
    "large bounds": {"type": "number", "minimum": -1e308, "maximum": 1e308},
    "a slow pattern": {"type": "string", "pattern": "^((a{0,40}b?){0,40}c?){0,10}$", "maxLength": 10_000},
    "patterns": {"allOf": [{"type": "string", "pattern": f"(a|b)*a(a|b){{{n}}}"} for n in range(30)]},
    "items that there must be": {"maxItems": 16, "type": "array",
                                 "allOf": [{"contains": {"const": n}} for n in range(9)]},
    "no rest at all": {"anyOf": [{"type": "null"}, {"type": "integer", "allOf": [
        {"multipleOf": 8}, {"multipleOf": 125}, {"not": {"multipleOf": 1000}}],
        "minimum": -(10**18) - 1, "maximum": 10**18 + 1}]},
    "names in names": {"type": "object", "properties": {"x" * n: {"type": "null"} for n in range(1, 300)},
                       "additionalProperties": {"type": "null"}},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_schemas_that_ask_too_much_end_soon(name: str, vocab: Vocab) -> None:
    begin = time.perf_counter()
    with contextlib.suppress(ConstraintError, NotRegularError):
        compile_json_schema(json.dumps(HOSTILE[name]), vocab).matcher().mask()
    assert time.perf_counter() - begin < 15


def test_lists_in_lists_take_room_by_their_depth() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for n in range(50):
        schema = {"type": "array", "items": schema} if n % 2 else {"items": schema}
    texts = Texts(schema)
    assert texts.takes("[" * 50 + "1, 2" + "]" * 50)
    assert not any(texts.takes("[" * 50 + rest) for rest in ('"a"' + "]" * 50, "1" + "]" * 49, "[1]" + "]" * 50))


@pytest.mark.parametrize(
    "pattern",
    [
        "^(?!b|(?!a^b)a)[abc]$",
        "^(?!b|(?!a$b)a)[abc]$",
        "^(?!1$b)1*$",
        "(?!a^b)a",
        "(?=a^b)a",
        "^(?:1b|(?!a^b)[b1]+)$",
        "^(?!(?:b^c)*a)[ab]$",
        "^(?!(?:b$c)?a)[ab]$",
        "^(?!(?:b^c)+a)[ab]$",
        "^(?:b^c)*a$",
        "^(?:b^c)?a$",
        "^(?:b$c){0,2}a$",
        "^(?:b$c){1,2}a$|b",
        "a(?:(?:b^c)*|b)$",
    ],
)
def test_parts_that_are_never_found(pattern: str) -> None:
    """Anchors between characters: what is after a lookahead for them, or around repeats of them, goes on without."""
    texts = ["".join(chars) for n in range(4) for chars in itertools.product("abc1", repeat=n)]
    found = [some for some in texts if re.search(pattern, some)]
    if not found:
        with pytest.raises(ConstraintError):
            Texts({"type": "string", "pattern": pattern})
        return
    taken = Texts({"type": "string", "pattern": pattern})
    assert [some for some in texts if taken.takes(dumped(some))] == found


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)*$", "^(a*)*b$", "(x+x+)+y"])
def test_patterns_are_tried_on_values_in_one_pass(pattern: str) -> None:
    """What goes back and forth over a text would take longer than the world is old."""
    value = "a" * 200 + "x" * 200
    begin = time.perf_counter()
    texts = Texts({"anyOf": [{"enum": [value, 1], "pattern": pattern}, {"enum": [2], "not": {"const": value}}]})
    assert texts.takes("1")
    assert not texts.takes(dumped(value))
    named = {"type": "object", "properties": {value: INT}, "patternProperties": {pattern: {"type": "null"}}}
    assert Texts({**named, "additionalProperties": False}).takes(dumped({value: 1}))
    assert time.perf_counter() - begin < 5


def test_optional_properties_take_room_by_their_number() -> None:
    """Twice as many take about twice the positions, not four times."""

    def size(n: int) -> int:
        node = schema_rules(closed({f"p{index:03}": {"type": "null"} for index in range(n)}))[0]
        return len(re.findall("Chars", repr(node)))

    assert size(200) < 2.8 * size(100)


def test_what_is_not_supported_in_names_is_refused_by_place() -> None:
    schema = {"type": "object", "patternProperties": {r"\bword": {"type": "null"}}, "additionalProperties": False}
    with pytest.raises(ConstraintError, match=r"'patternProperties' at #/items: .*word boundary"):
        schema_rules({"type": "array", "items": schema})


# ---------------------------------------------------------------------------------------- as a grammar


def test_a_grammar_walks_by_tokens(vocab: Vocab) -> None:
    """Masks lead to valid texts, and what has no choice is forced."""
    schema = CASES["object"].schema
    grammar, draw = lazily_loaded(schema, vocab), random.Random(0)
    assert grammar.matcher().forced() == '{"name": "'
    for _ in range(20):
        matcher, ids = grammar.matcher(), []
        while not matcher.ended:
            allowed = np.flatnonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little"))
            ends = [token for token in allowed.tolist() if token in (ord('"'), 256)]
            token = ends[0] if ends and len(ids) > 30 else draw.choice(allowed.tolist())
            assert matcher.accept(token)
            ids += [token] if token < 256 else []
        assert validator(schema).is_valid(json.loads(bytes(ids)))


def test_a_name_for_errors(vocab: Vocab) -> None:
    assert compile_json_schema({"type": "null"}, vocab).name == 'json_schema \'{"type": "null"}\''
    with pytest.raises(ConstraintError, match="json_schema"):
        compile_json_schema({"type": "null"}, Vocab([b"a", b""], [1]))


def test_the_benchmark_tells_fates_apart(vocab: Vocab, tmp_path: Path) -> None:
    files = {
        "a.json": ({"type": "integer", "maximum": 5}, [(True, 5), (False, 6)]),
        "b/b.json": ({"type": "integer", "multipleOf": 1009}, [(True, 1009)]),
        "c.json": ({"minContains": 1}, [(False, 1)]),
        "d.json": ({"type": "integer"}, [(False, 1)]),
        "e.json": ({"type": "integer"}, [(True, 1.5)]),
    }
    for name, (schema, tests) in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        given_tests = [{"valid": valid, "data": data} for valid, data in tests]
        path.write_text(json.dumps({"schema": schema, "tests": given_tests}))
    (tmp_path / "other.json").write_text("[]")
    (tmp_path / "several.json").write_text((tmp_path / "a.json").read_text().join(("[3, ", "]")))
    found = measure(read(tmp_path), vocab, lambda text: list(text.encode()))
    fates = {name: fate.partition(":")[0] for name, fate in found["ours"].fates.items()}
    assert fates == {
        "a.json": "all right",
        "b/b.json": "not regular",
        "c.json": "refused",
        "d.json": "invalid accepted",
        "e.json": "valid refused",
        "several.json#1": "all right",
    }
    assert found["ours, then llguidance"].fates["b/b.json"] == "all right"
    assert found["llguidance"].row()["all right"] == 3
    assert "again mean us" in table(found)
    twice = measured(read(tmp_path), lambda: vocab, lambda text: list(text.encode()), n_passes=2)["ours"]
    assert twice.fates == found["ours"].fates
    assert len(twice.masks) == len(found["ours"].masks)
    assert len(twice.means_us) == 2
    assert twice.row()["mask mean us"] <= min(twice.means_us)
    any_value = bounded(
        {"schema": {"items": INT}, "tests": [{"valid": True, "data": data} for data in ([1], [[[[]]]])]}
    )
    assert Texts(any_value["schema"]).takes('{"a": [{"b": 1}]}')
    assert [test["data"] for test in any_value["tests"]] == [[1]]


def test_of_two_passes_the_least_of_each_time_counts():
    one = Figures({"a": "all right"}, [3.0], [1.0, 5.0], [2.0], [3e6])
    two = Figures({"a": "all right"}, [4.0], [2.0, 3.0], [1.0], [2.5e6])
    least = one.with_pass(two)
    assert (least.firsts, least.masks, least.again) == ([3.0], [1.0, 3.0], [1.0])
    assert least.means_us == [3e6, 2.5e6]
    with pytest.raises(ValueError, match="other results"):
        one.with_pass(Figures({"a": "refused"}, [4.0], [2.0, 3.0], [1.0], [2.5e6]))
