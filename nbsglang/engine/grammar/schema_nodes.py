"""The schemas of a document as nodes, each made once.

Not here: what each type looks like (`schema_strings.py`, `schema_numbers.py`, `schema_arrays.py`,
`schema_objects.py`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from nbsglang.engine.grammar.rules import Rule
from nbsglang.engine.grammar.schema_arrays import array_node
from nbsglang.engine.grammar.schema_keys import is_nothing, one_of
from nbsglang.engine.grammar.schema_numbers import number
from nbsglang.engine.grammar.schema_objects import object_node
from nbsglang.engine.grammar.schema_places import Document, NotRegularError, Sub
from nbsglang.engine.grammar.schema_reader import Reader
from nbsglang.engine.grammar.schema_shapes import Array, Fixed, Number, Object, Shape, String
from nbsglang.engine.grammar.schema_strings import string
from nbsglang.engine.grammar.schema_values import written
from nbsglang.engine.grammar.syntax import MOST_CALLED, Alt, Node, Repeat, Seq, call, text

_MANY = 256  # positions of an array that is a part of its own: those inside it would else be written out at each level


class Nodes:
    """A `Maker` of nodes for the schemas of a document."""

    def __init__(self, document: Document) -> None:
        self._reader = Reader(document)
        self._nodes: dict[Sub, Node | None] = {}
        self._parts: list[Rule | None] = []  # that there are places for
        self._numbers: dict[Hashable, int] = {}  # of these parts, from 1 on
        self.blame = ""  # the first place where nothing is allowed, though something was meant to be

    def alternatives(self, sub: Sub) -> tuple[Shape, ...]:
        """See `Maker.alternatives`."""
        return self._reader.alternatives(sub)

    def fits(self, value: Any, sub: Sub) -> bool:
        """See `Maker.fits`."""
        return self._reader.fitting.sub(value, sub)

    def members(self, shape: Object, name: str) -> Sub:
        """See `Maker.members`."""
        return self._reader.members(shape, name)

    def node(self, sub: Sub) -> Node:
        """See `Maker.node`. What may be inside itself is a place for one of `inner`. Raises NotRegularError."""
        if sub in self._numbers:  # not a value but a place for it
            return call(self._numbers[sub])
        if sub in self._nodes:
            known = self._nodes[sub]
            return known if known is not None else self._called(sub)
        self._nodes[sub] = None
        made = [node for shape in self.alternatives(sub) if not is_nothing(node := self._made(shape))]
        if not made and not self.blame and not any(place.schema is False for place in sub):
            self.blame = " and ".join(place.pointer for place in sub)
        known = self._nodes[sub] = one_of(made) if made else Alt(())
        if sub not in self._numbers:
            return known
        self._parts[self._numbers[sub] - 1] = known
        return call(self._numbers[sub])

    def part(self, rule: Rule) -> Node:
        """See `Maker.part`."""
        if isinstance(rule, Alt) and is_nothing(rule):
            return rule
        key = id(rule) if isinstance(rule, Node) else rule
        if key not in self._numbers:
            self._called(key)
            self._parts[-1] = rule
        return call(self._numbers[key])

    @property
    def rules(self) -> list[Rule]:
        """The parts that nodes have places for, from number 1 on."""
        return [rule for rule in self._parts if rule is not None]

    def _called(self, key: Hashable) -> Node:
        """A place for one part more."""
        if len(self._parts) + 1 >= MOST_CALLED:
            raise NotRegularError(f"it has more than {MOST_CALLED} different parts")
        self._parts.append(None)
        self._numbers[key] = len(self._parts)
        return call(len(self._parts))

    def _made(self, shape: Shape) -> Node:
        if isinstance(shape, Fixed):
            return text(written(shape.value))
        if isinstance(shape, Number):
            return one_of([self.part(rule) for rule in number(shape)])
        if isinstance(shape, Array):
            node = array_node(shape, self)
            return self.part(node) if _size(node, {}) > _MANY else node
        if isinstance(shape, Object):
            return self.part(object_node(shape, self))
        assert isinstance(shape, String), "there are no more"
        return self.part(string(shape))


def _size(node: Node, known: dict[int, int]) -> int:
    """About how many positions a node takes."""
    if not isinstance(node, Seq | Alt | Repeat):
        return 1
    size = known.get(id(node))
    if size is None:
        if isinstance(node, Repeat):
            size = _size(node.part, known) * max(node.least, node.most or 1)
        else:
            size = sum(_size(part, known) for part in node.parts)
        known[id(node)] = size
    return size
