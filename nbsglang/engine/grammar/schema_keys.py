"""The names of properties that are not listed, as nodes, with what the properties must be.

They are written in the one spelling of their characters, so that none is a listed name in disguise.

Not here: listed names, and how properties follow each other (`schema_objects.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, Protocol

from nbsglang.engine.grammar.classes import complement
from nbsglang.engine.grammar.rules import Others, Rule, Shared
from nbsglang.engine.grammar.schema_patterns import searched
from nbsglang.engine.grammar.schema_places import NotRegularError, Sub
from nbsglang.engine.grammar.schema_shapes import Fixed, Object, Shape, String, joined
from nbsglang.engine.grammar.schema_spelling import QUOTE, spelled
from nbsglang.engine.grammar.schema_strings import plain, together, without
from nbsglang.engine.grammar.schema_values import written
from nbsglang.engine.grammar.syntax import ALL_CHARS, Alt, Chars, Empty, Node, Repeat, Seq, text

_ANY = Repeat(Chars(ALL_CHARS), 0, None)
_MANY = 3  # patterns, each set of which is a case of its own


class Maker(Protocol):
    """What knows the schemas."""

    def node(self, sub: Sub) -> Node:
        """The texts of values."""
        ...

    def part(self, rule: Rule) -> Node:
        """A place for a part of its own."""
        ...

    def fits(self, value: Any, sub: Sub) -> bool:
        """Whether a value is one."""
        ...

    def members(self, shape: Object, name: str) -> Sub:
        """What the property of a name must be to all readers."""
        ...

    def alternatives(self, sub: Sub) -> Sequence[Shape]:
        """The shapes of values."""
        ...


def is_nothing(node: Node) -> bool:
    """Whether it is the node without a text."""
    return isinstance(node, Alt) and not node.parts


def one_of(nodes: Sequence[Node]) -> Node:
    """One of the nodes."""
    return nodes[0] if len(nodes) == 1 else Alt(tuple(nodes))


def keys(shape: Object, maker: Maker) -> Iterator[tuple[Node, Sub]]:
    """Names in their quotes, and what the properties must be; no name is in two of the nodes."""
    if len(shape.patterns) > _MANY:
        raise NotRegularError(f"more than {_MANY} patterns in 'patternProperties'")
    listed = [*dict.fromkeys((*shape.properties, *shape.required))]
    for n_found in range(len(shape.patterns), -1, -1):
        for found in combinations(shape.patterns, n_found):
            sub = joined(*(sub for _, sub in found)) if found else shape.additional
            if maker.alternatives(sub):
                others = [pattern for pattern, _ in shape.patterns if (pattern, sub) not in found]
                others = [pattern for pattern in others if pattern not in dict(found)]
                if not (found or others or shape.names):
                    texts = tuple(map(written, listed))
                    yield maker.part(Others(free_name(), texts) if texts else free_name()), sub
                    continue
                names = _names(listed, [pattern for pattern, _ in found], others)
                yield maker.part(Seq((QUOTE, spelled(_allowed(names, shape.names, maker)), QUOTE))), sub


@lru_cache(maxsize=1)
def free_name() -> Shared:
    """Any name in its quotes."""
    return Shared(Seq((QUOTE, spelled(_ANY), QUOTE)))


def _names(listed: Sequence[str], found: Sequence[str], others: Sequence[str]) -> Node:
    """The names that are not listed, in which these patterns are found and others are not."""
    if not found and not others:
        return _other_than(listed) if listed else _ANY
    not_these: list[Node] = [searched(pattern, loose=True) for pattern in others]
    if listed:
        not_these.append(Alt(tuple(map(text, listed))))
    return without(together([searched(pattern) for pattern in found] or [_ANY]), not_these)


def _allowed(names: Node, wanted: Sub, maker: Maker) -> Node:
    """Those of the names that the schema of names allows."""
    if not wanted:
        return names
    ways: list[Node] = []
    for shape in maker.alternatives(wanted):
        if isinstance(shape, String):
            ways.append(plain(shape))
        elif isinstance(shape, Fixed) and isinstance(shape.value, str):
            ways.append(text(shape.value))
    return one_of(ways) if names is _ANY or not ways else together([names, one_of(ways)])


def _other_than(listed: Iterable[str]) -> Node:
    """All texts but some: what begins like one of them and then goes on differently, or stops too early."""
    tree: dict[str, Any] = {}
    for name in listed:
        at = tree
        for char in (*name, ""):
            at = at.setdefault(char, {})
    return _beside(tree)


def _beside(tree: dict[str, Any]) -> Node:
    """The texts that are in none of the branches; "" is a branch that ends."""
    steps = []  # of one branch as long as there is no other
    while len(tree) == 1 and "" not in tree:
        char, tree = next(iter(tree.items()))
        steps.append(char)
    after = _branches(tree)
    return _off(steps, after)


def _off(steps: Sequence[str], after: Node) -> Node:
    """The texts that leave a branch at some step or stop in it, or go on after it."""
    if not steps:
        return after
    if len(steps) > 1:
        half = len(steps) // 2
        return _off(steps[:half], _off(steps[half:], after))
    return Alt((Empty(), Seq((_not(steps), _ANY)), Seq((text(steps[0]), after))))


def _branches(tree: dict[str, Any]) -> Node:
    chars = [char for char in tree if char]
    ways: list[Node] = [] if "" in tree else [Empty()]
    ways.append(Seq((_not(chars), _ANY)))
    ways += [Seq((text(char), _beside(tree[char]))) for char in chars]
    return Alt(tuple(ways))


def _not(chars: Sequence[str]) -> Node:
    return Chars(complement(tuple((point, point) for point in sorted(map(ord, chars)))))
