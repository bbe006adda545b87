"""Python's regular expressions, exactly, in the few constructs that llguidance shares with them.

A pattern is parsed by Python's own parser and written anew: every character class (`\\w`, `.`, `[^a]`, a letter under
`(?i)`) becomes the set of code points for which Python's `re` says that it matches (`classes.py`). The language is that
of `re.fullmatch`. What has no counterpart (backreferences, lookaround, word boundaries, conditionals, atomic groups,
anchors in the middle) is refused by name, never approximated.

Not here: the automaton (`external.py` hands the text to llguidance).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from re import _constants as ops  # type: ignore[attr-defined]  # not in typeshed; the parse tree has no other door
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from nbsglang.engine.grammar.classes import members
from nbsglang.engine.grammar.syntax import Ranges
from nbsglang.errors import ConstraintError

MAX_POSITIONS = 50_000  # characters and classes, each counted as often as it may repeat

_REFUSED = {
    ops.GROUPREF: "a backreference",
    ops.GROUPREF_EXISTS: "a conditional group (?(1)...)",
    ops.ASSERT: "a lookahead or lookbehind",
    ops.ASSERT_NOT: "a negative lookahead or lookbehind",
    ops.ATOMIC_GROUP: "an atomic group (?>...)",
    ops.POSSESSIVE_REPEAT: "a possessive repeat",
    ops.FAILURE: "a part that can never match",
}
_KINDS = int(re.ASCII | re.LOCALE | re.UNICODE)  # flags of which a group has one
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
    except (re.error, OverflowError, ValueError, RecursionError) as error:
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
        kept = flags & ~_KINDS if added & _KINDS else flags
        text, size = _sequence(list(inner), (kept | added) & ~removed, first, last)
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
    if op is ops.LITERAL and 0xD800 <= value <= 0xDFFF:
        raise _RefusedError("a lone surrogate, which no text has")
    ranges = members(op, tuple(value) if op is ops.IN else value, flags)
    if not ranges:
        raise _RefusedError("a class without a character")
    return char_class(ranges), 1


def _anchor(where: Any, first: bool, last: bool) -> str:
    if (where in _FIRST and first) or (where in _LAST and last):
        return ""
    if where in _FIRST | _LAST:
        raise _RefusedError("an anchor that is not at its beginning or end")
    raise _RefusedError("a word boundary")


def char_class(ranges: Ranges) -> str:
    """A class of some characters, of which there is one at least, in llguidance's syntax."""
    return "[" + "".join(f"\\x{{{a:X}}}" if a == b else f"\\x{{{a:X}}}-\\x{{{b:X}}}" for a, b in ranges) + "]"
