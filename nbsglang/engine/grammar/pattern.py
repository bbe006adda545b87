"""Python's regular expressions, exactly, in the few constructs that llguidance shares with them.

A pattern is parsed by Python's own parser and written anew: every character class (`\\w`, `.`, `[^a]`, a letter under
`(?i)`) becomes the set of code points for which Python's `re` says that it matches. The language is that of
`re.fullmatch`. What has no counterpart (backreferences, lookaround, word boundaries, conditionals, atomic groups,
anchors in the middle) is refused by name, never approximated.

Not here: the automaton (`external.py` hands the text to llguidance).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from re import _constants as ops  # type: ignore[attr-defined]  # not in typeshed; the parse tree has no other door
from re import _parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

from nbsglang.errors import ConstraintError

MAX_POSITIONS = 50_000  # characters and classes, each counted as often as it may repeat

_Ranges: TypeAlias = tuple[tuple[int, int], ...]  # code points, both ends included, ascending
_REFUSED = {
    ops.GROUPREF: "a backreference",
    ops.GROUPREF_EXISTS: "a conditional group (?(1)...)",
    ops.ASSERT: "a lookahead or lookbehind",
    ops.ASSERT_NOT: "a negative lookahead or lookbehind",
    ops.ATOMIC_GROUP: "an atomic group (?>...)",
    ops.POSSESSIVE_REPEAT: "a possessive repeat",
    ops.FAILURE: "a part that can never match",
}
_FIRST = {ops.AT_BEGINNING, ops.AT_BEGINNING_STRING}
_LAST = {ops.AT_END, ops.AT_END_STRING}


def translate(pattern: str) -> str:
    """The pattern in the syntax of llguidance, with the language of `re.fullmatch(pattern, ...)`.

    Raises ConstraintError, which names the pattern and why it cannot be used.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's hints about future syntax
            re.compile(pattern)
            tree = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConstraintError(f"regex {shown(pattern)} is not a regular expression of Python: {error}") from None
    try:
        text, size = _sequence(list(tree), tree.state.flags, True, True)
    except _RefusedError as error:
        raise ConstraintError(f"regex {shown(pattern)} cannot constrain generation: it has {error}") from None
    except RecursionError:
        raise ConstraintError(f"regex {shown(pattern)} is nested too deeply") from None
    if size > MAX_POSITIONS:
        raise ConstraintError(
            f"regex {shown(pattern)} has {size} positions with its repeats written out; {MAX_POSITIONS} go"
        )
    return text


def literal(text: str) -> str:
    """A pattern in llguidance's syntax that matches this text only. Raises ConstraintError for lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConstraintError(f"{text!r} holds a lone surrogate, which no text has") from None
    return "".join(f"\\x{{{ord(char):X}}}" for char in text)


def shown(value: object) -> str:
    """A value for an error message: escaped, its middle left out if it is long."""
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:200]}...{text[-80:]}"


class _RefusedError(Exception):
    """A construct that has no counterpart; the message completes "it has ..."."""


def _sequence(items: Sequence[Any], flags: int, first: bool, last: bool) -> tuple[str, int]:
    """Text and size of a sequence; `first` and `last` say that nothing can stand before or after it."""
    texts, size = [], 0
    for n, item in enumerate(items):
        is_first = first and all(op is ops.AT for op, _ in items[:n])
        is_last = last and all(op is ops.AT for op, _ in items[n + 1 :])
        text, its_size = _item(item, flags, is_first, is_last)
        texts.append(text)
        size += its_size
    return "".join(texts), size


def _item(item: tuple[Any, Any], flags: int, first: bool, last: bool) -> tuple[str, int]:
    op, value = item
    if op in _REFUSED:
        raise _RefusedError(_REFUSED[op])
    if op is ops.AT:
        return _anchor(value, first, last), 0
    if op is ops.SUBPATTERN:
        _, added, removed, inner = value
        text, size = _sequence(list(inner), (flags | added) & ~removed, first, last)
        return f"(?:{text})", size
    if op is ops.BRANCH:
        parts = [_sequence(list(branch), flags, first, last) for branch in value[1]]
        return f"(?:{'|'.join(text for text, _ in parts)})", sum(size for _, size in parts)
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):  # greedy and lazy ones have the same language
        least, most, inner = value
        once = most == 1  # an anchor in a part that repeats can stand in the middle
        text, size = _sequence(list(inner), flags, first and once, last and once)
        bound = "" if most is ops.MAXREPEAT else most
        return f"(?:{text}){{{least},{bound}}}", size * max(1, least if most is ops.MAXREPEAT else most)
    return _class(_members(op, value, flags)), 1


def _anchor(where: Any, first: bool, last: bool) -> str:
    if (where in _FIRST and first) or (where in _LAST and last):
        return ""
    if where in _FIRST | _LAST:
        raise _RefusedError("an anchor that is not at its beginning or end")
    raise _RefusedError("a word boundary")


def _class(ranges: _Ranges) -> str:
    if not ranges:
        raise _RefusedError("a class without a character")
    return "[" + "".join(f"\\x{{{a:X}}}" if a == b else f"\\x{{{a:X}}}-\\x{{{b:X}}}" for a, b in ranges) + "]"


# ------------------------------------------------------------------------------- sets of characters


def _members(op: Any, value: Any, flags: int) -> _Ranges:
    """The characters that a class, a letter or a dot matches."""
    flags &= re.IGNORECASE | re.ASCII | re.DOTALL
    if op is ops.LITERAL:
        return _letter(value, flags & ~re.DOTALL)
    if op is ops.ANY:
        return _matching(".", flags & re.DOTALL)
    items = [(ops.NEGATE, None), (ops.LITERAL, value)] if op is ops.NOT_LITERAL else value
    if not flags & re.IGNORECASE and all(kind in (ops.LITERAL, ops.RANGE) for kind, _ in items):
        return _union((what, what) if kind is ops.LITERAL else what for kind, what in items)
    parts = []
    for kind, what in items:
        if kind is ops.NEGATE:
            parts.append("^")
        elif kind is ops.LITERAL:
            parts.append(_escape(what))
        elif kind is ops.RANGE:
            parts.append(f"{_escape(what[0])}-{_escape(what[1])}")
        else:
            parts.append(_CATEGORIES[what])
    return _matching(f"[{''.join(parts)}]", flags & ~re.DOTALL)


_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}


def _escape(code_point: int) -> str:
    return f"\\U{code_point:08X}"


def _letter(code_point: int, flags: int) -> _Ranges:
    if 0xD800 <= code_point <= 0xDFFF:
        raise _RefusedError("a lone surrogate, which no text has")
    if not flags & re.IGNORECASE:
        return ((code_point, code_point),)
    found = re.compile(_escape(code_point), flags).findall(chr(code_point) + _cased())
    return tuple((point, point) for point in sorted({ord(char) for char in found}))


@lru_cache(maxsize=512)
def _matching(source: str, flags: int) -> _Ranges:
    """The code points that a one-character pattern matches; asks `re` for all of them (15 ms)."""
    runs = (match.span() for match in re.compile(f"(?:{source})+", flags).finditer(_all_characters()))
    return tuple(_without_surrogates(runs))


def _union(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    """Ranges of code points in order, without overlaps and surrogates."""
    union: list[tuple[int, int]] = []
    for start, end in sorted(part for a, b in ranges for part in ((a, min(b, 0xD7FF)), (max(a, 0xE000), b))):
        if start > end:
            continue
        if union and start <= union[-1][1] + 1:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return tuple(union)


def _without_surrogates(runs: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """From spans in `_all_characters` to ranges of code points."""
    gap = 0xD800
    for start, end in runs:
        if start < gap:
            yield start, min(end, gap) - 1
        if end > gap:
            yield max(start, gap) + 0x800, end - 1 + 0x800


@cache
def _all_characters() -> str:
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))


@cache
def _cased() -> str:
    """All characters for which case makes a difference."""
    return "".join(char for char in _all_characters() if char.lower() != char or char.upper() != char)
