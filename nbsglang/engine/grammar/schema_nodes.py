"""The schemas of a document as nodes, each made once.

Not here: what each type looks like (`schema_strings.py`, `schema_numbers.py`, `schema_arrays.py`,
`schema_objects.py`).
"""

from __future__ import annotations

from typing import Any

from nbsglang.engine.grammar.schema_arrays import array_node
from nbsglang.engine.grammar.schema_keys import is_nothing, one_of
from nbsglang.engine.grammar.schema_numbers import number
from nbsglang.engine.grammar.schema_objects import object_node
from nbsglang.engine.grammar.schema_places import Document, NotRegularError, Sub
from nbsglang.engine.grammar.schema_reader import Reader
from nbsglang.engine.grammar.schema_shapes import Array, Fixed, Number, Object, Shape, String
from nbsglang.engine.grammar.schema_strings import string
from nbsglang.engine.grammar.schema_values import fits, written
from nbsglang.engine.grammar.syntax import Alt, Node, text


class Nodes:
    """A `Maker` of nodes for the schemas of a document."""

    def __init__(self, document: Document) -> None:
        self._reader = Reader(document)
        self._nodes: dict[Sub, Node | None] = {}
        self.blame = ""  # the first place where nothing is allowed, though something was meant to be

    def alternatives(self, sub: Sub) -> tuple[Shape, ...]:
        """See `Maker.alternatives`."""
        return self._reader.alternatives(sub)

    def fits(self, value: Any, sub: Sub) -> bool:
        """See `Maker.fits`."""
        return any(fits(value, shape, self._reader.alternatives) for shape in self._reader.alternatives(sub))

    def node(self, sub: Sub) -> Node:
        """See `Maker.node`. Raises NotRegularError for values that may be inside themselves."""
        if sub in self._nodes:
            known = self._nodes[sub]
            if known is None:
                where = f"what {sub[-1].pointer} allows" if sub else "any value"
                raise NotRegularError(f"{where} can have the like of it inside, to any depth")
            return known
        self._nodes[sub] = None
        made = [node for shape in self.alternatives(sub) if not is_nothing(node := self._made(shape))]
        if not made and not self.blame and not any(place.schema is False for place in sub):
            self.blame = " and ".join(place.pointer for place in sub)
        known = self._nodes[sub] = one_of(made) if made else Alt(())
        return known

    def _made(self, shape: Shape) -> Node:
        if isinstance(shape, Fixed):
            return text(written(shape.value))
        if isinstance(shape, Number):
            return number(shape)
        if isinstance(shape, Array):
            return array_node(shape, self)
        if isinstance(shape, Object):
            return object_node(shape, self)
        assert isinstance(shape, String), "there are no more"
        return string(shape)
