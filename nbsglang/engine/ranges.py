"""What sampling parameters may be: their types, their ranges, and ids that the model has.

All of it is checked when a call comes in, on the caller's thread: inside a step it would fail the neighbours too.

Not here: the words that options are given in (`options.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real

from nbsglang.calls import LogprobSpec, SamplingParams
from nbsglang.errors import UsageError

_WHOLE = ("max_tokens", "min_tokens", "n", "top_k")
_REAL = ("temperature", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")


def check_sampling(params: SamplingParams) -> None:
    """Raise UsageError for parameters of a wrong type or outside of their ranges."""
    _check_types(params)
    wrong = {
        "max_tokens must not be negative": params.max_tokens < 0,
        "min_tokens must be between 0 and max_tokens": not 0 <= params.min_tokens <= params.max_tokens,
        "n must be at least 1": params.n < 1,
        "temperature must be 0 (greedy) or more": not params.temperature >= 0,
        "top_p must be above 0 and at most 1": not 0 < params.top_p <= 1,
        "top_k must be -1 (off) or at least 1": params.top_k == 0 or params.top_k < -1,
        "top_k must be below 2**31": params.top_k >= 1 << 31,
        "min_p must be between 0 and 1": not 0 <= params.min_p <= 1,
        "repetition_penalty must be above 0": not params.repetition_penalty > 0,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise UsageError(f"{message}: {params}")


def _check_types(params: SamplingParams) -> None:
    for name in _WHOLE:
        if not isinstance(getattr(params, name), Integral):
            raise UsageError(f"{name}={getattr(params, name)!r} must be a whole number")
    for name in _REAL:
        value = getattr(params, name)
        if not isinstance(value, Real) or not math.isfinite(value):
            raise UsageError(f"{name}={value!r} must be a finite number")
    if not isinstance(params.heal, bool):
        raise UsageError(f"heal={params.heal!r} must be True or False")
    if params.seed is not None and not isinstance(params.seed, Integral):
        raise UsageError(f"seed={params.seed!r} must be a whole number or None")
    for name in ("stop", "stop_regex"):
        if not all(isinstance(text, str) for text in getattr(params, name)):
            raise UsageError(f"{name}={getattr(params, name)!r} must be text, or a list of texts")
    for token in (*params.stop_token_ids, *(token for token, _ in params.logit_bias)):
        if not isinstance(token, Integral):
            raise UsageError(f"{token!r} in stop_token_ids or logit_bias is not a token id")
    if not all(isinstance(bias, Real) and math.isfinite(bias) for _, bias in params.logit_bias):
        raise UsageError("each logit_bias must be a finite number; -100 keeps a token out")


def check_ids(params: SamplingParams, logprobs: LogprobSpec | None, n_vocab: int) -> None:
    """Raise UsageError for ids that the model does not have: indexing with them would fail the whole step."""
    given: Iterable[int] = (*params.stop_token_ids, *(token for token, _ in params.logit_bias))
    for token in given:
        if not 0 <= token < n_vocab:
            raise UsageError(f"token id {token} in stop_token_ids or logit_bias is none of the model's {n_vocab}")
    if logprobs is not None and (logprobs.top < 0 or (logprobs.prompt_start or 0) < 0):
        raise UsageError(f"numbers of logprobs must not be negative: {logprobs}")
