"""Objects as nodes: their properties in the order of the schema, those without a name of their own after them.

Each property may come with a comma before it or without, by whether another one came before. Rather than for each set
of optional properties, that is said in two rails: the first property that is there, and all that follow it.

Not here: names of properties that are not listed (`schema_keys.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from nbsglang.engine.grammar.schema_keys import Maker, is_nothing, keys, one_of
from nbsglang.engine.grammar.schema_places import NotRegularError, Sub, listed_names
from nbsglang.engine.grammar.schema_shapes import Object, joined
from nbsglang.engine.grammar.schema_values import written
from nbsglang.engine.grammar.syntax import Alt, Empty, Node, Repeat, Seq, text

NOTHING = Alt(())
_COMMA = text(", ")
_FEW = 8  # members that are taken one by one
_MANY_WAYS = 64


class Member(NamedTuple):
    """A property with its name, `least` to `most` times: those without a name of their own may be many."""

    node: Node
    least: int
    most: int | None
    name: str = ""

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
    if len(shape.reaching) > 1 and shape.most != 1:
        shape = _with_listed(shape, maker)
    members = _named(shape, maker)
    if members is None:
        return NOTHING
    if shape.reaching and shape.most == 1:  # it is the same one
        names = joined(shape.names, *shape.reaching)
        return object_node(replace(shape, names=names, reaching=(), least=max(shape.least, 1)), maker)
    pair = _pair(shape, maker)
    body = _reaching(shape, members, pair, maker) if shape.reaching else _body(shape, members, pair)
    return NOTHING if is_nothing(body) else Seq((text("{"), body, text("}")))


def _pair(shape: Object, maker: Maker) -> Node:
    """Any property without a name of its own."""
    values = [(key, maker.node(sub)) for key, sub in keys(shape, maker)]
    return one_of([Seq((key, text(": "), value)) for key, value in values if not is_nothing(value)])


def _named(shape: Object, maker: Maker) -> list[Member] | None:
    """The properties with names; None if one is required that cannot be."""
    required, members = set(shape.required), []
    for name in dict.fromkeys((*shape.properties, *shape.required)):
        value = maker.node(maker.members(shape, name)) if not shape.names or maker.fits(name, shape.names) else NOTHING
        if not is_nothing(value):
            members.append(Member(Seq((_label(name), value)), int(name in required), 1, name))
        elif name in required:
            return None
    return members


@lru_cache(maxsize=4096)
def _label(name: str) -> Node:
    """What stands before a property; the same for a name in many objects."""
    return text(written(name) + ": ")


def _with_listed(shape: Object, maker: Maker) -> Object:
    """The same objects with those names listed that do not count for what it must reach."""
    names = [name for sub in shape.reaching for name in listed_names(sub) or () if name not in shape.properties]
    return replace(shape, properties={**shape.properties, **{name: maker.members(shape, name) for name in names}})


def _reaching(shape: Object, members: list[Member], pair: Node, maker: Maker) -> Node:
    """What stands between the braces where, for each of some schemas, a property must have a name that fits it."""
    ways: list[Node] = []
    for some, left in _chosen(members, shape.reaching, maker):
        if len(ways) == _MANY_WAYS:
            raise NotRegularError("too many ways to have names of several kinds")
        if not left:
            ways.append(_body(shape, some, pair))
            continue
        if len(left) > 1 and any(listed_names(sub) is None for sub in left):
            raise NotRegularError("several kinds of names of which there must be one each")
        one = _pair(replace(shape, names=joined(shape.names, *left)), maker)
        if not is_nothing(one):
            if shape.most is not None or shape.least > 1 + sum(member.least for member in some):
                raise NotRegularError("a number of properties of which one has a name of its own kind")
            others = Member(pair, 0, None)
            ways.append(_in_turn([*some, others, Member(one, 1, 1), others]))
    return one_of([way for way in ways if not is_nothing(way)])


def _chosen(members: list[Member], reaching: Sequence[Sub], maker: Maker) -> Iterator[tuple[list[Member], list[Sub]]]:
    """The members, some of which must be there for what is to be reached, and what is left for those without a name."""
    required = [member.name for member in members if member.least]
    left = [sub for sub in reaching if not any(maker.fits(name, sub) for name in required)]
    yield members, left
    for n, member in enumerate(members):
        if left and maker.fits(member.name, left[0]):
            yield from _chosen([*members[:n], member._replace(least=1), *members[n + 1 :]], left, maker)


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
