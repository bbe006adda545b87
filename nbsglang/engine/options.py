"""The arguments of `Engine.generate` and its kin, as plain as users write them, to what a call holds.

Not here: the ranges of the values (`ranges.py`), the arguments of `gen` (`lang/`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from nbsglang.calls import Constraint, ConstraintKind, LogprobSpec, SamplingParams
from nbsglang.errors import UsageError

_CONSTRAINTS: dict[str, ConstraintKind] = {
    "regex": "regex",
    "choices": "choices",
    "json_schema": "schema",
    "grammar": "grammar",
}


def prompts(prompt: Any) -> tuple[list[Any], bool]:
    """A list of prompts, and whether it was a single one."""
    if isinstance(prompt, str):
        return [prompt], True
    items = list(prompt)
    if items and not isinstance(items[0], str | Sequence | np.ndarray):
        return [items], True
    if not items:
        raise UsageError("generate needs a prompt: a text, a list of ids, or a list of these")
    return items, False


def options(sampling: Mapping[str, Any]) -> tuple[SamplingParams, Constraint | None, LogprobSpec | None]:
    """What a call holds of these options. Raises UsageError for unknown ones and for more than one constraint."""
    rest = dict(sampling)
    constraint = None
    for key, kind in _CONSTRAINTS.items():
        value = rest.pop(key, None)
        if value is not None and constraint is not None:
            raise UsageError("one text can have one constraint only: regex, choices, json_schema or grammar")
        if kind == "choices" and isinstance(value, str):
            raise UsageError(f"choices={value!r} must be a list of texts")
        if value is not None:
            constraint = Constraint(kind, tuple(value) if kind == "choices" else _as_json(value))
    top = rest.pop("top_logprobs_num", 0) or 0
    logprobs = LogprobSpec(top) if rest.pop("return_logprob", False) or top else None
    for key in ("stop", "stop_regex", "stop_token_ids"):
        if key in rest:
            value = rest[key]
            rest[key] = tuple(value or ()) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
            if value is None:
                del rest[key]
    bias = rest.get("logit_bias")
    if isinstance(bias, Mapping):
        rest["logit_bias"] = tuple((int(k), float(v)) for k, v in bias.items())
    unknown = rest.keys() - {f.name for f in fields(SamplingParams)}
    if unknown:
        known = [*(f.name for f in fields(SamplingParams)), *_CONSTRAINTS, "return_logprob", "top_logprobs_num"]
        raise UsageError(f"unknown option {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    return SamplingParams(**rest), constraint, logprobs


def _as_json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
