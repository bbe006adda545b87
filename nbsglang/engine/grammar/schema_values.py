"""JSON values as texts in the one style that is used, and whether a value fits a shape.

Not here: shapes as texts (`schema_nodes.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypeAlias

from nbsglang.engine.grammar.schema_formats import format_pattern
from nbsglang.engine.grammar.schema_places import Sub
from nbsglang.engine.grammar.schema_shapes import Array, Fixed, Number, Object, Shape, String

Alternatives: TypeAlias = Callable[[Sub], Iterable[Shape]]


def written(value: Any) -> str:
    """The text of a value: ", " and ": " between its parts, characters that need no escape as themselves."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same to JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def exact(value: int | float) -> Fraction:
    """A number as it is written."""
    return Fraction(value if isinstance(value, int) else repr(value))


def fits(value: Any, shape: Shape, alternatives: Alternatives) -> bool:
    """Whether a value is one of a shape; `alternatives` are the shapes of what an item or a property must be."""
    if isinstance(shape, Fixed):
        return same(value, shape.value)
    if isinstance(shape, Number):
        return isinstance(value, int | float) and not isinstance(value, bool) and _in_range(exact(value), shape)
    if isinstance(shape, String):
        return isinstance(value, str) and _is_text(value, shape)

    def all_fit(values: Iterable[tuple[Any, Sub]]) -> bool:
        return all(any(fits(part, inner, alternatives) for inner in alternatives(sub)) for part, sub in values)

    if isinstance(shape, Array):
        if not isinstance(value, list) or not _is_count(len(value), shape):
            return False
        return all_fit((item, shape.item(index)) for index, item in enumerate(value))
    if not isinstance(value, dict) or not _is_count(len(value), shape) or not value.keys() >= set(shape.required):
        return False
    named = all_fit((name, shape.names) for name in value) if shape.names else True
    return named and all_fit((part, shape.member(name)) for name, part in value.items())


def _in_range(value: Fraction, shape: Number) -> bool:
    if shape.is_integer and value.denominator != 1:
        return False
    if shape.low and (value < shape.low.value or (shape.low.is_open and value == shape.low.value)):
        return False
    if shape.high and (value > shape.high.value or (shape.high.is_open and value == shape.high.value)):
        return False
    return all((value / step).denominator == 1 for step in shape.steps)


def _is_text(value: str, shape: String) -> bool:
    if not _is_count(len(value), shape):
        return False
    found = all(re.search(pattern, value) and re.search(pattern, value, re.ASCII) for pattern in shape.patterns)
    return found and all(re.fullmatch(format_pattern(name), value) for name in shape.formats)


def _is_count(count: int, shape: String | Array | Object) -> bool:
    return shape.least <= count and (shape.most is None or count <= shape.most)
