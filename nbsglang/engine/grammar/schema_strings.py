"""The strings of a shape as nodes.

A string without a pattern, a format and a fixed value is written with any escape of JSON, as long as no surrogate is
alone. In all others, and in the names of properties, each character has one spelling, that of `json.dumps` with
`ensure_ascii=False`: itself, or for quotes, backslashes and control characters the shortest escape.

Not here: what patterns become (`schema_patterns.py`), how characters are written (`schema_spelling.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from nbsglang.engine.grammar.regex import parse
from nbsglang.engine.grammar.rules import Counted, Measured, Rule, Shared
from nbsglang.engine.grammar.schema_formats import format_pattern
from nbsglang.engine.grammar.schema_patterns import END, searched
from nbsglang.engine.grammar.schema_shapes import String
from nbsglang.engine.grammar.schema_spelling import QUOTE, free_char, spelled
from nbsglang.engine.grammar.syntax import ALL_CHARS, Ahead, Alt, Chars, Empty, Node, Repeat, Seq, text

_ANY = Chars(ALL_CHARS)


@lru_cache(maxsize=128)
def string(shape: String) -> Rule:
    """The strings of a shape, in their quotes. Raises ConstraintError for a pattern that is not supported."""
    measured = _measured(shape)
    if measured is not None:
        return measured
    if _is_special(shape):
        return _alone(shape)
    return Counted(any_string(), shape.least, shape.most) if shape.least or shape.most is not None else any_string()


def _measured(shape: String) -> Measured | None:
    """Strings of one pattern or format that may be too long, and nothing else, if lengths can be counted beside it."""
    if shape.most is None or len(shape.patterns) + len(shape.formats) != 1 or shape.excluded or shape.others:
        return None
    (part,) = _parts(shape)
    least, most = lengths(part)
    if least < shape.least or (most is not None and most <= shape.most) or _has_gates(part) or _counted(part, shape):
        return None
    return Measured(_alone(replace(shape, least=0, most=None)), shape.most, max(least, farthest(part)))


@lru_cache(maxsize=128)
def _alone(shape: String) -> Shared:
    return Shared(Seq((QUOTE, spelled(plain(shape)), QUOTE)))


@lru_cache(maxsize=1)
def any_string() -> Shared:
    """Any string in its quotes."""
    return Shared(Seq((QUOTE, Repeat(free_char(), 0, None), QUOTE)))


def plain(shape: String) -> Node:
    """The strings of a shape as they are meant: without quotes and escapes, `END` standing for what ends them."""
    excluded = [searched(pattern, loose=True) for pattern in shape.excluded]
    if shape.others:
        excluded.append(Alt(tuple(map(text, shape.others))))
    return without(_with_all(shape), excluded)


def _with_all(shape: String) -> Node:
    """The strings that have what a shape asks for, those among them that it excludes."""
    parts = _parts(shape)
    if not parts:
        return Repeat(_ANY, shape.least, shape.most)
    if not any(_is_within(part, shape) for part in parts):
        counted = _counted(parts[0], shape) if len(parts) == 1 else None
        parts = [counted] if counted is not None else [Repeat(_ANY, shape.least, shape.most), *parts]
    return together(parts)


def together(parts: Sequence[Node]) -> Node:
    """The strings that are in all of the parts, of which there is one at least."""
    *others, last = parts
    return Seq((*(Ahead(Seq((part, END))) for part in others), last)) if others else last


def without(part: Node, others: Sequence[Node]) -> Node:
    """The strings of a part that are in none of the others."""
    return Seq((*(Ahead(Seq((other, END)), negative=True) for other in others), part)) if others else part


def lengths(node: Node) -> tuple[int, int | None]:
    """A lower and an upper bound (None: without end) of the characters that texts of a node have."""
    if isinstance(node, Chars):
        return 1, 1
    if isinstance(node, Repeat):
        least, most = lengths(node.part)
        return least * node.least, 0 if most == 0 else None if most is None or node.most is None else most * node.most
    if not isinstance(node, Seq | Alt):
        return 0, 0
    each = [lengths(part) for part in node.parts]
    mosts = [most for _, most in each if most is not None]
    is_bounded = len(mosts) == len(each)
    if isinstance(node, Seq):
        return sum(least for least, _ in each), sum(mosts) if is_bounded else None
    return min((least for least, _ in each), default=0), max(mosts, default=0) if is_bounded else None


def farthest(node: Node) -> int:
    """No fewer characters than end a text of a node without gates from behind any of its characters."""
    if isinstance(node, Repeat):
        return farthest(node.part) + max(node.least - 1, 0) * lengths(node.part)[0]
    if not isinstance(node, Seq | Alt):
        return 0
    most = behind = 0
    for part in reversed(node.parts):
        most = max(most, farthest(part) + behind)
        behind += lengths(part)[0] if isinstance(node, Seq) else 0
    return most


def _parts(shape: String) -> list[Node]:
    return [_format(name) for name in shape.formats] + [searched(pattern) for pattern in shape.patterns]


def _has_gates(node: Node) -> bool:
    if isinstance(node, Seq | Alt):
        return any(_has_gates(part) for part in node.parts)
    return _has_gates(node.part) if isinstance(node, Repeat) else not isinstance(node, Chars | Empty)


@lru_cache(maxsize=32)
def _format(name: str) -> Node:
    return parse(format_pattern(name))


def _is_special(shape: String) -> bool:
    return bool(shape.patterns or shape.formats or shape.excluded or shape.others)


def _is_within(part: Node, shape: String) -> bool:
    """Whether all texts of the part have as many characters as they must."""
    least, most = lengths(part)
    return least >= shape.least and (shape.most is None or (most is not None and most <= shape.most))


def _counted(part: Node, shape: String) -> Node | None:
    """The part with its lengths bounded, if it is a single character that repeats."""
    while isinstance(part, Seq | Alt) and len(part.parts) == 1:
        part = part.parts[0]
    if not isinstance(part, Repeat) or not isinstance(part.part, Chars):
        return None
    least = max(part.least, shape.least)
    mosts = [most for most in (part.most, shape.most) if most is not None]
    return Alt(()) if mosts and min(mosts) < least else Repeat(part.part, least, min(mosts, default=None))
