"""What the characters of an edge are called: as in a regular expression; what is too much to list is counted.

Not here: the edges (`compress.py`), how they look.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from re import _constants as ops  # type: ignore[attr-defined]  # not in typeshed; the categories have no other names
from typing import NamedTuple

from nbsglang.engine.grammar.classes import members
from nbsglang.engine.grammar.partition import Run

_MAX_SHOWN = 8  # runs of characters
_CATEGORIES = {"\\w": ops.CATEGORY_WORD, "\\d": ops.CATEGORY_DIGIT, "\\s": ops.CATEGORY_SPACE}  # words hold digits


def label_of(runs: Sequence[Run]) -> str:
    """Some characters, as runs that ascend and lie apart: one alone, or a class of a regular expression."""
    if len(runs) == 1 and runs[0].first == runs[0].last:
        return _char(runs[0].first)
    outside = _outside(runs)
    if not outside:
        return "any"
    inner = _listed(runs)
    if inner.n_left_out or len(outside) < len(runs):
        outer = _listed(outside)
        if outer.n_left_out < inner.n_left_out or (not outer.n_left_out and len(outer.parts) < len(inner.parts)):
            category = outer.parts[0] if outer.parts[0] in _CATEGORIES and len(outer.parts) == 1 else ""
            return category.upper() or f"[^{''.join(outer.parts)}{'…' * bool(outer.n_left_out)}]"
    if len(inner.parts) == 1 and inner.parts[0] in _CATEGORIES:
        return inner.parts[0]
    if inner.n_left_out:
        return _nearly(runs) or f"[{''.join(inner.parts)}] and {inner.n_left_out:,} more"
    return f"[{''.join(inner.parts)}]"


def _nearly(runs: Sequence[Run]) -> str:
    """A category with what it has beyond the runs; "" where that is not short."""
    for name in reversed(_CATEGORIES):
        missing = _without(_category(name), runs)
        if missing and not (found := _listed(missing)).n_left_out:
            return f"{name} but [{''.join(found.parts)}]"
    return ""


class _Listed(NamedTuple):
    parts: list[str]
    n_left_out: int  # characters that are in none of the parts


def _listed(runs: Sequence[Run]) -> _Listed:
    parts: list[str] = []
    for name in _CATEGORIES:
        rest = _without(runs, _category(name)) if len(runs) > _MAX_SHOWN else None
        if rest is not None:
            parts, runs = [*parts, name], rest
    for first, last in runs[:_MAX_SHOWN]:
        parts.append(_char(first) if first == last else f"{_char(first)}-{_char(last)}")
    return _Listed(parts, sum(last - first + 1 for first, last in runs[_MAX_SHOWN:]))


@cache
def _category(name: str) -> list[Run]:
    return [Run(*ends) for ends in members(ops.IN, ((ops.CATEGORY, _CATEGORIES[name]),), 0)]


def _without(runs: Sequence[Run], part: Sequence[Run]) -> list[Run] | None:
    """The characters of the runs that are not in the part; None where not all of the part is in them."""
    rest: list[Run] = []
    at = 0
    for first, last in runs:
        begin = first
        while at < len(part) and part[at].first <= last:
            if part[at].first < begin or part[at].last > last:
                return None
            if begin < part[at].first:
                rest.append(Run(begin, part[at].first - 1))
            begin = part[at].last + 1
            at += 1
        if begin <= last:
            rest.append(Run(begin, last))
    return rest if at == len(part) else None


def _outside(runs: Sequence[Run]) -> list[Run]:
    """The characters that are in none of the runs; surrogates count for neither."""
    outside, begin = [], 0
    for first, last in [*runs, Run(0x110000, 0x110000)]:
        for low, high in ((begin, min(first, 0xD800) - 1), (max(begin, 0xE000), first - 1)):
            if low <= high:
                outside.append(Run(low, high))
        begin = last + 1
    return outside


def _char(point: int) -> str:
    char = chr(point)
    if char in "\\]^-[":
        return "\\" + char
    return char if char.isprintable() else repr(char)[1:-1]
