"""JSON Schemas compiled for one vocabulary by our own automaton: those that are regular.

Texts are JSON in one style, that of `json.dumps` with `ensure_ascii=False`: ", " and ": " between parts and no other
white space, properties in the order of the schema, those that it does not list after them. See `schema_strings.py` and
`schema_numbers.py` for how strings and numbers are written. Every text is valid; a keyword or a format that is not
supported is refused by name, never ignored.

Not here: schemas whose values can be inside each other to any depth, as in trees and free-form JSON. They are no matter
for an automaton, and `NotRegularError` says so (`external.py` has a parser for them).
"""

from __future__ import annotations

from typing import Any

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.compiled import Grammar
from nbsglang.engine.grammar.limits import Limits
from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.rows import SharedRows
from nbsglang.engine.grammar.schema_keys import is_nothing
from nbsglang.engine.grammar.schema_nodes import Nodes
from nbsglang.engine.grammar.schema_places import Document, NotRegularError
from nbsglang.engine.grammar.syntax import Node
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError

_LIMITS = Limits(depth=200)  # objects in objects take about six each


def compile_json_schema(schema: str | dict[str, Any], vocab: Vocab, rows: SharedRows | None = None) -> Grammar:
    """A grammar of the JSON texts that a schema allows, given as JSON text or as a dict.

    Raises ConstraintError, which names the keyword and its JSON pointer, for what is no schema or not supported, and
    where nothing can match. Raises NotRegularError for what is beyond an automaton.
    """
    document = Document(schema)
    return Grammar(f"json_schema {shown(document.text)}", _automaton(_node(document)), vocab, rows)


def schema_node(schema: str | dict[str, Any]) -> Node:
    """The JSON texts that a schema allows, as a node. Raises as `compile_json_schema` does."""
    return _node(Document(schema))


def _node(document: Document) -> Node:
    nodes = Nodes(document)
    try:
        node = nodes.node((document.root,))
    except RecursionError:
        raise NotRegularError("its parts are inside each other too deeply") from None
    if is_nothing(node):
        at = f": what {nodes.blame} asks for contradicts itself" if nodes.blame else ""
        raise ConstraintError(f"json_schema {shown(document.text)} cannot be used: no value fits it{at}")
    return node


def _automaton(node: Node) -> Automaton:
    try:
        return Automaton(node, _LIMITS)
    except ConstraintError as error:  # it is too large, or lookaheads in it contradict each other
        raise NotRegularError(str(error)) from None
