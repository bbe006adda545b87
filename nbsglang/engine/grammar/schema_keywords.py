"""The keywords of strings, numbers, arrays and objects: read, checked, and made a shape.

Not here: keywords for all types (`schema_reader.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.schema_formats import format_names, format_objection
from nbsglang.engine.grammar.schema_patterns import searched
from nbsglang.engine.grammar.schema_places import NotRegularError, Place, Sub
from nbsglang.engine.grammar.schema_shapes import (
    Array,
    Bound,
    Number,
    Object,
    Shape,
    String,
    counted,
    numbers,
    ranged,
)
from nbsglang.engine.grammar.schema_values import exact
from nbsglang.errors import ConstraintError

KEYWORDS_OF = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "object": (
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
        "maxProperties",
    ),
}  # fmt: skip
NUMBER_FORMATS = {
    "int32": Number(True, Bound(Fraction(-(2**31))), Bound(Fraction(2**31 - 1))),
    "int64": Number(True, Bound(Fraction(-(2**63))), Bound(Fraction(2**63 - 1))),
    "double": Number(),  # as all numbers are written, each can be held as one
}


def shape_of(place: Place, kind: str, is_integer: bool, loose: bool) -> Iterable[Shape]:
    """The shape that the keywords of a type leave, if they leave any. Raises ConstraintError, which names the place.

    With `loose`, formats of numbers say nothing: JSON Schema does not know them.
    """
    makers: dict[str, Callable[[Place], Shape | None]] = {"string": _string, "array": _array, "object": _object}
    shape = _number(place, is_integer, loose) if kind == "number" else makers[kind](place)
    if shape is not None:
        yield shape


def _string(place: Place) -> Shape | None:
    patterns = () if "pattern" not in place.schema else (_text(place, "pattern"),)
    for pattern in patterns:
        _check_pattern(place, "pattern", pattern)
    name = _text(place, "format") if "format" in place.schema else None
    if name is not None and name not in NUMBER_FORMATS and format_objection(name):
        place.fail(f"{shown(name)} {format_objection(name)}", "format")
    formats = (name,) if name in format_names() and name is not None else ()
    return counted(String(_count(place, "minLength") or 0, _count(place, "maxLength"), patterns, formats))


def _number(place: Place, is_integer: bool, loose: bool) -> Shape | None:
    lows = _bounds(place, "minimum", "exclusiveMinimum")
    highs = _bounds(place, "maximum", "exclusiveMaximum")
    steps: tuple[Fraction, ...] = ()
    if "multipleOf" in place.schema:
        step = _value(place, "multipleOf")
        if step <= 0:
            place.fail("it must be above 0", "multipleOf")
        steps = (step,)
    low = max(lows, key=lambda bound: (bound.value, bound.is_open), default=None)
    high = min(highs, key=lambda bound: (bound.value, not bound.is_open), default=None)
    shape = ranged(Number(is_integer, low, high, steps))
    name = None if loose else place.schema.get("format")
    return numbers(shape, NUMBER_FORMATS[name]) if shape and isinstance(name, str) and name in NUMBER_FORMATS else shape


def _bounds(place: Place, keyword: str, exclusive: str) -> list[Bound]:
    """The bounds on one side; in the oldest draft the exclusive one is a boolean that is about the other."""
    schema = place.schema
    if isinstance(schema.get(exclusive), bool):
        return [Bound(_value(place, keyword), schema[exclusive])] if keyword in schema else []
    closed = [Bound(_value(place, keyword))] if keyword in schema else []
    return closed + ([Bound(_value(place, exclusive), True)] if exclusive in schema else [])


def _array(place: Place) -> Shape | None:
    schema = place.schema
    prefix: tuple[Sub, ...] = ()
    rest = "items"
    if "prefixItems" in schema:
        prefix = _each(place, "prefixItems")
    elif isinstance(schema.get("items"), list):
        prefix, rest = _each(place, "items"), "additionalItems"
    items = (place.at(rest),) if rest in schema else ()
    most = _count(place, "maxItems")
    unique = schema.get("uniqueItems", False)
    if not isinstance(unique, bool):
        place.fail(f"{shown(unique)} is neither true nor false", "uniqueItems")
    some = ((place.at("contains"),),) if "contains" in schema else ()
    return counted(
        Array(
            prefix, items, max(_count(place, "minItems") or 0, len(some)), most, some, place.pointer if unique else ""
        )
    )


def _object(place: Place) -> Shape | None:
    patterns = _schemas(place, "patternProperties")
    for pattern in patterns:
        _check_pattern(place, "patternProperties", pattern)
    required = place.schema.get("required", [])
    if isinstance(required, bool):  # of the draft before all that are supported: it is about the object around
        place.fail("it must be a list of names, in the schema of the object", "required")
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        place.fail(f"{shown(required)} is not a list of names", "required")
    return counted(
        Object(
            _schemas(place, "properties"),
            tuple(patterns.items()),
            (place.at("additionalProperties"),) if "additionalProperties" in place.schema else (),
            tuple(dict.fromkeys(required)),
            _count(place, "minProperties") or 0,
            _count(place, "maxProperties"),
            (place.at("propertyNames"),) if "propertyNames" in place.schema else (),
        )
    )


def _each(place: Place, keyword: str) -> tuple[Sub, ...]:
    found = place.schema[keyword]
    if not isinstance(found, list):
        place.fail(f"{shown(found)} is not a list of schemas", keyword)
    return tuple((place.at(keyword, index),) for index in range(len(found)))


def _schemas(place: Place, keyword: str) -> dict[str, Sub]:
    found = place.schema.get(keyword, {})
    if not isinstance(found, dict):
        place.fail(f"{shown(found)} is not an object of schemas", keyword)
    for name in found:
        if any("\ud800" <= char <= "\udfff" for char in name):
            place.fail(f"{shown(name)} holds a lone surrogate, which no text has", keyword)
    return {name: (place.at(keyword, name),) for name in found}


def _count(place: Place, keyword: str) -> int | None:
    if keyword not in place.schema:
        return None
    value = _value(place, keyword)
    if value < 0 or value.denominator != 1:
        place.fail(f"{shown(place.schema[keyword])} is not a count", keyword)
    return int(value)


def _value(place: Place, keyword: str) -> Fraction:
    value: Any = place.schema[keyword]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        place.fail(f"{shown(value)} is not a number", keyword)
    return exact(value)


def _text(place: Place, keyword: str) -> str:
    value = place.schema[keyword]
    if not isinstance(value, str):
        place.fail(f"{shown(value)} is not a text", keyword)
    return str(value)


def _check_pattern(place: Place, keyword: str, pattern: str) -> None:
    try:
        searched(pattern)
    except ConstraintError as error:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as reason:
            # Python and ECMAScript have not quite the same syntax, and others know more of it.
            raise NotRegularError(
                f"{keyword!r} at {place.pointer}: {shown(pattern)} is not a regular expression of Python: {reason}"
            ) from None
        place.fail(f"{shown(pattern)} cannot be used: {error}", keyword)
