"""Values without which a schema allows none: those of `enum` and `const`, also where other keywords lead to them.

Not here: which of them fit the schema (`schema_fitting.py`).
"""

from __future__ import annotations

from typing import Any

from nbsglang.engine.grammar.schema_places import Document, Place
from nbsglang.engine.grammar.schema_values import written


class Listed:
    """Finds the values that schemas of a document list, each schema once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[Place, list[Any] | None] = {}

    def values(self, place: Place) -> list[Any] | None:
        """The values, if a place lists some. Raises ConstraintError for a keyword that is not as it must be."""
        if place not in self._known:
            self._known[place] = None  # for places that lead to themselves
            self._known[place] = self._found(place)
        return self._known[place]

    def _found(self, place: Place) -> list[Any] | None:
        schema = place.schema
        if not isinstance(schema, dict):
            return None
        for keyword in ("const", "enum"):
            if keyword in schema:
                return place.values(keyword)
        together = [self._document.target(place)] if "$ref" in schema else []
        for part in (*together, *(place.each("allOf") if "allOf" in schema else ())):
            values = self.values(part)
            if values is not None:
                return values
        for keyword in ("anyOf", "oneOf"):
            each = [self.values(branch) for branch in place.each(keyword)] if keyword in schema else [None]
            if None not in each:
                texts = {written(value): value for values in each if values is not None for value in values}
                return [*texts.values()]
        return None
