"""Python's regular expressions as nodes: the language is that of `re.fullmatch`.

Python's own parser reads the pattern, and `re` itself says what a class matches, so syntax and meaning are Python's.
Greedy and lazy repeats have the same language. A backreference to a group of a few texts, such as the quote in
`(['"]).*\\1`, is these texts written out. Other backreferences and conditionals are not regular, atomic groups and
possessive repeats cut Python's search short: they are refused by name and place, never approximated.

Not here: the classes (`classes.py`), the place of a refused part (`places.py`), automata (`automaton.py`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]  # not in typeshed; the parse tree has no other door
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from nbsglang.engine.grammar.classes import members, word
from nbsglang.engine.grammar.finite import few_texts
from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.places import place
from nbsglang.engine.grammar.syntax import Ahead, Alt, Behind, Boundary, Chars, Edge, Empty, Node, Repeat, Seq, text
from nbsglang.errors import ConstraintError

_REFUSED = {
    ops.GROUPREF: "a backreference that is not to one of a few texts",
    ops.GROUPREF_EXISTS: "a conditional group (?(1)...)",
    ops.ATOMIC_GROUP: "an atomic group (?>...)",
    ops.POSSESSIVE_REPEAT: "a possessive repeat",
}
_CASE = int(re.IGNORECASE)
_KINDS = int(re.ASCII | re.LOCALE | re.UNICODE)  # flags of which a group has one
_NOTHING = Alt(())
_FEW = 16  # texts that a group has to which a backreference goes
_MANY = 64  # ways in which all such groups together are written out


def parse(pattern: str) -> Node:
    """The node whose texts are those that `re.fullmatch(pattern, ...)` matches.

    Raises ConstraintError, which names the pattern and why it cannot be used.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's hints about future syntax
            tree = _parser.parse(pattern)
        referred = _referred(tree) if re.search(r"\\[1-9]|\(\?P=", pattern) else frozenset()
        return _sequence(list(tree), _Where(tree.state.flags, first=True, last=True, referred=referred))
    except (re.error, OverflowError, ValueError) as error:
        raise ConstraintError(f"regex {shown(pattern)} is not a regular expression of Python: {error}") from None
    except _RefusedError as error:
        at = place(pattern, error.op, bool(tree.state.flags & re.VERBOSE))
        raise ConstraintError(
            f"regex {shown(pattern)} cannot constrain generation: it has {error}{at}; write it without"
        ) from None
    except RecursionError:
        raise ConstraintError(f"regex {shown(pattern)} is nested too deeply: take some of its groups apart") from None


class _RefusedError(Exception):
    """A construct that is not supported; the message completes "it has ..."."""

    def __init__(self, op: Any, message: str) -> None:
        super().__init__(message)
        self.op = op


@dataclass(frozen=True, slots=True)
class _Where:
    """Where in the pattern an item is: its flags, and whether text can stand before or after it.

    `referred` are the groups that backreferences go to, and `captures` what those have matched that stand before it in
    its sequence or around it; that is one of `n_ways`.
    """

    flags: int
    first: bool = False
    last: bool = False
    behind: bool = False  # in a lookbehind
    referred: frozenset[int] = frozenset()
    captures: tuple[tuple[int, str], ...] = ()
    n_ways: int = 1


def _sequence(items: Sequence[Any], where: _Where) -> Node:
    """The items one after the other."""
    if where.referred:
        items = _spread(items, where.referred)
    if len(items) == 1:
        return _item(items[0], where)
    n_first = next((n for n, (op, _) in enumerate(items) if op is not ops.AT), len(items))
    n_last = next((n for n, (op, _) in enumerate(reversed(items)) if op is not ops.AT), len(items))
    inner = replace(where, first=False, last=False)
    parts: list[Node] = []
    for n, item in enumerate(items):
        if item[0] is ops.LITERAL and not where.flags & _CASE:
            parts.append(_letter(item[1]))  # most of most patterns
            continue
        first, last = where.first and n <= n_first, where.last and n >= len(items) - 1 - n_last
        parts.append(_item(item, replace(where, first=first, last=last) if first or last else inner))
        if where.referred and (group := _group(item)) in where.referred:
            assert group is not None
            texts = few_texts(parts[-1], _FEW)
            if texts is not None and where.n_ways * len(texts) <= _MANY:
                parts[-1] = _for_each(texts, group, items[n + 1 :], replace(where, first=False))
                break
    return Seq(tuple(parts))


def _for_each(texts: Sequence[str], group: int, rest: Sequence[Any], where: _Where) -> Node:
    """Each text of a group with the rest of its sequence, which may refer to the group."""
    ways, n_ways = [], where.n_ways * len(texts)
    for each in texts:
        there = replace(where, captures=((group, each), *where.captures), n_ways=n_ways)
        ways.append(Seq((text(each), _sequence(rest, there))))
    return Alt(tuple(ways))


def _spread(items: Sequence[Any], referred: frozenset[int]) -> Sequence[Any]:
    """The items, where what is in groups that matter to none stands for itself."""
    spread, left = [], list(reversed(items))
    while left:
        item = left.pop()
        if item[0] is ops.SUBPATTERN and item[1][1:3] == (0, 0) and _group(item) not in referred:
            left += reversed(list(item[1][3]))
        else:
            spread.append(item)
    return spread


def _has_case(value: str) -> bool:
    return value.lower() != value or value.upper() != value


def _group(item: tuple[Any, Any]) -> int | None:
    """The number of the group that the item is."""
    number: int | None = item[1][0] if item[0] is ops.SUBPATTERN else None
    return number


def _referred(tree: Any) -> frozenset[int]:
    """The groups that backreferences of a parse tree go to."""
    found, left = set(), [tree]
    while left:
        at = left.pop()
        if isinstance(at, tuple) and len(at) == 2 and at[0] is ops.GROUPREF:
            found.add(at[1])
        elif isinstance(at, tuple | list | _parser.SubPattern):
            left += list(at)
    return frozenset(found)


def _item(item: tuple[Any, Any], where: _Where) -> Node:
    op, value = item
    if op is ops.GROUPREF:
        captured = dict(where.captures).get(value)
        if captured is not None and not (where.flags & _CASE and _has_case(captured)):
            return text(captured)
    if op in _REFUSED:
        raise _RefusedError(op, _REFUSED[op])
    if op is ops.AT:
        return _anchor(value, where)
    if op is ops.SUBPATTERN:
        _, added, removed, inner = value
        kept = where.flags & ~_KINDS if added & _KINDS else where.flags
        return _sequence(list(inner), replace(where, flags=(kept | added) & ~removed))
    if op is ops.BRANCH:
        return Alt(tuple(_sequence(list(branch), where) for branch in value[1]))
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
        least, most, inner = value
        if most != 1:  # an anchor in a part that repeats can stand in the middle
            where = replace(where, first=False, last=False)
        return Repeat(_sequence(list(inner), where), least, None if most is ops.MAXREPEAT else most)
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return _lookaround(value, op is ops.ASSERT_NOT, where)
    if op is ops.FAILURE:  # (?!)
        return _NOTHING
    if op is ops.LITERAL and not where.flags & _CASE:
        return _letter(value)
    return _chars(op, tuple(value) if op is ops.IN else value, where.flags)


@lru_cache(maxsize=4096)
def _letter(code_point: int) -> Chars:
    return Chars(members(ops.LITERAL, code_point, 0))  # the same node for the same set is less to build


@lru_cache(maxsize=1024)
def _chars(op: Any, value: Any, flags: int) -> Chars:
    return Chars(members(op, value, flags))


def _anchor(what: Any, where: _Where) -> Node:
    lines = bool(where.flags & re.MULTILINE)
    if what in (ops.AT_BOUNDARY, ops.AT_NON_BOUNDARY):
        return Boundary(Chars(word(where.flags)), inside=what is ops.AT_NON_BOUNDARY)
    if what in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
        return Empty() if where.first else Edge(at_end=False, lines=lines and what is ops.AT_BEGINNING)
    if where.last:
        return Empty()
    if what is ops.AT_END_STRING or lines:
        return Edge(at_end=True, lines=what is ops.AT_END)
    if where.behind:
        raise _RefusedError(what, "an anchor $ in a lookbehind")
    newline = Repeat(Chars(((10, 10),)), 0, 1)
    return Ahead(Seq((newline, Edge(at_end=True))))


def _lookaround(value: tuple[int, Any], negative: bool, where: _Where) -> Node:
    direction, inner = value
    if direction > 0 and where.behind:
        raise _RefusedError(ops.ASSERT, "a lookahead in a lookbehind")
    if direction < 0:
        narrowest, widest = inner.getwidth()
        if narrowest != widest:
            raise re.error("look-behind requires fixed-width pattern")
    there = replace(where, first=False, last=False, behind=where.behind or direction < 0)
    node = _sequence(list(inner), there)
    return Ahead(node, negative) if direction > 0 else Behind(node, negative)
