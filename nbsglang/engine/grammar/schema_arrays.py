"""Arrays as nodes: the first items in their turn, then any number of others.

Not here: what items are (`schema_nodes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nbsglang.engine.grammar.schema_keys import Maker, is_nothing
from nbsglang.engine.grammar.schema_shapes import Array
from nbsglang.engine.grammar.syntax import Alt, Empty, Node, Repeat, Seq, text

_NOTHING = Alt(())
_COMMA = text(", ")


def array_node(shape: Array, maker: Maker) -> Node:
    """The arrays of a shape."""
    most = shape.most
    first: list[Node] = []
    for sub in shape.prefix[:most]:
        item = maker.node(sub)
        if is_nothing(item):
            most = len(first)  # there can be no more
            break
        first.append(item)
    others = None if most is None else most - len(first)
    item = _NOTHING if others == 0 else maker.node(shape.items)
    if is_nothing(item):
        others = 0
    if others is not None and shape.least > len(first) + others:
        return _NOTHING
    rest = _others(item, max(shape.least - len(first), 0), others, has_comma=bool(first))
    return Seq((text("["), _first(first, shape.least, rest), text("]")))


def _others(item: Node, least: int, most: int | None, has_comma: bool) -> Node:
    """So many items, with a comma before each or before each but the first."""
    if most == 0:
        return Empty()
    after = Seq((_COMMA, item))
    if has_comma:
        return Repeat(after, least, most)
    some = Seq((item, Repeat(after, max(least - 1, 0), None if most is None else most - 1)))
    return some if least else Repeat(some, 0, 1)


def _first(items: Sequence[Node], least: int, rest: Node) -> Node:
    """The first items, of which those from `least` on may be left out together with all that follow, and the rest."""
    for index in range(len(items) - 1, -1, -1):
        item: Node = Seq((*((_COMMA,) if index else ()), items[index], rest))
        rest = item if index < least else Repeat(item, 0, 1)
    return rest
