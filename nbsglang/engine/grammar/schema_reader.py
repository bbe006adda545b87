"""Schemas as choices of shapes: what each keyword means, what holds together, and what is refused.

The meaning is that of JSON Schema 2020-12; `definitions`, arrays in `items`, `additionalItems` and boolean
`exclusiveMinimum` of older drafts are understood. A keyword of JSON Schema that is not supported is refused by name,
never ignored.

Not here: the keywords of one type (`schema_keywords.py`), which keywords there are (`schema_words.py`), which choices
of `oneOf` exclude each other (`schema_apart.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations
from typing import NoReturn

from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.schema_apart import Apart
from nbsglang.engine.grammar.schema_drafts import doubtful, may_be_doubtful
from nbsglang.engine.grammar.schema_fitting import Fitting
from nbsglang.engine.grammar.schema_keywords import KEYWORDS_OF, shape_of
from nbsglang.engine.grammar.schema_listed import Listed
from nbsglang.engine.grammar.schema_logic import DEPENDENCIES, dependencies, lacking, objects_of
from nbsglang.engine.grammar.schema_minus import minus
from nbsglang.engine.grammar.schema_places import Denied, Document, Place, Sub, UnreadError
from nbsglang.engine.grammar.schema_search import Search
from nbsglang.engine.grammar.schema_shapes import EVERYTHING, Array, Fixed, Object, Shape, joined, meet
from nbsglang.engine.grammar.schema_within import without_parts
from nbsglang.engine.grammar.schema_words import objection

_TYPES = ("null", "boolean", *KEYWORDS_OF, "integer")
_DIFFERS = re.compile(r'"(pattern|format)|\\u')  # in a document's text: keywords that readers take differently
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
        self._own_of: dict[Place, tuple[Shape, ...]] = {}
        self._listed = Listed(document)
        self._search: Search = opposite._search if opposite else Search(document.spend)
        self.fitting = Fitting(document, self._own, self._search, lambda: self._opposite.fitting, self._is_loose)
        self._opposite: Reader = opposite or (Reader(document, self) if _is_unsure(document) else self)
        widely = self._opposite
        self._apart = Apart(widely.alternatives, widely.fitting, self._search.found, document.spend)

    def alternatives(self, sub: Sub) -> tuple[Shape, ...]:
        """The shapes of what fits all places. Raises ConstraintError and NotRegularError, which name the place."""
        known = self._of_sub.get(sub)
        if known is None:
            listed = next((values for place in sub if (values := self._listed.values(place)) is not None), None)
            if listed is not None:
                known = tuple([Fixed(value) for value in listed if self.fitting.sub(value, sub)])
            else:
                known = EVERYTHING
                for place in sub:
                    known = self._together(known, self._shapes(place), place)
            self._of_sub[sub] = known
        return known

    def members(self, shape: Object, name: str) -> Sub:
        """What the property of a name must be to all readers."""
        return joined(*shape.members(name, self._search.found))

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
        if isinstance(schema, Denied):
            return self._without(EVERYTHING, self._opposite.alternatives(schema.sub), place, "not")
        shapes = self._own(place)
        listed = self._listed.values(place)
        if listed is not None:
            return tuple([Fixed(value) for value in listed if self.fitting.place(value, place)])
        if "$ref" in schema:
            shapes = self._together(shapes, self._shapes(self._document.target(place)), place)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                shapes = self._combined(keyword, shapes, place.each(keyword), place)
        for keyword in DEPENDENCIES:
            if keyword in schema:
                shapes = self._depending(keyword, shapes, place)
        if "not" in schema:
            shapes = self._without(shapes, self._opposite._shapes(place.at("not")), place, "not")
        return self._conditional(shapes, place) if "if" in schema else shapes

    def _own(self, place: Place) -> tuple[Shape, ...]:
        """The shapes by the keywords of types."""
        known = self._own_of.get(place)
        if known is None:
            self._document.spend(1 + len(place.schema))
            for keyword in place.schema:
                if objection(keyword):
                    place.fail(objection(keyword), keyword)
            passed_over = doubtful(place.schema, self._document.draft) if self._is_loose else None
            if passed_over is not None:
                place.beyond("the draft of the schema passes over it, or over what is beside it", passed_over)
            known = self._own_of[place] = tuple(_own(place, self._is_loose))
        return known

    def is_exclusive(self, place: Place) -> bool:
        """Whether it can be shown that no value fits two choices of the `oneOf` of a place. Raises as above."""
        schema = {keyword: value for keyword, value in place.schema.items() if keyword != "oneOf"}
        widely = self._opposite
        others = widely._shapes(Place(f"{place.pointer}/oneOf", schema, place.rebased))
        each = [widely._together(others, widely._shapes(branch), place) for branch in place.each("oneOf")]
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
        no = self._without(shapes, self._opposite._shapes(place.at("if")), place, "if")
        if "then" in place.schema:
            yes = self._together(yes, self._shapes(place.at("then")), place)
        if "else" in place.schema:
            no = self._together(no, self._shapes(place.at("else")), place)
        return self._few([*yes, *no], place)

    def _without(
        self, shapes: tuple[Shape, ...], others: tuple[Shape, ...], place: Place, keyword: str
    ) -> tuple[Shape, ...]:
        """What fits one of some shapes and none of others."""

        def refuse(what: str) -> NoReturn:
            place.beyond(f"it excludes {what}, beside others of the type", keyword)

        for other in others:
            left: list[Shape] = []
            for shape in shapes:
                self._document.spend(_size(shape))
                if self._apart.shapes(shape, other):
                    left.append(shape)
                    continue
                for way in minus(shape, other, refuse):
                    self._document.spend(_size(shape) + _size(way))
                    met = self._met(shape, way)
                    left += [] if met is None else [met]
            shapes = self._few(left, place)
        return shapes

    def _against(self, each: list[tuple[Shape, ...]], branches: list[Place]) -> list[tuple[Shape, ...]]:
        """For the choices of a `oneOf`, what values of the others must not be."""
        return each if self._opposite is self else [self._opposite._shapes(branch) for branch in branches]

    def _one_of(
        self, each: list[tuple[Shape, ...]], against: list[tuple[Shape, ...]], place: Place
    ) -> list[tuple[Shape, ...]]:
        """The choices, without what another one has, too."""
        found = []
        for n, shapes in enumerate(each):
            for other in against[:n] + against[n + 1 :]:
                shapes = self._without(shapes, other, place, "oneOf")
            found.append(shapes)
        return found

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
        return meet(one, other, self._search.found)

    def _few(self, shapes: list[Shape], place: Place) -> tuple[Shape, ...]:
        shapes = without_parts(shapes, self._document.spend)
        if sum(not isinstance(shape, Fixed) for shape in shapes) > _MANY:
            place.beyond(f"it is a choice of more than {_MANY} parts", "anyOf")
        return tuple(shapes)


def _is_unsure(document: Document) -> bool:
    """Whether what must not fit may have to be read otherwise than what must."""
    return bool(_DIFFERS.search(document.text)) or may_be_doubtful(document.text, document.draft)


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


def _size(shape: Shape) -> int:
    """About how much work it is to look at a shape."""
    if isinstance(shape, Object):
        return len(shape.properties) + len(shape.required)
    return len(shape.prefix) if isinstance(shape, Array) else 1
