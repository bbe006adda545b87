"""What `not`, `if` and dependencies leave of shapes, where that can be said in shapes.

Not here: the other keywords (`schema_reader.py`, `schema_keywords.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.schema_places import Place
from nbsglang.engine.grammar.schema_shapes import Bound, Fixed, Number, Object, Shape, meet

_NEVER = Place("#never", False)  # no pointer of a document begins so; places are told apart by theirs
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
    return Object({name: (_NEVER,)})


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


def minus(shape: Shape, other: Shape, are_apart: Callable[[Shape, Shape], bool], place: Place) -> Iterator[Shape]:
    """What is of one shape and not of another. Raises NotRegularError where shapes cannot say it."""
    if are_apart(shape, other):
        yield shape
    elif isinstance(other, Object) and isinstance(shape, Object) and other == Object(required=other.required):
        for n, name in enumerate(other.required):  # the first that is not there
            there = meet(shape, Object(required=other.required[:n]))
            left = there and meet(there, lacking(name))
            if left is not None:
                yield left
    elif isinstance(other, Number) and isinstance(shape, Number) and _is_range(other, shape):
        yield from _beside(shape, other)
    elif not _is_all_of(shape, other):
        keyword = "not" if "not" in place.schema else "if"
        place.beyond("what it excludes is no whole type, range, listed value or required property", keyword)


def _is_range(other: Number, shape: Number) -> bool:
    """Whether a number is of `other` wherever it is in its range, if it is of `shape`."""
    return not other.steps and (shape.is_integer or not other.is_integer)


def _beside(shape: Number, other: Number) -> Iterator[Shape]:
    """The numbers below a range, and those above it."""
    low, high = other.low, other.high
    below = Number(high=Bound(low.value, not low.is_open)) if low is not None else None
    above = Number(low=Bound(high.value, not high.is_open)) if high is not None else None
    for side in (below, above):
        left = side and meet(shape, side)
        if left is not None:
            yield left


def _is_all_of(shape: Shape, other: Shape) -> bool:
    """Whether it is plain that all values of a shape are of another, which is not apart from it."""
    if isinstance(shape, Fixed):
        return True  # else they are apart
    return not isinstance(other, Fixed) and other == type(other)()


def _names(place: Place, keyword: str, name: str, asked: Any) -> tuple[str, ...]:
    names = [asked] if isinstance(asked, str) and keyword == "dependencies" else asked  # as the oldest drafts have it
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        place.fail(f"{shown(asked)} is not a list of names", keyword)
    return tuple(dict.fromkeys((name, *names)))
