"""What properties that depend on others ask for.

Not here: the other keywords (`schema_reader.py`, `schema_keywords.py`), what `not` and `if` leave (`schema_minus.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.schema_places import NEVER, Place
from nbsglang.engine.grammar.schema_shapes import Fixed, Object, Shape

DEPENDENCIES = ("dependencies", "dependentRequired", "dependentSchemas")


def objects_of(shapes: Sequence[Shape]) -> tuple[list[Shape], list[Shape]]:
    """The shapes of objects, and the others."""
    are_objects = [isinstance(s, Object) or (isinstance(s, Fixed) and isinstance(s.value, dict)) for s in shapes]
    return (
        [shape for shape, is_object in zip(shapes, are_objects, strict=True) if is_object],
        [shape for shape, is_object in zip(shapes, are_objects, strict=True) if not is_object],
    )


def lacking(name: str) -> Object:
    """Objects without a property."""
    return Object({name: NEVER})


def dependencies(place: Place, keyword: str) -> Iterator[tuple[str, Object, Place | None]]:
    """For each name that others depend on: the objects that have what it asks for, and a schema that they must fit."""
    given = place.schema[keyword]
    if not isinstance(given, dict):
        place.fail(f"{shown(given)} is not an object", keyword)
    for name, asked in given.items():
        if keyword == "dependentSchemas" or (keyword == "dependencies" and isinstance(asked, dict | bool)):
            yield name, Object(required=(name,)), place.at(keyword, name)
        else:
            yield name, Object(required=_names(place, keyword, name, asked)), None


def _names(place: Place, keyword: str, name: str, asked: Any) -> tuple[str, ...]:
    names = [asked] if isinstance(asked, str) and keyword == "dependencies" else asked  # as the oldest drafts have it
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        place.fail(f"{shown(asked)} is not a list of names", keyword)
    return tuple(dict.fromkeys((name, *names)))
