"""Objects as nodes: their properties in the order of the schema, those without a name of their own after them.

Each property may come with a comma before it or without, by whether another one came before. Rather than for each set
of optional properties, that is said in two rails: the first property that is there, and all that follow it.

Not here: names of properties that are not listed (`schema_keys.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nbsglang.engine.grammar.schema_keys import Maker, is_nothing, keys, one_of
from nbsglang.engine.grammar.schema_places import NotRegularError
from nbsglang.engine.grammar.schema_shapes import Object
from nbsglang.engine.grammar.schema_values import written
from nbsglang.engine.grammar.syntax import Alt, Empty, Node, Repeat, Seq, text

NOTHING = Alt(())
_COMMA = text(", ")
_FEW = 8  # members that are taken one by one


class Member(NamedTuple):
    """A property with its name, `least` to `most` times: those without a name of their own may be many."""

    node: Node
    least: int
    most: int | None

    def first(self) -> Node:
        """As the first one of an object, there at least once."""
        if self.most == 1:
            return self.node
        most = None if self.most is None else self.most - 1
        return Seq((self.node, Repeat(Seq((_COMMA, self.node)), max(self.least - 1, 0), most)))

    def rest(self) -> Node:
        """After others."""
        return Repeat(Seq((_COMMA, self.node)), self.least, self.most)


def object_node(shape: Object, maker: Maker) -> Node:
    """The objects of a shape. Raises NotRegularError for numbers of properties that this cannot count."""
    members = _named(shape, maker)
    if members is None:
        return NOTHING
    values = [(key, maker.node(sub)) for key, sub in keys(shape, maker)]
    pairs = [Seq((key, text(": "), value)) for key, value in values if not is_nothing(value)]
    body = _body(shape, members, one_of(pairs))
    return NOTHING if is_nothing(body) else Seq((text("{"), body, text("}")))


def _named(shape: Object, maker: Maker) -> list[Member] | None:
    """The properties with names; None if one is required that cannot be."""
    required, members = set(shape.required), []
    for name in dict.fromkeys((*shape.properties, *shape.required)):
        value = maker.node(shape.member(name)) if not shape.names or maker.fits(name, shape.names) else NOTHING
        if not is_nothing(value):
            members.append(Member(Seq((text(written(name) + ": "), value)), int(name in required), 1))
        elif name in required:
            return None
    return members


def _body(shape: Object, members: list[Member], pair: Node) -> Node:
    """What stands between the braces; `pair` is any property without a name of its own.

    Two of these may have the same name, and then count as one: so no more than one of them can be asked for.
    """
    n_required = sum(member.least for member in members)
    n_all = len(members) if is_nothing(pair) else None
    least, most = max(shape.least, n_required), shape.most
    if (most is not None and n_required > most) or (n_all is not None and least > n_all):
        return NOTHING
    if most is not None and n_all is not None and most >= n_all:
        most = None
    if n_required == most:
        return _in_turn([member for member in members if member.least])
    if least == n_all:
        return _in_turn([member._replace(least=1) for member in members])
    if most == 1:  # and none is required
        ways = [*(member.node for member in members), *([] if n_all is not None else [pair])]
        return one_of(ways if least else [Empty(), *ways])
    if n_all is None and n_required == len(members):
        if least - n_required > 1:
            raise NotRegularError("'minProperties' of properties that are not named: each must have another name")
        members = [*members, Member(pair, least - n_required, None if most is None else most - n_required)]
        return _in_turn(members, may_be_empty=not least)
    if most is not None or least > max(n_required, 1):
        raise NotRegularError("a number of optional properties")
    if n_all is None:
        members = [*members, Member(pair, 0, None)]
    return _in_turn(members, may_be_empty=not least)


def _in_turn(members: Sequence[Member], may_be_empty: bool = True) -> Node:
    """The members in their order with commas between those that are there."""
    pivot = next((index for index, member in enumerate(members) if member.least), None)
    if pivot is None:
        some = _some(members) if members else NOTHING
        return one_of([Empty(), some]) if may_be_empty and members else some if members else Empty()
    before = [Repeat(Seq((member.first(), _COMMA)), 0, 1) for member in members[:pivot]]
    return Seq((*before, members[pivot].first(), *(member.rest() for member in members[pivot + 1 :])))


def _some(members: Sequence[Member]) -> Node:
    """One or more members, none of which is required.

    From left to right: what is there so far and maybe another, or this one as the first. For many of them so with
    groups of members, and in these with smaller ones, so that it does not go too deep.
    """
    size = 1
    while size * _FEW < len(members):
        size *= _FEW
    groups = [members[at : at + size] for at in range(0, len(members), size)]
    found: Node | None = None
    for group in groups:
        first = group[0].first() if len(group) == 1 else _some(group)
        rest = Seq(tuple(member.rest() for member in group))
        found = first if found is None else Alt((Seq((found, rest)), first))
    assert found is not None, "there are members"
    return found
