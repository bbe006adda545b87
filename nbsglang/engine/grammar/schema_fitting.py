"""Whether a value that a schema lists fits schemas: keyword by keyword, as a validator finds out.

So it is told of single values what cannot be told of all: whether a pattern is not found in it, or that it fits one
choice of several.

Not here: the shapes of free values (`schema_reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

from nbsglang.engine.grammar.schema_formats import is_of_format
from nbsglang.engine.grammar.schema_logic import DEPENDENCIES, dependencies
from nbsglang.engine.grammar.schema_places import Denied, Document, Place, Sub, UnreadError
from nbsglang.engine.grammar.schema_search import Search
from nbsglang.engine.grammar.schema_shapes import Array, Fixed, Number, Object, Shape, String
from nbsglang.engine.grammar.schema_values import exact, identity, same

Own: TypeAlias = Callable[[Place], tuple[Shape, ...]]


class Fitting:
    """Whether values of a document fit its schemas; `own` are the shapes by the keywords of types alone.

    Readers of schemas differ in what patterns and formats mean. A value fits if it does to all of them; with `loose`,
    if it may to any. What must not fit is asked of the `opposite`. Each value is looked at once a schema.
    """

    def __init__(
        self, document: Document, own: Own, search: Search, opposite: Callable[[], Fitting], loose: bool
    ) -> None:
        self._document, self._own, self._search, self._loose = document, own, search, loose
        self._opposite = opposite
        self._known: dict[tuple[Place, Hashable], bool | None] = {}  # lists and objects by ids: the document holds them
        self._listed: dict[tuple[Place, str], frozenset[Hashable]] = {}

    def sub(self, value: Any, sub: Sub) -> bool:
        """Whether a value fits all places."""
        return _every(self.place(value, place) for place in sub)

    def place(self, value: Any, place: Place) -> bool:
        """Whether a value fits a place. Raises ConstraintError and NotRegularError, which name the place."""
        if isinstance(place.schema, bool):
            return place.schema
        key = place, id(value) if isinstance(value, list | dict) else (type(value), value)
        if key in self._known:
            known = self._known[key]
            if known is None:
                place.fail("it refers to itself without a value in between: it says nothing", "$ref", UnreadError)
            return known
        self._known[key] = None
        try:
            known = self._known[key] = _every(self._tests(value, place))
        finally:
            if self._known[key] is None:
                del self._known[key]
        return known

    def shape(self, value: Any, shape: Shape) -> bool:
        """Whether a value is one of a shape."""
        if isinstance(shape, Fixed):
            return same(value, shape.value)
        if isinstance(shape, Number):
            return isinstance(value, int | float) and not isinstance(value, bool) and _in_range(exact(value), shape)
        if isinstance(shape, String):
            return isinstance(value, str) and self._is_text(value, shape)
        if isinstance(shape, Array):
            return isinstance(value, list) and _is_count(len(value), shape) and self._is_list(value, shape)
        return isinstance(value, dict) and _is_count(len(value), shape) and self._is_object(value, shape)

    def _tests(self, value: Any, place: Place) -> Iterator[bool]:
        """Whether it fits each of the keywords."""
        self._document.spend(1)
        schema = place.schema
        if isinstance(schema, Denied):
            yield not self._opposite().sub(value, schema.sub)
            return
        yield _any(self.shape(value, shape) for shape in self._own(place))
        for keyword in ("enum", "const"):
            if keyword in schema:
                yield identity(value) in self._values(place, keyword)
        if "$ref" in schema:
            yield self.place(value, self._document.target(place))
        if "allOf" in schema:
            yield _every(self.place(value, branch) for branch in place.each("allOf"))
        if "anyOf" in schema:
            yield _any(self.place(value, branch) for branch in place.each("anyOf"))
        if "oneOf" in schema:
            yield self._is_of_one(value, place.each("oneOf"))
        for keyword in DEPENDENCIES:
            if keyword in schema:
                for name, with_it, asked in dependencies(place, keyword):
                    if isinstance(value, dict) and name in value:
                        yield self.shape(value, with_it) and (asked is None or self.place(value, asked))
        if "not" in schema:
            yield not self._opposite().place(value, place.at("not"))
        if "if" in schema:
            yield self._is_conditional(value, place)

    def _values(self, place: Place, keyword: str) -> frozenset[Hashable]:
        key = place, keyword
        if key not in self._listed:
            self._listed[key] = frozenset(map(identity, place.values(keyword)))
        return self._listed[key]

    def _is_of_one(self, value: Any, branches: list[Place]) -> bool:
        opposite = self._opposite()
        fits = [self.place(value, branch) for branch in branches]
        may = fits if opposite is self else [opposite.place(value, branch) for branch in branches]
        return any(it and sum(may) == its for it, its in zip(fits, may, strict=True))

    def _is_conditional(self, value: Any, place: Place) -> bool:
        yes, no = self.place(value, place.at("if")), not self._opposite().place(value, place.at("if"))
        then, other = (key not in place.schema or self.place(value, place.at(key)) for key in ("then", "else"))
        return (yes and then) or (no and other)

    def _is_text(self, value: str, shape: String) -> bool:
        found, loose = self._search.found, self._loose
        return (
            _is_count(len(value), shape)
            and value not in shape.others
            and all(found(pattern, value, loose) for pattern in shape.patterns)
            and not any(found(pattern, value, not loose) for pattern in shape.excluded)
            and (loose or all(is_of_format(name, value) for name in shape.formats))  # a format may say nothing
        )

    def _is_list(self, value: list[Any], shape: Array) -> bool:
        fits = _every(self.sub(item, shape.item(index)) for index, item in enumerate(value))
        has_some = _every(_any(self.sub(item, sub) for item in value) for sub in shape.some)
        is_unique = not shape.unique or len(set(map(identity, value))) == len(value)
        return fits and has_some and is_unique

    def _is_object(self, value: dict[str, Any], shape: Object) -> bool:
        if not value.keys() >= set(shape.required):
            return False
        reaches = _every(_any(self.sub(name, sub) for name in value) for sub in shape.reaching)
        named = _every(self.sub(name, shape.names) for name in value) if shape.names else True
        return reaches and named and _every(self._member(part, shape, name) for name, part in value.items())

    def _member(self, part: Any, shape: Object, name: str) -> bool:
        """Whether a property fits, whichever patterns of the shape are found in its name."""
        subs = shape.members(name, self._search.found)
        return (self._loose and len(subs) > 1) or _every(self.sub(part, sub) for sub in subs)


def _every(tests: Iterable[bool]) -> bool:
    """Whether all are true. All are looked at, so that what is not supported is refused wherever it stands."""
    return all(list(tests))


def _any(tests: Iterable[bool]) -> bool:
    """Whether one is true. All are looked at."""
    return any(list(tests))


def _in_range(value: Fraction, shape: Number) -> bool:
    if shape.is_integer and value.denominator != 1:
        return False
    if shape.low and (value < shape.low.value or (shape.low.is_open and value == shape.low.value)):
        return False
    if shape.high and (value > shape.high.value or (shape.high.is_open and value == shape.high.value)):
        return False
    if shape.is_broken and value.denominator == 1:
        return False
    is_multiple = all((value / step).denominator == 1 for step in shape.steps)
    return is_multiple and not any((value / step).denominator == 1 for step in shape.excluded)


def _is_count(count: int, shape: String | Array | Object) -> bool:
    return shape.least <= count and (shape.most is None or count <= shape.most)
