"""Schemas as choices of shapes: what each keyword means, what holds together, and what is refused.

The meaning is that of JSON Schema 2020-12; `definitions`, arrays in `items`, `additionalItems` and boolean
`exclusiveMinimum` of older drafts are understood. A keyword of JSON Schema that is not supported is refused by name,
never ignored.

Not here: the keywords of one type (`schema_keywords.py`), which keywords there are (`schema_words.py`), which choices
of `oneOf` exclude each other (`schema_apart.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import combinations, permutations
from typing import Any

from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.schema_apart import Apart
from nbsglang.engine.grammar.schema_keywords import KEYWORDS_OF, shape_of
from nbsglang.engine.grammar.schema_logic import DEPENDENCIES, dependencies, lacking, minus, objects_of
from nbsglang.engine.grammar.schema_places import Document, Place, Sub, UnreadError
from nbsglang.engine.grammar.schema_shapes import EVERYTHING, Array, Fixed, Object, Shape, meet
from nbsglang.engine.grammar.schema_values import Fitting, same
from nbsglang.engine.grammar.schema_words import objection

_TYPES = ("null", "boolean", *KEYWORDS_OF, "integer")
_UNSURE = re.compile(r'"(pattern|format)|\\u')  # in a document's text: keywords that readers take differently
_MANY = 256  # shapes that a schema may be a choice of, fixed values apart


class Reader:
    """The shapes of the schemas of a document, each worked out once.

    They have what fits to all readers of schemas, as these differ in what patterns and formats mean. What must not fit
    is asked of the `opposite`, whose shapes have what may fit to any; and this one is the opposite of that one.
    """

    def __init__(self, document: Document, opposite: Reader | None = None) -> None:
        self._document = document
        self._is_loose = opposite is not None
        self._of_place: dict[Place, tuple[Shape, ...] | None] = {}
        self._of_sub: dict[Sub, tuple[Shape, ...]] = {}
        self.fitting = Fitting(self.alternatives, self._is_loose)
        self._opposite = opposite or (Reader(document, self) if _UNSURE.search(document.text) else self)
        self._apart = Apart(self._opposite.alternatives, self._opposite.fitting, document.spend)

    def alternatives(self, sub: Sub) -> tuple[Shape, ...]:
        """The shapes of what fits all places. Raises ConstraintError and NotRegularError, which name the place."""
        known = self._of_sub.get(sub)
        if known is None:
            known = EVERYTHING
            for place in sub:
                known = self._together(known, self._shapes(place), place)
            self._of_sub[sub] = known
        return known

    def _shapes(self, place: Place) -> tuple[Shape, ...]:
        if place in self._of_place:
            known = self._of_place[place]
            if known is None:
                place.fail("it refers to itself without a value in between: it says nothing", "$ref", UnreadError)
            return known
        self._of_place[place] = None
        try:
            known = self._of_place[place] = self._read(place)
        except UnreadError:  # it may be read later
            del self._of_place[place]
            raise
        return known

    def _read(self, place: Place) -> tuple[Shape, ...]:
        schema = place.schema
        if isinstance(schema, bool):
            return EVERYTHING if schema else ()
        self._document.spend(1 + len(schema))
        for keyword in schema:
            if objection(keyword):
                place.fail(objection(keyword), keyword)
        shapes = tuple(_own(place, self._is_loose))
        for keyword in ("enum", "const"):
            if keyword in schema:
                shapes = self._together(shapes, _fixed(place, keyword), place)
        if "$ref" in schema:
            shapes = self._together(shapes, self._shapes(self._document.target(place)), place)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                shapes = self._combined(keyword, shapes, _list(place, keyword), place)
        for keyword in DEPENDENCIES:
            if keyword in schema:
                shapes = self._depending(keyword, shapes, place)
        if "not" in schema:
            shapes = self._without(shapes, self._opposite._shapes(place.at("not")), place)
        return self._conditional(shapes, place) if "if" in schema else shapes

    def is_exclusive(self, place: Place) -> bool:
        """Whether it can be shown that no value fits two choices of the `oneOf` of a place. Raises as above."""
        schema = {keyword: value for keyword, value in place.schema.items() if keyword != "oneOf"}
        widely = self._opposite
        others = widely._shapes(Place(f"{place.pointer}/oneOf", schema, place.rebased))
        each = [widely._together(others, widely._shapes(branch), place) for branch in _list(place, "oneOf")]
        return all(self._apart.shapes(a, b) for one, other in combinations(each, 2) for a in one for b in other)

    def _combined(
        self, keyword: str, shapes: tuple[Shape, ...], branches: list[Place], place: Place
    ) -> tuple[Shape, ...]:
        if keyword == "allOf":
            for branch in branches:
                shapes = self._together(shapes, self._shapes(branch), place)
            return shapes
        each = [self._together(shapes, self._shapes(branch), place) for branch in branches]
        if keyword == "oneOf":
            each = self._one_of(each, self._against(each, branches), place)
        return self._few([shape for some in each for shape in some], place)

    def _depending(self, keyword: str, shapes: tuple[Shape, ...], place: Place) -> tuple[Shape, ...]:
        for name, with_it, schema in dependencies(place, keyword):
            objects, others = objects_of(shapes)
            there = self._together(tuple(objects), (with_it,), place)
            if schema is not None:
                there = self._together(there, self._shapes(schema), place)
            shapes = self._few([*others, *self._together(tuple(objects), (lacking(name),), place), *there], place)
        return shapes

    def _conditional(self, shapes: tuple[Shape, ...], place: Place) -> tuple[Shape, ...]:
        yes = self._together(shapes, self._shapes(place.at("if")), place)
        no = self._without(shapes, self._opposite._shapes(place.at("if")), place)
        if "then" in place.schema:
            yes = self._together(yes, self._shapes(place.at("then")), place)
        if "else" in place.schema:
            no = self._together(no, self._shapes(place.at("else")), place)
        return self._few([*yes, *no], place)

    def _without(self, shapes: tuple[Shape, ...], others: tuple[Shape, ...], place: Place) -> tuple[Shape, ...]:
        """What fits one of some shapes and none of others."""
        for other in others:
            self._document.spend(sum(map(_size, shapes)))
            left = [some for shape in shapes for some in minus(shape, other, self._apart.shapes, place)]
            shapes = self._few(left, place)
        return shapes

    def _against(self, each: list[tuple[Shape, ...]], branches: list[Place]) -> list[tuple[Shape, ...]]:
        """For the choices of a `oneOf`, what values of the others must not be."""
        return each if self._opposite is self else [self._opposite._shapes(branch) for branch in branches]

    def _one_of(
        self, each: list[tuple[Shape, ...]], against: list[tuple[Shape, ...]], place: Place
    ) -> list[tuple[Shape, ...]]:
        """The choices, without fixed values that more than one has."""
        others = [[shape for shape in some if not isinstance(shape, Fixed)] for some in each]
        values, found = ([[s for s in some if isinstance(s, Fixed)] for some in many] for many in (each, against))
        self._document.spend(sum(map(len, values)) ** 2 // 16)
        for one, other in (combinations if each is against else permutations)(range(len(each)), 2):
            for a, b in ((a, b) for a in each[one] for b in against[other]):
                if isinstance(a, Fixed) and isinstance(b, Fixed):
                    continue
                if not self._apart.shapes(a, b):
                    place.beyond(f"its choices {one} and {other} may both fit one value", "oneOf")
        return [
            (*others[n], *(shape for shape in values[n] if not _is_in(shape.value, found[:n] + found[n + 1 :])))
            for n in range(len(each))
        ]

    def _together(self, some: tuple[Shape, ...], others: tuple[Shape, ...], place: Place) -> tuple[Shape, ...]:
        """What fits one of some shapes and one of others."""
        if some is EVERYTHING or others is EVERYTHING:
            return others if some is EVERYTHING else some
        found: list[Shape] = []
        for one in some:
            for other in others:
                self._document.spend(1 + _size(one) + _size(other))
                shape = self._met(one, other)
                if shape is not None:
                    found.append(shape)
        return self._few(found, place)

    def _met(self, one: Shape, other: Shape) -> Shape | None:
        if isinstance(one, Fixed):
            return one if self.fitting.shape(one.value, other) else None
        if isinstance(other, Fixed):
            return other if self.fitting.shape(other.value, one) else None
        return meet(one, other)

    def _few(self, shapes: list[Shape], place: Place) -> tuple[Shape, ...]:
        if sum(not isinstance(shape, Fixed) for shape in shapes) > _MANY:
            place.beyond(f"it is a choice of more than {_MANY} parts", "anyOf")
        return tuple(shapes)


def _own(place: Place, loose: bool) -> Iterable[Shape]:
    """The shapes by `type` and the keywords of each type."""
    wanted = place.schema.get("type", list(_TYPES[:-1]))
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(wanted, list) or not wanted or any(name not in _TYPES for name in wanted):
        place.fail(f"{shown(wanted)} is not a type of JSON, nor a list of some", "type")
    for name in dict.fromkeys(wanted):
        if name == "null":
            yield Fixed(None)
        elif name == "boolean":
            yield Fixed(True)
            yield Fixed(False)
        elif name != "integer":
            yield from shape_of(place, name, is_integer=False, loose=loose)
        elif "number" not in wanted:
            yield from shape_of(place, "number", is_integer=True, loose=loose)


def _fixed(place: Place, keyword: str) -> tuple[Shape, ...]:
    values = place.schema[keyword] if keyword == "enum" else [place.schema[keyword]]
    if not isinstance(values, list):
        place.fail(f"{shown(values)} is not a list of values", keyword)
    for value in values:
        if _is_unwritable(value):
            place.fail(f"{shown(value)} has a lone surrogate or a number without end: no text has", keyword)
    return tuple(map(Fixed, values))


def _list(place: Place, keyword: str) -> list[Place]:
    branches = place.schema[keyword]
    if not isinstance(branches, list) or not branches:
        place.fail(f"{shown(branches)} is not a list of schemas", keyword)
    return [place.at(keyword, index) for index in range(len(branches))]


def _is_in(value: Any, many: list[list[Fixed]]) -> bool:
    return any(same(value, shape.value) for some in many for shape in some)


def _is_unwritable(value: Any) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, float):  # 1e999 is read as infinite
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(_is_unwritable(part) for item in value.items() for part in item)
    return isinstance(value, list) and any(map(_is_unwritable, value))


def _size(shape: Shape) -> int:
    """About how much work it is to look at a shape."""
    if isinstance(shape, Object):
        return len(shape.properties) + len(shape.required)
    return len(shape.prefix) if isinstance(shape, Array) else 1
