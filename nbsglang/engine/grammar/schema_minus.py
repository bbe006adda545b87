"""What is of one shape and not of another, where that can be said in shapes.

So `not`, `if` and choices of which exactly one must fit are worked out. What an item or a property must not be is a
place of its own (`schema_places.denied`), which is looked at when its turn comes.

Not here: which shapes have nothing in common (`schema_apart.py`), keywords (`schema_reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn, TypeAlias

from nbsglang.engine.grammar.schema_places import NEVER, Sub, denied, found_in, listed, only
from nbsglang.engine.grammar.schema_shapes import Array, Bound, Fixed, Number, Object, Shape, String, joined
from nbsglang.engine.grammar.schema_values import exact

_Refuse: TypeAlias = Callable[[str], NoReturn]
_MANY = 256  # ways in which a value can be no object of a shape


def minus(shape: Shape, other: Shape, refuse: _Refuse) -> list[Shape]:
    """Shapes that have, met with the given one, what is not of another that is not apart from it.

    The other one has all that any reader of schemas may see in it. Calls `refuse` where shapes cannot say it.
    """
    if isinstance(shape, Fixed):
        return []  # it is of the other, or they would be apart
    if isinstance(shape, String) and isinstance(other, Fixed):
        return [String(others=(other.value,))]
    other = _as_free(other)
    if isinstance(shape, Number) and isinstance(other, Number):
        return [*_numbers(shape, other, refuse)]
    if isinstance(shape, String) and isinstance(other, String):
        return [*_strings(other, refuse)]
    if isinstance(shape, Array) and isinstance(other, Array):
        return [*_arrays(other, refuse)]
    assert isinstance(other, Object), "of one type, or they would be apart"
    return [*_objects(other, refuse)]


def _as_free(shape: Shape) -> Shape:
    """A single value that is no string as a shape of its type."""
    value = shape.value if isinstance(shape, Fixed) else None
    if isinstance(value, int | float):
        bound = Bound(exact(value))
        return Number(low=bound, high=bound)
    if isinstance(value, list):
        return Array(tuple(map(only, value)), NEVER, len(value), len(value))
    if isinstance(value, dict):
        return Object({name: only(part) for name, part in value.items()}, additional=NEVER, required=tuple(value))
    return shape


def _numbers(shape: Number, other: Number, refuse: _Refuse) -> Iterator[Shape]:
    if any(step.denominator != 1 for step in other.steps):
        refuse("multiples of what is not whole")
    for step in other.steps:
        yield Number(excluded=(step,))
    for step in other.excluded:
        yield Number(steps=(step,))
    if other.is_integer and not shape.is_integer:
        yield Number(is_broken=True)
    if other.is_broken:
        yield Number(is_integer=True)
    if other.low is not None:
        yield Number(high=Bound(other.low.value, not other.low.is_open))
    if other.high is not None:
        yield Number(low=Bound(other.high.value, not other.high.is_open))


def _strings(other: String, refuse: _Refuse) -> Iterator[Shape]:
    if other.formats:
        refuse("a format")
    if other.others:
        refuse("strings but for some")
    for pattern in other.patterns:
        yield String(excluded=(pattern,))
    for pattern in other.excluded:
        yield String(patterns=(pattern,))
    if other.least:
        yield String(most=other.least - 1)
    if other.most is not None:
        yield String(least=other.most + 1)


def _arrays(other: Array, refuse: _Refuse) -> Iterator[Shape]:
    if other.unique:
        refuse("arrays whose items differ")
    if other.least:
        yield Array(most=other.least - 1)
    if other.most is not None:
        yield Array(least=other.most + 1)
    for index, sub in enumerate(other.prefix):
        if sub:
            yield Array(((),) * index + (denied(sub),), least=index + 1)
    for sub in other.some:
        yield Array(items=denied(sub))
    if _is_never(other.items):
        yield Array(least=len(other.prefix) + 1)
    elif not _is_free(other.items):
        if other.prefix:
            refuse("what items after the first ones must be")
        yield Array(some=(denied(other.items),))


def _objects(other: Object, refuse: _Refuse) -> Iterator[Shape]:
    if len(other.required) + len(other.properties) > _MANY:
        refuse(f"more than {_MANY} properties")
    for n, name in enumerate(other.required):  # the first that is not there
        yield Object({name: NEVER}, required=other.required[:n])
    for name, sub in other.properties.items():
        if sub:
            yield Object({name: denied(sub)}, required=(name,))
    for pattern, sub in other.patterns:
        if _is_never(sub):
            yield Object(reaching=(found_in(pattern),))
        elif sub:
            refuse("what properties with a pattern in their names must be")
    if other.least:
        yield Object(most=other.least - 1)
    if other.most is not None:
        yield Object(least=other.most + 1)
    if other.names:
        yield Object(reaching=(denied(other.names),))
    for names in other.reaching:
        yield Object(names=denied(names))
    if _is_never(other.additional):
        patterns = [found_in(pattern) for pattern, _ in other.patterns]
        yield Object(reaching=(joined(denied(listed(other.properties)), *map(denied, patterns)),))
    elif not _is_free(other.additional):
        refuse("what additional properties must be")


def _is_free(sub: Sub) -> bool:
    return all(place.schema is True or place.schema == {} for place in sub)


def _is_never(sub: Sub) -> bool:
    return any(place.schema is False for place in sub)
