"""Which code points a character class of Python's regular expressions matches, asked of `re` itself.

The categories (`\\w`, `\\d`, `\\s`) are asked for all code points, which takes 15 ms each, once. Case matters for some
three thousand characters only: under `(?i)` `re` is asked about those, and the others match what they match without.

Not here: the rest of the syntax (`regex.py`, and `pattern.py` for llguidance).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from re import _constants as ops  # type: ignore[attr-defined]  # not in typeshed; the parse tree has no other door
from typing import Any

import numpy as np

from nbsglang.engine.grammar.syntax import ALL_CHARS, Ranges

_CASE, _ASCII, _DOTALL = int(re.IGNORECASE), int(re.ASCII), int(re.DOTALL)  # plain integers are faster
_SURROGATES = (0xD800, 0xDFFF)
_LAST = 0x10FFFF
_BLOCK = 256
_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}
_Items = tuple[tuple[Any, Any], ...]


def members(op: Any, value: Any, flags: int) -> Ranges:
    """The characters that a class (a tuple of items), a letter or a dot of `re`'s parse tree matches under these flags.

    Lone surrogates are no characters, so a class can be without any.
    """
    if op is ops.ANY:
        return ALL_CHARS if flags & _DOTALL else complement(((10, 10),))
    flags &= _CASE | _ASCII
    if op is ops.LITERAL:
        return _class(((op, value),), flags) if flags & _CASE else union([(value, value)])
    if op is ops.NOT_LITERAL:
        return _class(((ops.NEGATE, None), (ops.LITERAL, value)), flags)
    return _class(value, flags)


def word(flags: int) -> Ranges:
    """The characters of words, for `\\b`: those of `\\w`."""
    return _category(r"\w", flags & _ASCII)


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges of code points in order, without overlaps and surrogates."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    low, high = _SURROGATES
    parts = (part for a, b in joined for part in ((a, min(b, low - 1)), (max(a, high + 1), b)))
    return tuple((a, b) for a, b in parts if a <= b)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    starts = [0, *(end + 1 for _, end in ranges)]
    ends = [*(start - 1 for start, _ in ranges), _LAST]
    return union((a, b) for a, b in zip(starts, ends, strict=True) if a <= b)


def both(some: Ranges, others: Ranges) -> Ranges:
    """The characters that are in both."""
    return some if some == others else complement(union([*complement(some), *complement(others)]))


@lru_cache(maxsize=4096)
def _class(items: _Items, flags: int) -> Ranges:
    negated = any(kind is ops.NEGATE for kind, _ in items)
    ranges: list[tuple[int, int]] = []
    for kind, what in items:
        if kind is ops.LITERAL:
            ranges.append((what, what))
        elif kind is ops.RANGE:
            ranges.append(what)
        elif kind is not ops.NEGATE:
            ranges += _category(_CATEGORIES[what], flags & _ASCII)
    plain = union(ranges)
    if flags & _CASE:
        plain = _any_case(items, plain, flags)
    return complement(plain) if negated else plain


def _any_case(items: _Items, plain: Ranges, flags: int) -> Ranges:
    """What the class matches under `(?i)`, before it is negated, from what it matches without."""
    cased, points = _cased()
    no_case = [part for start, end in plain for part in _between(start, end, points)]
    found = re.findall(f"[{_source(items)}]", cased, flags)
    return union([*no_case, *((ord(char), ord(char)) for char in found)])


def _between(start: int, end: int, points: Sequence[int]) -> Iterable[tuple[int, int]]:
    """The range without the points, which are ascending."""
    for point in points[bisect_left(points, start) :]:
        if point > end:
            break
        if start < point:
            yield start, point - 1
        start = point + 1
    if start <= end:
        yield start, end


def _source(items: _Items) -> str:
    parts = []
    for kind, what in items:
        if kind is ops.LITERAL:
            parts.append(_escape(what))
        elif kind is ops.RANGE:
            parts.append(f"{_escape(what[0])}-{_escape(what[1])}")
        elif kind is not ops.NEGATE:
            parts.append(_CATEGORIES[what])
    return "".join(parts)


def _escape(code_point: int) -> str:
    return f"\\U{code_point:08X}"


@cache
def _category(source: str, flags: int) -> Ranges:
    """The code points of a category; asks `re` for all of them."""
    if source.isupper():
        return complement(_category(source.lower(), flags))
    runs = re.compile(f"{source}+", flags).finditer(_everything())
    return union((run.start(), run.end() - 1) for run in runs)


def _everything() -> str:
    """All code points, at their own index."""
    return np.arange(_LAST + 1, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


@cache
def _cased() -> tuple[str, Sequence[int]]:
    """All characters for which case makes a difference to `re`, in order: no other matches anything but itself."""
    everything = _everything()
    blocks = (everything[at : at + _BLOCK] for at in range(0, len(everything), _BLOCK))
    some = "".join(block for block in blocks if block.lower() != block or block.upper() != block)
    cased = "".join(char for char in some if char.lower() != char or char.upper() != char)
    return cased, [ord(char) for char in cased]
