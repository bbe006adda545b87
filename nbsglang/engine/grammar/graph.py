"""The compressed automaton of a constraint as an event, for who wants to see it; no vocabulary is needed for that.

The automaton is made anew, since looking at all of its states would spend what a constraint in use may cost.

Not here: compression (`compress.py`), pictures.
"""

from __future__ import annotations

import json
from functools import lru_cache

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.automaton import Automaton as PatternAutomaton
from nbsglang.engine.grammar.choices import Choices
from nbsglang.engine.grammar.compress import Compressed, Edge
from nbsglang.engine.grammar.regex import parse
from nbsglang.engine.grammar.table import Automaton, Table
from nbsglang.errors import ConstraintError
from nbsglang.events import ConstraintGraph

MAX_NODES, MAX_EDGES = 200, 600
MAX_TEXT = 4000  # characters of a constraint
_MAX_FORCED = 200


@lru_cache(maxsize=64)
def constraint_graph(constraint: Constraint) -> ConstraintGraph:
    """The graph of a regular expression, of choices, or of a schema that our automaton takes.

    Raises ConstraintError for other constraints, and UsageError or ConstraintError for those that cannot be used.
    """
    graph = Compressed(Table(automaton_of(constraint))).graph(MAX_NODES, MAX_EDGES)
    edges = tuple(map(_plain, graph.edges))
    accepting = tuple(sorted(graph.accepting))
    return ConstraintGraph(
        constraint.kind, text_of(constraint), graph.start, graph.nodes, edges, accepting, graph.is_whole
    )


@lru_cache(maxsize=64)
def text_of(constraint: Constraint) -> str:
    """The constraint as the text that events have of it."""
    value = constraint.value
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), MAX_TEXT)


def automaton_of(constraint: Constraint) -> Automaton:
    """A new automaton of the constraint. Raises as `constraint_graph` does."""
    if constraint.kind == "regex":
        return PatternAutomaton(parse(str(constraint.value)))
    if constraint.kind == "choices":
        return Choices(constraint.value)
    if constraint.kind == "schema":
        from nbsglang.engine.grammar.schema import schema_automaton  # only for who uses it
        from nbsglang.engine.grammar.schema_places import NotRegularError

        try:
            return schema_automaton(str(constraint.value))
        except NotRegularError as error:
            raise ConstraintError(f"this JSON schema has no automaton that could be shown: {error}") from None
    raise ConstraintError("grammars have no automaton that could be shown; patterns, choices and most schemas have")


def _plain(edge: Edge) -> tuple[int, int, str, int]:
    return edge.source, edge.target, _cut(edge.text or edge.label, _MAX_FORCED), len(edge.text)


def _cut(text: str, n: int) -> str:
    return text if len(text) <= n else f"{text[: n // 2]}…{text[-(n // 2 - 1) :]}"
