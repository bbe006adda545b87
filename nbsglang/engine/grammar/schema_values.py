"""JSON values as texts in the one style that is used, and whether a value fits a shape.

Not here: shapes as texts (`schema_nodes.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypeAlias

from nbsglang.engine.grammar.schema_formats import is_of_format
from nbsglang.engine.grammar.schema_places import Sub
from nbsglang.engine.grammar.schema_shapes import Array, Fixed, Number, Object, Shape, String, is_found, may_be_found

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


class Fitting:
    """Whether values of a document fit shapes; `alternatives` are the shapes of what an item or a property must be.

    Readers of schemas differ in what patterns and formats mean. A value fits if it does to all of them; with `loose`,
    if it may to any, so that one that does not fit certainly does not. Each list and object is looked at once a schema.
    """

    def __init__(self, alternatives: Alternatives, loose: bool = False) -> None:
        self._alternatives = alternatives
        self._loose = loose
        self._known: dict[tuple[int, Sub], bool] = {}  # by the values' ids, which are the document's as long as it is

    def sub(self, value: Any, sub: Sub) -> bool:
        """Whether a value fits all places."""
        if not isinstance(value, list | dict):
            return any(self.shape(value, shape) for shape in self._alternatives(sub))
        key = id(value), sub
        if key not in self._known:
            self._known[key] = any(self.shape(value, shape) for shape in self._alternatives(sub))
        return self._known[key]

    def shape(self, value: Any, shape: Shape) -> bool:
        """Whether a value is one of a shape."""
        if isinstance(shape, Fixed):
            return same(value, shape.value)
        if isinstance(shape, Number):
            return isinstance(value, int | float) and not isinstance(value, bool) and _in_range(exact(value), shape)
        if isinstance(shape, String):
            return isinstance(value, str) and _is_text(value, shape, self._loose)
        if isinstance(shape, Array):
            if not isinstance(value, list) or not _is_count(len(value), shape):
                return False
            return all(self.sub(item, shape.item(index)) for index, item in enumerate(value))
        if not isinstance(value, dict) or not _is_count(len(value), shape) or not value.keys() >= set(shape.required):
            return False
        named = all(self.sub(name, shape.names) for name in value) if shape.names else True
        return named and all(self._member(part, shape, name) for name, part in value.items())

    def _member(self, part: Any, shape: Object, name: str) -> bool:
        """Whether a property fits, whichever patterns of the shape are found in its name."""
        subs = shape.members(name)
        return (self._loose and len(subs) > 1) or all(self.sub(part, sub) for sub in subs)


def _in_range(value: Fraction, shape: Number) -> bool:
    if shape.is_integer and value.denominator != 1:
        return False
    if shape.low and (value < shape.low.value or (shape.low.is_open and value == shape.low.value)):
        return False
    if shape.high and (value > shape.high.value or (shape.high.is_open and value == shape.high.value)):
        return False
    return all((value / step).denominator == 1 for step in shape.steps)


def _is_text(value: str, shape: String, loose: bool) -> bool:
    if not _is_count(len(value), shape):
        return False
    if loose:  # a format may say nothing
        return all(may_be_found(pattern, value) for pattern in shape.patterns)
    found = all(is_found(pattern, value) for pattern in shape.patterns)
    return found and all(is_of_format(name, value) for name in shape.formats)


def _is_count(count: int, shape: String | Array | Object) -> bool:
    return shape.least <= count and (shape.most is None or count <= shape.most)
