"""Whether parts that refer to each other have texts: one that always has the like of itself inside has none.

Not here: nodes without a text for other reasons (`build.py`, `automaton.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nbsglang.engine.grammar.rules import Rule
from nbsglang.engine.grammar.syntax import Alt, Chars, Node, Repeat, Seq, called
from nbsglang.errors import ConstraintError


def check_productive(rules: Sequence[Rule]) -> None:
    """Raise ConstraintError if one of the parts has no text.

    From every state of each of them an end can then be reached, as an end of its automaton can.
    """
    known = {number for number, rule in enumerate(rules) if not isinstance(rule, Node)}
    while len(known) < len(rules):
        seen: dict[int, bool] = {}
        found = {number for number, rule in enumerate(rules) if isinstance(rule, Node) and _has_text(rule, known, seen)}
        if found <= known:
            raise ConstraintError("a part of the constraint has the like of itself inside, without end")
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
    number = called(node.ranges[0][0]) if node.ranges else None
    return bool(node.ranges) and (number is None or number in known)
