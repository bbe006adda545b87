"""Whether two shapes can be shown to have no value in common, as the choices of a `oneOf` must.

What is shown is true; shapes that are apart for reasons that are not looked at (two patterns, say) are not shown to be,
nor are those that have places in them which are being read.

Not here: what is done about it (`schema_reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from nbsglang.engine.grammar.schema_fitting import Fitting
from nbsglang.engine.grammar.schema_places import Sub, UnreadError
from nbsglang.engine.grammar.schema_shapes import (
    Array,
    Fixed,
    Found,
    Number,
    Object,
    Shape,
    String,
    joined,
    numbers,
    strings,
)
from nbsglang.engine.grammar.schema_values import same

_DEPTH = 6  # of items and properties that are looked into


class Apart:
    """Asks `alternatives` for the shapes of what parts must be and `fitting` for values; counts work with `spend`."""

    def __init__(
        self,
        alternatives: Callable[[Sub], tuple[Shape, ...]],
        fitting: Fitting,
        found: Found,
        spend: Callable[[int], None],
    ) -> None:
        self._alternatives = alternatives
        self._fitting, self._found = fitting, found
        self._spend = spend

    def shapes(self, one: Shape, other: Shape, depth: int = _DEPTH) -> bool:
        """Whether no value is of both shapes."""
        self._spend(1)
        if isinstance(one, Fixed) and isinstance(other, Fixed):
            return not same(one.value, other.value)
        if isinstance(one, Fixed):
            return self._is_not(one, other)
        if isinstance(other, Fixed):
            return self._is_not(other, one)
        if type(one) is not type(other):
            return True
        if isinstance(one, Number) and isinstance(other, Number):
            return numbers(one, other) is None
        if isinstance(one, String) and isinstance(other, String):
            return strings(one, other) is None
        if depth and isinstance(one, Array) and isinstance(other, Array):
            return self._arrays(one, other, depth)
        if depth and isinstance(one, Object) and isinstance(other, Object):
            return self._objects(one, other, depth)
        return False

    def _is_not(self, value: Fixed, other: Shape) -> bool:
        try:
            return not self._fitting.shape(value.value, other)
        except UnreadError:
            return False

    def _arrays(self, one: Array, other: Array, depth: int) -> bool:
        lengths = [shape.most for shape in (one, other) if shape.most is not None]
        least = max(one.least, other.least)
        if lengths and min(lengths) < least:
            return True
        n_looked = min(least, max(len(one.prefix), len(other.prefix)) + 1)
        return any(self._subs(one.item(index), other.item(index), depth) for index in range(n_looked))

    def _objects(self, one: Object, other: Object, depth: int) -> bool:
        """A property that both have and that is never the same will do, also one that one has and the other may not."""
        counts = [shape.most for shape in (one, other) if shape.most is not None]
        if counts and min(counts) < max(one.least, other.least):
            return True
        required = dict.fromkeys(one.required + other.required)
        each = ((one.members(name, self._found), other.members(name, self._found)) for name in required)
        return any(all(self._subs(a, b, depth) for a in some for b in others) for some, others in each)

    def _subs(self, one: Sub, other: Sub, depth: int) -> bool:
        if not one or not other or one == other:
            return self._read(joined(one, other)) == ()
        some, others = self._read(one), self._read(other)
        if some is None or others is None:
            return () in (some, others)
        return all(self.shapes(a, b, depth - 1) for a in some for b in others)

    def _read(self, sub: Sub) -> tuple[Shape, ...] | None:
        """The shapes; None if they are just being worked out."""
        try:
            return self._alternatives(sub)
        except UnreadError:
            return None
