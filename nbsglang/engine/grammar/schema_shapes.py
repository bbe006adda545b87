"""What a schema allows, in shapes of one type each, and what two shapes allow together.

A schema is a choice of shapes. null, true, false and the values of `enum` and `const` are shapes of one value.

Not here: how keywords become shapes (`schema_reader.py`), texts (`schema_nodes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, TypeVar

from nbsglang.engine.grammar.schema_places import NotRegularError, Sub

T = TypeVar("T")
Found: TypeAlias = Callable[[str, str, bool], bool]  # see `schema_search.Search.found`


@dataclass(frozen=True)
class Fixed:
    """One value."""

    value: Any


class Bound(NamedTuple):
    """An end of a range of numbers; with `is_open` the number itself is outside."""

    value: Fraction
    is_open: bool = False


@dataclass(frozen=True)
class Number:
    """Numbers in a range, multiples of all `steps` and of none of `excluded`; none is whole with `is_broken`."""

    is_integer: bool = False
    low: Bound | None = None
    high: Bound | None = None
    steps: tuple[Fraction, ...] = ()
    excluded: tuple[Fraction, ...] = ()
    is_broken: bool = False


@dataclass(frozen=True)
class String:
    """Strings with so many characters in which each pattern is found, and that are of each format.

    None of the `excluded` patterns is found in them, and they are none of the `others`.
    """

    least: int = 0
    most: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Array:
    """Arrays with so many items: the first ones as `prefix` says, all others as `items`.

    At least one is as each of `some` says. No two are the same where `unique` says which place asks for that.
    """

    prefix: tuple[Sub, ...] = ()
    items: Sub = ()
    least: int = 0
    most: int | None = None
    some: tuple[Sub, ...] = ()
    unique: str = ""

    def item(self, index: int) -> Sub:
        """What an item must be."""
        return self.prefix[index] if index < len(self.prefix) else self.items


@dataclass(frozen=True)
class Object:
    """Objects with so many properties, `required` ones among them.

    A property is what `properties` says for its name and `patterns` for each pattern found in it, if neither says
    anything what `additional` does. `names` is for the names themselves. For each of `reaching` at least one has a name
    that fits it.
    """

    properties: dict[str, Sub] = field(default_factory=dict)
    patterns: tuple[tuple[str, Sub], ...] = ()
    additional: Sub = ()
    required: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    names: Sub = ()
    reaching: tuple[Sub, ...] = ()

    def members(self, name: str, found: Found) -> tuple[Sub, ...]:
        """What the property of a name must be by each meaning of the patterns; mostly they agree."""
        surely = [sub for pattern, sub in self.patterns if found(pattern, name, False)]
        maybe = [sub for pattern, sub in self.patterns if found(pattern, name, True)]
        return tuple(dict.fromkeys((self._member(name, surely), self._member(name, maybe))))

    def _member(self, name: str, found: list[Sub]) -> Sub:
        if name in self.properties:
            found = [self.properties[name], *found]
        return joined(*found) if found else self.additional


Shape: TypeAlias = Fixed | Number | String | Array | Object
EVERYTHING: tuple[Shape, ...] = (Fixed(None), Fixed(True), Fixed(False), Number(), String(), Array(), Object())


def joined(*subs: Sub) -> Sub:
    """All of these together."""
    return tuple(dict.fromkeys(place for sub in subs for place in sub))


def meet(one: Shape, other: Shape, found: Found) -> Shape | None:
    """What two shapes without a fixed value allow together; None if they are of different types or nothing is left."""
    if isinstance(one, Number) and isinstance(other, Number):
        return numbers(one, other)
    if isinstance(one, String) and isinstance(other, String):
        return strings(one, other)
    if isinstance(one, Array) and isinstance(other, Array):
        return _arrays(one, other)
    if isinstance(one, Object) and isinstance(other, Object):
        return _objects(one, other, found)
    return None


def counted(shape: String | Array | Object) -> Shape | None:
    """The shape; None if it must have more characters, items or properties than it may."""
    return None if shape.most is not None and shape.least > shape.most else shape


def ranged(shape: Number) -> Number | None:
    """The shape; None if its range is empty."""
    low, high = shape.low, shape.high
    if low is None or high is None or low.value < high.value:
        return shape
    return shape if low.value == high.value and not (low.is_open or high.is_open) else None


def numbers(one: Number, other: Number) -> Number | None:
    """The numbers of both."""
    steps, excluded = merged(one.steps, other.steps), merged(one.excluded, other.excluded)
    is_integer, is_broken = one.is_integer or other.is_integer, one.is_broken or other.is_broken
    if is_broken and (is_integer or any(step.denominator == 1 for step in steps)):
        return None
    if any((step / without).denominator == 1 for step in steps for without in excluded):
        return None
    lows = [bound for bound in (one.low, other.low) if bound is not None]
    highs = [bound for bound in (one.high, other.high) if bound is not None]
    return ranged(
        Number(
            is_integer,
            max(lows, key=lambda bound: (bound.value, bound.is_open), default=None),
            min(highs, key=lambda bound: (bound.value, not bound.is_open), default=None),
            steps,
            excluded,
            is_broken,
        )
    )


def strings(one: String, other: String) -> Shape | None:
    """The strings of both."""
    return counted(
        String(
            max(one.least, other.least),
            _lower(one.most, other.most),
            merged(one.patterns, other.patterns),
            merged(one.formats, other.formats),
            merged(one.excluded, other.excluded),
            merged(one.others, other.others),
        )
    )


def merged(some: tuple[T, ...], others: tuple[T, ...]) -> tuple[T, ...]:
    """All of these, each once."""
    return tuple(dict.fromkeys(some + others))


def _arrays(one: Array, other: Array) -> Shape | None:
    n_prefix = max(len(one.prefix), len(other.prefix))
    return counted(
        Array(
            tuple(joined(one.item(n), other.item(n)) for n in range(n_prefix)),
            joined(one.items, other.items),
            max(one.least, other.least),
            _lower(one.most, other.most),
            merged(one.some, other.some),
            one.unique or other.unique,
        )
    )


def _objects(one: Object, other: Object, found: Found) -> Shape | None:
    """An additional property of the one may be one that the other has a name for, not one it has a pattern for."""
    subs = dict(one.patterns)
    for pattern, sub in other.patterns:
        subs[pattern] = joined(subs.get(pattern, ()), sub)
    patterns = tuple(subs.items())
    if patterns and one.patterns != other.patterns:
        # A name that a pattern of one is found in may be an additional one of the other.
        if (one.patterns and other.additional) or (other.patterns and one.additional):
            raise NotRegularError("'patternProperties' and 'additionalProperties' of schemas that hold together")
        one, other = replace(one, patterns=patterns), replace(other, patterns=patterns)
    names = [*one.properties, *(name for name in other.properties if name not in one.properties)]
    return counted(
        Object(
            {name: joined(_named(one, name, found), _named(other, name, found)) for name in names},
            patterns,
            joined(one.additional, other.additional),
            merged(one.required, other.required),
            max(one.least, other.least),
            _lower(one.most, other.most),
            joined(one.names, other.names),
            merged(one.reaching, other.reaching),
        )
    )


def _named(shape: Object, name: str, found: Found) -> Sub:
    """What a property must be, leaving out what patterns say of it if it is named, as they go on saying it."""
    if name in shape.properties:
        return shape.properties[name]
    subs = shape.members(name, found)
    if len(subs) > 1:
        raise NotRegularError(f"a pattern of 'patternProperties' of which readers differ on {name!r}")
    return subs[0]


def _lower(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
