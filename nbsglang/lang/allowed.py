"""Which tokens may come next at the end of a state's prompt: the question to a backend that can tell.

Not here: the answer (the engine's `allowed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbsglang.calls import Constraint, Prompt
from nbsglang.errors import Unsupported, UsageError
from nbsglang.lang.types import choices_of, typed


def ask(backend: object, prompt: Prompt, kind: object, options: Mapping[str, Any]) -> Any:
    """The backend's answer to its own `options`, with the constraint of the type `kind`, if there is one.

    Raises Unsupported if the backend cannot tell.
    """
    allowed = getattr(backend, "allowed", None)
    if allowed is None:
        raise Unsupported("this backend cannot tell which tokens may come next; an Engine can: pass backend=engine")
    return allowed(prompt, **_with_type(options, kind))


def _with_type(options: Mapping[str, Any], kind: object) -> dict[str, Any]:
    constraint = None if kind is None else _constraint(kind)
    if constraint is None:
        return dict(options)
    name = "json_schema" if constraint.kind == "schema" else constraint.kind
    if any(options.get(other) is not None for other in ("regex", "choices", "json_schema", "grammar")):
        raise UsageError("one text can have one constraint only: a type, regex, choices, json_schema or grammar")
    return {**options, name: constraint.value}


def _constraint(kind: object) -> Constraint | None:
    values = choices_of(kind)
    return typed(kind).constraint if values is None else Constraint("choices", tuple(values))
