"""Patterns of JSON Schema as nodes of whole strings: a pattern is found anywhere, `^` and `$` are the string's ends.

ECMAScript and Python mean different things by `\\d`, `\\w`, `\\s`, the dot, `$` before a last newline and some more. A
string is taken where both find the pattern; where something must not be found, it is refused where either does. Word
boundaries, lookbehinds, and anchors in a part that repeats are not supported.

Not here: how strings are written (`schema_spelling.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from nbsglang.engine.grammar.classes import both, complement, union
from nbsglang.engine.grammar.regex import parse
from nbsglang.engine.grammar.syntax import (
    ALL_CHARS,
    Ahead,
    Alt,
    Chars,
    Edge,
    Empty,
    Node,
    Ranges,
    Repeat,
    Seq,
)
from nbsglang.errors import ConstraintError

ANY_TEXT = Repeat(Chars(ALL_CHARS), 0, None)
END = Edge(at_end=True)  # of the string
_START = Edge(at_end=False)
_NEWLINE = Repeat(Chars(((10, 10),)), 0, 1)
_PYTHON_END = Ahead(Seq((_NEWLINE, END)))
_PYTHON_DOT = complement(((10, 10),))
_DOT = complement(((10, 10), (13, 13), (0x2028, 0x2029)))  # ECMAScript's
_MARK = (0xFEFF, 0xFEFF)  # white space to ECMAScript alone
_SPACES = ((9, 13), (0x20, 0x20))
_Ways: TypeAlias = dict[tuple[bool, bool], Node]  # by whether nothing may stand before it, and after it
_FREE = (False, False)
_TWO_WAYS = re.compile(r"\\[wWdDsSbB]|\(\?[aiLmsux-]")  # what Unicode and ASCII may read differently, and flags


@lru_cache(maxsize=256)
def searched(pattern: str, loose: bool = False) -> Node:
    """The strings in which a pattern is found; with `loose` those in which it may be by any of the two meanings.

    Its gates are lookaheads, with `END` in them. Raises ConstraintError for what is not supported.
    """
    try:
        node = _inner(pattern, "u")
        ascii_node = _inner(pattern, "a") if _TWO_WAYS.search(pattern) else node
    except ConstraintError:
        parse(pattern)  # what it says of an error has the pattern as it is
        raise
    ways = _Finder(loose).ways(node, ascii_node)
    found: list[Node] = []
    for (is_first, is_last), node in ways.items():
        found.append(Seq((*(() if is_first else (ANY_TEXT,)), node, *(() if is_last else (ANY_TEXT,)))))
    return found[0] if len(found) == 1 else Alt(tuple(found))


def _inner(pattern: str, flag: str) -> Node:
    """The node of a pattern that may have text before and after it, with `\\w` of Unicode (u) or ASCII (a)."""
    node = parse(f"(?s:.)(?{flag}:{pattern})(?s:.)")
    assert isinstance(node, Seq), "three parts"
    return Seq(node.parts[1:-1])


@dataclass(frozen=True)
class _Finder:
    """Takes the anchors out of a node: what is left, by which of its ends must be those of the string.

    Nodes come in pairs of the same build, whose characters are those of the two meanings.
    """

    loose: bool

    def ways(self, node: Node, ascii_node: Node) -> _Ways:
        """The ways in which the node can be found."""
        if isinstance(node, Chars) and isinstance(ascii_node, Chars):
            return {_FREE: _chars(node.ranges, ascii_node.ranges, self.loose)}
        if isinstance(node, Empty):
            return {_FREE: node}
        if node == _START:
            return {(True, False): Empty()}
        if node in (END, _PYTHON_END):
            return {(False, True): _NEWLINE if self.loose and node == _PYTHON_END else Empty()}
        if isinstance(node, Seq) and isinstance(ascii_node, Seq):
            found: _Ways = {_FREE: Empty()}
            plain: list[Node] = []  # parts without anchors, joined at once: there may be a hundred thousand
            for one, other in zip(node.parts, ascii_node.parts, strict=True):
                if isinstance(one, Chars) and isinstance(other, Chars):
                    plain.append(_chars(one.ranges, other.ranges, self.loose))
                    continue
                ways = self.ways(one, other)
                if set(ways) == {_FREE}:
                    plain.append(ways[_FREE])
                    continue
                found = self._in_turn(self._in_turn(found, {_FREE: _joined(plain)}), ways)
                plain = []
            return self._in_turn(found, {_FREE: _joined(plain)})
        if isinstance(node, Alt) and isinstance(ascii_node, Alt):
            each = [self.ways(*pair) for pair in zip(node.parts, ascii_node.parts, strict=True)]
            keys = dict.fromkeys(key for ways in each for key in ways)
            return {key: _any([ways[key] for ways in each if key in ways]) for key in keys}
        if isinstance(node, Repeat) and isinstance(ascii_node, Repeat):
            return self._repeat(node, ascii_node)
        if isinstance(node, Ahead) and isinstance(ascii_node, Ahead):
            return self._ahead(node, ascii_node)
        raise ConstraintError("it has a word boundary, a lookbehind or an anchor for lines; write it without")

    def _repeat(self, node: Repeat, ascii_node: Repeat) -> _Ways:
        ways = self.ways(node.part, ascii_node.part)
        if not ways:  # as `a^` has none: no time at all is left
            return {_FREE: Empty() if node.least == 0 else Alt(())}
        if set(ways) == {_FREE}:
            return {_FREE: Repeat(ways[_FREE], node.least, node.most)}
        if node.most == 1:
            return ways if node.least else {**ways, _FREE: _any([Empty(), *([ways[_FREE]] if _FREE in ways else [])])}
        raise ConstraintError("it has an anchor in a part that repeats; write it without")

    def _ahead(self, node: Ahead, ascii_node: Ahead) -> _Ways:
        ways = _Finder(self.loose != node.negative).ways(node.part, ascii_node.part)
        found: _Ways = {_FREE: Empty()} if node.negative and not ways else {}
        for is_first in (False, True):
            parts = [
                Seq((part, END)) if is_last else part
                for (its_first, is_last), part in ways.items()
                if its_first == is_first
            ]
            if parts:
                found[is_first, False] = Ahead(_any(parts), node.negative)
        if node.negative and any(is_first for is_first, _ in found):
            raise ConstraintError("it has ^ in a negative lookahead; write it without")
        return found

    def _in_turn(self, some: _Ways, others: _Ways) -> _Ways:
        """One after the other: what stands before an anchor for the start, or after one for the end, has no characters.

        But for the last newline, which Python's `$` may stand before.
        """
        found: dict[tuple[bool, bool], list[Node]] = {}
        for ((first, last), node), ((other_first, other_last), other) in product(some.items(), others.items()):
            rest: Node | None = other
            if last:
                rest = Empty() if self.loose and _has_newline(other) else _blank(other)
            before = _blank(node) if other_first else node
            if other_first and last and self.loose and before is not None:
                before = _NEWLINE
            parts = (before, rest)
            if None not in parts:
                key = first or other_first, last or other_last
                found.setdefault(key, []).append(_both(*(part for part in parts if part is not None)))
        return {key: _any(nodes) for key, nodes in found.items()}


@lru_cache(maxsize=4096)
def _chars(ranges: Ranges, ascii_ranges: Ranges, loose: bool) -> Chars:
    """What a class of characters has by both meanings; with `loose` by any."""
    if loose:
        found = union([*ranges, *ascii_ranges])
        return Chars(union([*found, _MARK]) if both(found, _SPACES) else found)
    if ranges == _PYTHON_DOT:
        return Chars(_DOT)
    found = both(ranges, ascii_ranges)
    is_marked = found == (_MARK,) or both(found, _SPACES) == _SPACES
    return Chars(found if is_marked else both(found, complement((_MARK,))))


def _both(one: Node, other: Node) -> Node:
    """One after the other, in one sequence where it can be."""
    parts = [part for node in (one, other) for part in (node.parts if isinstance(node, Seq) else (node,))]
    return Seq(tuple(part for part in parts if not isinstance(part, Empty)))


def _joined(parts: list[Node]) -> Node:
    """One after the other."""
    return Seq(tuple(parts)) if parts else Empty()


def _any(nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Alt(tuple(nodes))


def _blank(node: Node) -> Node | None:
    """What a node has without characters; None if there is nothing."""
    if isinstance(node, Chars):
        return None
    if isinstance(node, Repeat):
        return Empty() if node.least == 0 else _blank(node.part)
    if isinstance(node, Seq | Alt):
        each = [_blank(part) for part in node.parts]
        there = [part for part in each if part is not None]
        if isinstance(node, Seq):
            return Seq(tuple(there)) if len(there) == len(each) else None
        return _any(there) if there else None
    return node


def _has_newline(node: Node) -> bool:
    """Whether a newline alone may be a text of a node, whatever it looks ahead for."""
    if isinstance(node, Chars):
        return bool(both(node.ranges, ((10, 10),)))
    if isinstance(node, Repeat):
        return node.most != 0 and (node.least <= 1 or _blank(node.part) is not None) and _has_newline(node.part)
    if isinstance(node, Alt):
        return any(map(_has_newline, node.parts))
    if not isinstance(node, Seq):
        return False
    rest = [part for part in node.parts if _blank(part) is None]
    return (len(rest) == 1 and _has_newline(rest[0])) or (not rest and any(map(_has_newline, node.parts)))
