"""The options of `run` and `run_batch`, their defaults, and how they and those of a `gen` become SamplingParams.

Not here: the program's own arguments, which win over an option of the same name (`program.py`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from nbsglang.calls import Backend, LogprobSpec, SamplingParams
from nbsglang.errors import ConstraintError, UsageError
from nbsglang.events import EventLog

RUN_DEFAULTS: dict[str, Any] = {
    "max_new_tokens": 128,
    "n": 1,
    "stop": None,
    "stop_token_ids": None,
    "stop_regex": None,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "ignore_eos": False,
    "return_logprob": None,
    "logprob_start_len": None,
    "top_logprobs_num": None,
    "return_text_in_logprobs": None,
    "stream": False,
    "backend": None,
    "seed": None,
    "timeout": None,
    "log": None,
}
BATCH_DEFAULTS: dict[str, Any] = {
    **{name: value for name, value in RUN_DEFAULTS.items() if name != "stream"},
    "num_threads": "auto",
    "progress_bar": False,
    "generator_style": False,
    "on_error": "raise",
}
_LOGPROBS = ("return_logprob", "logprob_start_len", "top_logprobs_num", "return_text_in_logprobs")
_SAMPLING = frozenset(field.name for field in dataclasses.fields(SamplingParams)) - {"seed"}


class LogprobWishes(NamedTuple):
    """What a gen or a run says about log probabilities; None leaves it to the other, or to the default."""

    wanted: bool | None = None
    start: int | None = None
    top: int | None = None
    text: bool | None = None

    def over(self, base: LogprobWishes) -> LogprobWishes:
        """These wishes where there are any, else those of `base`."""
        if self == _NO_WISHES:  # nearly always
            return base
        mine = {name: value for name, value in self._asdict().items() if value is not None}
        return base._replace(**mine)

    def spec(self) -> LogprobSpec | None:
        """As the contract has it; None when no log probabilities are wanted. Asking for `top` asks for them."""
        wanted = bool(self.top) if self.wanted is None else self.wanted
        if not wanted:
            return None
        return LogprobSpec(self.top or 0, self.start if self.start is not None and self.start >= 0 else None)


_NO_WISHES = LogprobWishes()


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one run, checked."""

    sampling: SamplingParams
    logprobs: LogprobWishes
    backend: Backend | None
    log: EventLog | None
    seed: int | None
    timeout: float | None


def run_options(given: Mapping[str, Any]) -> Options:
    """Options from what a caller gave, over the defaults. Raises UsageError for values that make no sense."""
    values = {**RUN_DEFAULTS, **given}
    timeout = values["timeout"]
    if timeout is not None and not timeout > 0:
        raise UsageError(f"timeout must be seconds above 0, not {timeout!r}")
    chosen = {name: values[name] for name in values if name in _SAMPLING}
    return Options(
        SamplingParams(**sampling_fields(max_tokens=values["max_new_tokens"], **chosen)),
        LogprobWishes(*(values[name] for name in _LOGPROBS)),
        values["backend"],
        values["log"],
        values["seed"],
        timeout,
    )


def sampling_fields(**given: object) -> dict[str, Any]:
    """Fields of SamplingParams from options in the users' forms (lists, single strings); None is left out."""
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not fields:  # most gens leave all to the run
        return fields
    for name in ("stop", "stop_regex"):
        if name in fields:
            fields[name] = _strings(name, fields[name])
    for pattern in fields.get("stop_regex", ()):
        check_regex(pattern)
    if "stop_token_ids" in fields:
        fields["stop_token_ids"] = tuple(int(token_id) for token_id in fields["stop_token_ids"])
    if "logit_bias" in fields:
        bias = fields["logit_bias"]
        pairs = bias.items() if isinstance(bias, Mapping) else bias
        fields["logit_bias"] = tuple(sorted((int(token_id), float(value)) for token_id, value in pairs))
    _check(fields)
    return fields


@lru_cache(maxsize=256)
def merged(base: SamplingParams, fields: tuple[tuple[str, Any], ...]) -> SamplingParams:
    """`base` with other values in these fields; one object for the many calls that say the same."""
    return dataclasses.replace(base, **dict(fields)) if fields else base


def check_regex(pattern: object) -> None:
    """Raises ConstraintError if Python cannot compile it."""
    try:
        re.compile(pattern)  # type: ignore[call-overload]  # whatever it is, re says
    except (re.error, TypeError) as error:
        raise ConstraintError(f"{pattern!r} is not a regular expression: {error}") from None


def _strings(name: str, value: object) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) and text for text in texts):
        raise UsageError(f"{name} must be a string or a list of strings, none of them empty, not {value!r}")
    return tuple(texts)


_LIMITS: dict[str, tuple[float, float]] = {
    "max_tokens": (0, float("inf")),
    "min_tokens": (0, float("inf")),
    "n": (1, float("inf")),
    "temperature": (0, float("inf")),
    "top_p": (0, 1),
    "min_p": (0, 1),
}


def _check(fields: Mapping[str, Any]) -> None:
    for name in fields.keys() & _LIMITS.keys():
        value, (low, high) = fields[name], _LIMITS[name]
        if not isinstance(value, (int, float)) or not low <= value <= high:
            raise UsageError(f"{name} must be between {low} and {high}, not {value!r}")
    if fields.get("top_p") == 0:
        raise UsageError("top_p must be above 0; for the most likely token use temperature=0")
    if fields.get("min_tokens", 0) > fields.get("max_tokens", float("inf")):
        raise UsageError(f"min_tokens {fields['min_tokens']} is above max_tokens {fields['max_tokens']}")
