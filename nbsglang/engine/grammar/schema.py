"""JSON Schemas compiled for one vocabulary by our own automaton, trees and free-form values included (`nested.py`).

Texts are JSON in one style, that of `json.dumps` with `ensure_ascii=False`: ", " and ": " between parts and no other
white space, properties in the order of the schema, those that it does not list after them. See `schema_strings.py` and
`schema_numbers.py` for how strings and numbers are written. Every text is valid; a keyword or a format that means
something and is not supported is refused by name, never ignored.

Not here: schemas that ask what such an automaton cannot say, as multiples of 0.01 or three properties of any name.
`NotRegularError` says so, and llguidance may take them (`external.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nbsglang.engine.grammar.automaton import Automaton as PatternAutomaton
from nbsglang.engine.grammar.compiled import Grammar
from nbsglang.engine.grammar.limits import Limits, NoTextError, TooLargeError
from nbsglang.engine.grammar.nested import Nested
from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.productive import is_recursive
from nbsglang.engine.grammar.rows import SharedRows
from nbsglang.engine.grammar.rules import Rule
from nbsglang.engine.grammar.schema_keys import is_nothing
from nbsglang.engine.grammar.schema_nodes import Nodes
from nbsglang.engine.grammar.schema_places import Document, NotRegularError
from nbsglang.engine.grammar.syntax import Node
from nbsglang.engine.grammar.table import Automaton
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError

_LIMITS = Limits(depth=200)  # objects in objects take about six each


def compile_json_schema(schema: str | dict[str, Any], vocab: Vocab, rows: SharedRows | None = None) -> Grammar:
    """A grammar of the JSON texts that a schema allows, given as JSON text or as a dict.

    Raises ConstraintError, which names the keyword and its JSON pointer, for what is no schema or not supported, and
    where nothing can match. Raises NotRegularError for what is beyond an automaton.
    """
    document = Document(schema)
    rules = _rules(document)
    name = f"json_schema {shown(document.text)}"
    grammar = Grammar(name, _automaton(document, rules), vocab, rows, is_checked=True)
    if not grammar.index.is_proved and is_recursive(rules):  # a search for a match could go deeper without end
        raise NotRegularError("it has the like of itself inside, and the vocabulary lacks some of its characters")
    try:
        grammar.index.check(name)
    except TooLargeError as error:
        raise NotRegularError(str(error)) from None
    return grammar


def schema_automaton(schema: str | dict[str, Any]) -> Automaton:
    """The automaton of the JSON texts that a schema allows. Raises as `compile_json_schema` does."""
    document = Document(schema)
    return _automaton(document, _rules(document))


def schema_rules(schema: str | dict[str, Any]) -> Sequence[Rule]:
    """The JSON texts that a schema allows, as a node, with others that it refers to (`syntax.call`) after it."""
    return _rules(Document(schema))


def _rules(document: Document) -> Sequence[Rule]:
    nodes = Nodes(document)
    try:
        node = nodes.node((document.root,))
    except RecursionError:
        raise NotRegularError("its parts are inside each other too deeply") from None
    if is_nothing(node):
        at = f": what {nodes.blame} asks for contradicts itself" if nodes.blame else ""
        raise ConstraintError(f"json_schema {shown(document.text)} cannot be used: no value fits it{at}")
    return [node, *nodes.rules]


def _automaton(document: Document, rules: Sequence[Rule]) -> Automaton:
    try:
        first, *others = rules
        return Nested(rules, _LIMITS) if others or not isinstance(first, Node) else PatternAutomaton(first, _LIMITS)
    except NoTextError:
        raise ConstraintError(f"json_schema {shown(document.text)} cannot be used: no value fits it") from None
    except ConstraintError as error:  # it is too large
        raise NotRegularError(str(error)) from None
