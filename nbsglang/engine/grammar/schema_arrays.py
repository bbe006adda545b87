"""Arrays as nodes: the first items in their turn, then any number of others.

Not here: what items are (`schema_nodes.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from nbsglang.engine.grammar.schema_keys import Maker, is_nothing, one_of
from nbsglang.engine.grammar.schema_places import NotRegularError
from nbsglang.engine.grammar.schema_shapes import Array, Fixed, joined
from nbsglang.engine.grammar.schema_values import identity, written
from nbsglang.engine.grammar.syntax import Alt, Empty, Node, Repeat, Seq, text
from nbsglang.errors import ConstraintError

_NOTHING = Alt(())
_COMMA = text(", ")
_FEW = 8  # values of items that all differ
_MANY = 16  # places that an item is looked for at
_MOST_WAYS = 256  # arrays that this may make of one


def array_node(shape: Array, maker: Maker) -> Node:
    """The arrays of a shape. Raises NotRegularError for what this cannot count or tell apart."""
    if shape.unique and (shape.most is None or shape.most > 1):
        return _unique(shape, maker)
    if shape.some:
        return _with_some(shape, maker)
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


def _unique(shape: Array, maker: Maker) -> Node:
    """Arrays of which no two items are the same: each of a few values once. Raises ConstraintError for many values."""
    texts: dict[Hashable, list[Node]] = {}
    items = maker.alternatives(shape.items)
    for item in items:
        if isinstance(item, Fixed):
            texts.setdefault(identity(item.value), []).append(text(written(item.value)))
    if shape.prefix or shape.some or len(texts) > _FEW or not all(isinstance(item, Fixed) for item in items):
        raise ConstraintError(
            f"json_schema cannot be used: 'uniqueItems' at {shape.unique}: that all items differ can be asked for of "
            f"{_FEW} values at most: take it away, or list the values of items in 'enum'"
        )
    values = [one_of(same) for same in texts.values()]
    most = len(values) if shape.most is None else min(shape.most, len(values))
    if most < shape.least:
        return _NOTHING
    rests: dict[frozenset[int], Node] = {}  # none with an empty text: parts have none

    def rest(used: frozenset[int]) -> Node:
        """What may follow when these have been there."""
        if len(used) == most:
            return Empty()
        if used not in rests:
            comma = (_COMMA,) if used else ()
            nexts = [n for n in range(len(values)) if n not in used]
            rests[used] = maker.part(one_of([Seq((*comma, values[n], rest(used | {n}))) for n in nexts]))
        return rests[used] if len(used) < shape.least else Repeat(rests[used], 0, 1)

    return Seq((text("["), rest(frozenset()), text("]")))


def _with_some(shape: Array, maker: Maker) -> Node:
    """Arrays of which an item at one place or another is of a kind: one of the first, or one after these."""
    wanted, *others = shape.some
    n_first = max(len(shape.prefix), shape.least, 1) if shape.most is None else shape.most
    if n_first > _MANY or n_first ** len(shape.some) > _MOST_WAYS or (others and shape.most is None):
        raise NotRegularError("an item that there must be, in arrays of many items or with others that must be")
    ways: list[Node] = []
    for n in range(n_first):
        before = tuple(map(shape.item, range(n)))
        after = tuple(shape.item(at) for at in range(n + 1, len(shape.prefix)))
        prefix = (*before, joined(shape.item(n), wanted), *after)
        ways.append(array_node(replace(shape, prefix=prefix, least=max(shape.least, n + 1), some=(*others,)), maker))
    item, one = maker.node(shape.items), maker.node(joined(shape.items, wanted))
    first = [maker.node(shape.item(n)) for n in range(n_first)]
    if shape.most is None and not is_nothing(one) and not any(map(is_nothing, first)):
        before_it = Repeat(Seq((item, _COMMA)), 0, None)
        after_it = Repeat(Seq((_COMMA, item)), 0, None)
        begun = [part for node in first for part in (node, _COMMA)]
        ways.append(Seq((text("["), *begun, before_it, one, after_it, text("]"))))
    return one_of([way for way in ways if not is_nothing(way)])


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
