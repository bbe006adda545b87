"""What a schema allows, in shapes of one type each, and what two shapes allow together.

A schema is a choice of shapes. null, true, false and the values of `enum` and `const` are shapes of one value.

Not here: how keywords become shapes (`schema_reader.py`), texts (`schema_nodes.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from nbsglang.engine.grammar.schema_places import NotRegularError, Sub


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
    """Numbers in a range that are multiples of all `steps`."""

    is_integer: bool = False
    low: Bound | None = None
    high: Bound | None = None
    steps: tuple[Fraction, ...] = ()


@dataclass(frozen=True)
class String:
    """Strings with so many characters in which each pattern is found, and that are of each format."""

    least: int = 0
    most: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Array:
    """Arrays with so many items: the first ones as `prefix` says, all others as `items`."""

    prefix: tuple[Sub, ...] = ()
    items: Sub = ()
    least: int = 0
    most: int | None = None

    def item(self, index: int) -> Sub:
        """What an item must be."""
        return self.prefix[index] if index < len(self.prefix) else self.items


@dataclass(frozen=True)
class Object:
    """Objects with so many properties, `required` ones among them.

    A property is what `properties` says for its name and `patterns` for each pattern found in it, if neither says
    anything what `additional` does. `names` is for the names themselves.
    """

    properties: dict[str, Sub] = field(default_factory=dict)
    patterns: tuple[tuple[str, Sub], ...] = ()
    additional: Sub = ()
    required: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    names: Sub = ()

    def members(self, name: str) -> tuple[Sub, ...]:
        """What the property of a name must be by each meaning of the patterns; mostly they agree."""
        surely = [sub for pattern, sub in self.patterns if is_found(pattern, name)]
        maybe = [sub for pattern, sub in self.patterns if may_be_found(pattern, name)]
        return tuple(dict.fromkeys((self._member(name, surely), self._member(name, maybe))))

    def member(self, name: str) -> Sub:
        """What the property of a name must be."""
        return self._member(name, [sub for pattern, sub in self.patterns if re.search(pattern, name)])

    def _member(self, name: str, found: list[Sub]) -> Sub:
        if name in self.properties:
            found = [self.properties[name], *found]
        return joined(*found) if found else self.additional


Shape: TypeAlias = Fixed | Number | String | Array | Object
EVERYTHING: tuple[Shape, ...] = (Fixed(None), Fixed(True), Fixed(False), Number(), String(), Array(), Object())


def is_found(pattern: str, value: str) -> bool:
    """Whether a pattern is found in a text, to all readers."""
    return bool(re.search(pattern, value) and re.search(pattern, value, re.ASCII))


def may_be_found(pattern: str, value: str) -> bool:
    """Whether a pattern is found in a text to some reader: ECMAScript's white space is Unicode's, its words are not."""
    spaced = re.sub(r"[\s\ufeff]", " ", value)
    return bool(
        re.search(pattern, value) or re.search(pattern, value, re.ASCII) or re.search(pattern, spaced, re.ASCII)
    )


def joined(*subs: Sub) -> Sub:
    """All of these together."""
    return tuple(dict.fromkeys(place for sub in subs for place in sub))


def meet(one: Shape, other: Shape) -> Shape | None:
    """What two shapes without a fixed value allow together; None if they are of different types or nothing is left."""
    if isinstance(one, Number) and isinstance(other, Number):
        return _numbers(one, other)
    if isinstance(one, String) and isinstance(other, String):
        patterns = tuple(dict.fromkeys(one.patterns + other.patterns))
        formats = tuple(dict.fromkeys(one.formats + other.formats))
        return counted(String(max(one.least, other.least), _lower(one.most, other.most), patterns, formats))
    if isinstance(one, Array) and isinstance(other, Array):
        n_prefix = max(len(one.prefix), len(other.prefix))
        prefix = tuple(joined(one.item(n), other.item(n)) for n in range(n_prefix))
        items = joined(one.items, other.items)
        return counted(Array(prefix, items, max(one.least, other.least), _lower(one.most, other.most)))
    if isinstance(one, Object) and isinstance(other, Object):
        return _objects(one, other)
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


def _numbers(one: Number, other: Number) -> Number | None:
    lows = [bound for bound in (one.low, other.low) if bound is not None]
    highs = [bound for bound in (one.high, other.high) if bound is not None]
    return ranged(
        Number(
            one.is_integer or other.is_integer,
            max(lows, key=lambda bound: (bound.value, bound.is_open), default=None),
            min(highs, key=lambda bound: (bound.value, not bound.is_open), default=None),
            tuple(dict.fromkeys(one.steps + other.steps)),
        )
    )


def _objects(one: Object, other: Object) -> Shape | None:
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
            {name: joined(_named(one, name), _named(other, name)) for name in names},
            patterns,
            joined(one.additional, other.additional),
            tuple(dict.fromkeys(one.required + other.required)),
            max(one.least, other.least),
            _lower(one.most, other.most),
            joined(one.names, other.names),
        )
    )


def _named(shape: Object, name: str) -> Sub:
    """What a property must be, leaving out what patterns say of it if it is named, as they go on saying it."""
    return shape.properties[name] if name in shape.properties else shape.member(name)


def _lower(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
