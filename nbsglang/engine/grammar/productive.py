"""Which of the parts that refer to each other have texts: one that always has the like of itself inside has none.

Places for parts without a text are taken out of the others, which mostly have texts without them.

Not here: what makes a single part empty (`build.py`, `automaton.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nbsglang.engine.grammar.limits import Limits, NoTextError
from nbsglang.engine.grammar.rules import Piece, Rule, piece_of
from nbsglang.engine.grammar.syntax import Alt, Chars, Node, Repeat, Seq, called

_GONE = Seq(())  # in the place of a part that none refers to any more


def with_texts(rules: Sequence[Rule], limits: Limits, alone: bool) -> tuple[list[Rule], list[Piece]]:
    """The parts without places for those that have no text, and their automata; see `rules.piece_of`.

    From every state of each of them an end can then be reached, as an end of its automaton can. Raises NoTextError
    where the first part has no text, and ConstraintError past the limits.
    """
    left = list(rules)
    pieces: list[Piece | None] = [None] * len(left)
    empty: set[int] = set()
    while fresh := (_endless(left) | _empty(left, pieces, limits, alone)) - empty:
        if 0 in fresh:
            raise NoTextError(
                "no text matches the constraint: it asks for what has no text, or always for more of itself"
            )
        empty |= fresh
        for number, rule in enumerate(left):
            kept = rule
            if number in fresh:
                kept = _GONE
            elif isinstance(rule, Node):
                kept = _without(rule, fresh)
            if kept is not rule:
                left[number], pieces[number] = kept, None
    return left, [piece for piece in pieces if piece is not None]


def is_recursive(rules: Sequence[Rule]) -> bool:
    """Whether a part can have the like of itself inside."""
    inside = {number: _calls(rule, {}) for number, rule in enumerate(rules) if isinstance(rule, Node)}
    left = dict(inside)
    while ended := [number for number, others in left.items() if not others & left.keys()]:
        for number in ended:
            del left[number]
    return bool(left)


# ------------------------------------------------------------------------------------- parts without a text


def _empty(rules: Sequence[Rule], pieces: list[Piece | None], limits: Limits, alone: bool) -> set[int]:
    """Those whose own automaton has none. The others' are left in `pieces`."""
    found = set()
    for number, rule in enumerate(rules):
        if pieces[number] is None:
            try:
                pieces[number] = piece_of(rule, limits, alone)
            except NoTextError:
                found.add(number)
    return found


def _endless(rules: Sequence[Rule]) -> set[int]:
    """Those that have none as all of their texts would have parts without a text inside."""
    known = {number for number, rule in enumerate(rules) if not isinstance(rule, Node)}
    while True:
        seen: dict[int, bool] = {}
        left = [number for number in range(len(rules)) if number not in known]
        found = {number for number in left if isinstance(rule := rules[number], Node) and _has_text(rule, known, seen)}
        if not found:
            return set(left)
        known |= found


def _has_text(node: Node, known: set[int], seen: dict[int, bool]) -> bool:
    """Whether a node has a text with those of the known parts inside."""
    if isinstance(node, Chars):
        return _has_char(node, known)
    has = seen.get(id(node))
    if has is None:
        if isinstance(node, Seq):
            has = all(
                _has_char(part, known) if isinstance(part, Chars) else _has_text(part, known, seen)
                for part in node.parts
            )
        elif isinstance(node, Alt):
            has = any(_has_text(part, known, seen) for part in node.parts)
        else:
            has = not isinstance(node, Repeat) or node.least == 0 or _has_text(node.part, known, seen)
        seen[id(node)] = has
    return has


def _has_char(node: Chars, known: set[int]) -> bool:
    number = _called(node)
    return bool(node.ranges) and (number is None or number in known)


# ------------------------------------------------------------------------------------- places


def _called(node: Chars) -> int | None:
    return called(node.ranges[0][0]) if node.ranges else None


def _without(node: Node, empty: set[int], seen: dict[int, Node] | None = None) -> Node:
    """A node without places for some parts; the same one where there are none."""
    if isinstance(node, Chars):
        return Alt(()) if _called(node) in empty else node
    if not isinstance(node, Seq | Alt | Repeat):
        return node
    seen = {} if seen is None else seen
    kept = seen.get(id(node))
    if kept is None:
        inner = (node.part,) if isinstance(node, Repeat) else node.parts
        parts = tuple(_without(part, empty, seen) for part in inner)
        if all(part is own for part, own in zip(parts, inner, strict=True)):
            kept = node
        else:
            kept = replace(node, part=parts[0]) if isinstance(node, Repeat) else replace(node, parts=parts)
        seen[id(node)] = kept
    return kept


def _calls(node: Node, seen: dict[int, set[int]]) -> set[int]:
    """The numbers of the parts that a node has places for."""
    if isinstance(node, Chars):
        number = _called(node)
        return set() if number is None else {number}
    if not isinstance(node, Seq | Alt | Repeat):
        return set()
    found = seen.get(id(node))
    if found is None:
        inner = (node.part,) if isinstance(node, Repeat) else node.parts
        found = seen[id(node)] = set().union(*(_calls(part, seen) for part in inner))
    return found
