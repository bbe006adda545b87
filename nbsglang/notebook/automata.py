"""Compressed automata as pictures, of a pattern, of choices, of a type, or of what a gen ran under.

Not here: how automata come about (`nbsglang/engine/grammar`), how they look (`nbsglang/viz/fsm.py`).
"""

from __future__ import annotations

import ast
import datetime
import enum
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from nbsglang import errors
from nbsglang.calls import Constraint
from nbsglang.engine.grammar.graph import MAX_TEXT, constraint_graph
from nbsglang.events import CallBegan, Constrained, EventLog
from nbsglang.lang.types import choices_of, typed
from nbsglang.viz.fsm import fsm_display
from nbsglang.viz.picture import Picture

_FLAGS = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x", re.ASCII: "a"}
_RECENT = 50_000  # events in which a gen is looked for
_TYPES: dict[str, object] = {"int": int, "float": float, "bool": bool, "date": datetime.date}


def fsm(of: object = None, *, regex: str | None = None, choices: Iterable[str] | None = None) -> Picture:
    """A picture of the compressed automaton of a regular expression, of choices, or of a type.

    `of` is a pattern, a compiled one, a type (int, date, Literal[...], an Enum, a pydantic model), or a list of texts;
    `regex` and `choices` say it by name. It needs no model. A text that is forced is one bold edge: it costs the model
    no forward pass. Raises ConstraintError for what has no automaton, and UsageError.
    """
    if (of is not None) + (regex is not None) + (choices is not None) != 1:
        raise errors.UsageError("fsm shows one constraint: a pattern, a list of choices, or a type")
    if regex is not None:
        of = str(regex)
    elif choices is not None:
        of = list(choices)
    return fsm_display(constraint_graph(constraint_of(of)))


def logged(engine: Any, constraint: Constraint) -> Picture:
    """The same of a constraint, with the graph in the engine's log as well."""
    kind = "json_schema" if constraint.kind == "schema" else constraint.kind
    return fsm_display(engine.fsm(**{kind: constraint.value}))


def constraint_of(value: object) -> Constraint:
    """The constraint that a value stands for. Raises UsageError."""
    if isinstance(value, Constraint):
        return value
    if isinstance(value, str):
        return Constraint("regex", value)
    if isinstance(value, re.Pattern):
        flags = "".join(letter for flag, letter in _FLAGS.items() if value.flags & flag)
        return Constraint("regex", f"(?{flags}){value.pattern}" if flags else str(value.pattern))
    if isinstance(value, set | frozenset):
        value = sorted(map(str, value))
    choices = choices_of(value)
    if choices is not None:
        return Constraint("choices", tuple(choices))
    constraint = typed(value).constraint
    if constraint is None:
        raise errors.UsageError("str allows any text: there is no automaton to be shown")
    return constraint


def meant(words: str, variables: Mapping[str, object], log: EventLog) -> Constraint:
    """What the line of `%sgl fsm` says: a variable, a type, a gen that ran under a constraint, else a pattern.

    A pattern may stand in quotes, as in Python. Raises UsageError for a variable that holds no constraint.
    """
    if words in variables:
        return constraint_of(variables[words])
    if words in _TYPES:
        return constraint_of(_TYPES[words])
    found = _of_gens(log).get(words) if words.isidentifier() else None
    return Constraint("regex", _unquoted(words)) if found is None else found


def names(variables: Mapping[str, object], log: EventLog) -> list[str]:
    """The names that `meant` knows, for completion."""
    values = (name for name, value in variables.items() if not name.startswith("_") and _is_constraint(value))
    return [*dict.fromkeys([*_of_gens(log), *values, *_TYPES])]


def _is_constraint(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(text, str) for text in value)
    return isinstance(value, str | re.Pattern) or (isinstance(value, type) and issubclass(value, enum.Enum))


def _of_gens(log: EventLog) -> dict[str, Constraint]:
    """The constraints of gens by their names, the latest of each, unless the log has them shortened."""
    called: dict[str, str] = {}
    found: dict[str, Constraint] = {}
    for event in log.since(max(0, log.seq - _RECENT)):
        body = event.body
        if isinstance(body, CallBegan):
            called[body.call_id] = body.name
        elif isinstance(body, Constrained) and called.get(body.call_id) and not is_cut(body):
            found[called[body.call_id]] = constraint_in(body)
    return found


def is_cut(body: Constrained) -> bool:
    """Whether the event has only a part of its constraint."""
    return len(body.text) >= MAX_TEXT


def constraint_in(body: Constrained) -> Constraint:
    """The constraint of an event that has all of it."""
    value = tuple(json.loads(body.text)) if body.kind == "choices" else body.text
    return Constraint(body.kind, value)  # type: ignore[arg-type]  # as it was


def _unquoted(words: str) -> str:
    if words[-1:] not in ("'", '"'):
        return words
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\\d" without an r is fine here
            value = ast.literal_eval(words)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return words
    return value if isinstance(value, str) else words
