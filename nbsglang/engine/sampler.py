"""From logits to tokens: vectorised over the rows of a step, each row with its own parameters.

Order: penalties and bias, mask of the constraint, temperature, top-k, top-p, min-p. Each row draws one
uniform number that depends on its seed and position only, so that its text is the same alone and in any
batch. Log probabilities are of the model's own distribution, before all of these.

Not here: stop conditions (`core.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from nbsglang.calls import TokenLogprob
from nbsglang.engine.request import Request
from nbsglang.errors import BackendError

NOT_NUMBERS = "the model's logits are not numbers (NaN); its weights or its dtype are unfit"
_NEVER = float("-inf")
_BLOCK = 256
_COLD = 1e-5  # at or below this temperature the largest logit is certain, and dividing by it would overflow


class Sampled(NamedTuple):
    """One row's token, with log probabilities if the request wants them."""

    id: int
    logprob: TokenLogprob | None = None
    top: tuple[TokenLogprob, ...] = ()


@torch.inference_mode()
def sample(logits: torch.Tensor, requests: Sequence[Request]) -> list[Sampled]:
    """Choose the next token of each request from its row of `logits`, float32 [rows, vocabulary].

    The logits are the caller's to lose: they are changed in place unless log probabilities are wanted. Raises
    BackendError if some are not numbers.
    """
    wants_logprobs = any(r.n_top is not None for r in requests)
    model_logits = logits.clone() if wants_logprobs else logits
    for row, request in enumerate(requests):
        if _is_adjusted(request):
            _adjust(logits[row], request)
    ids = _choose(logits, requests)
    if not wants_logprobs:
        return [Sampled(i) for i in ids]
    return [_with_logprobs(model_logits[row], r, ids[row]) for row, r in enumerate(requests)]


def score(logits: torch.Tensor, ids: Sequence[int]) -> list[TokenLogprob]:
    """Log probability of each given next token; logits [rows, vocabulary], one id a row."""
    chosen = torch.tensor(ids, device=logits.device)[:, None]
    picked = logits.gather(1, chosen)[:, 0] - torch.logsumexp(logits, -1)
    values = picked.tolist()
    if any(value != value for value in values):
        raise BackendError(NOT_NUMBERS)
    return [TokenLogprob(i, p) for i, p in zip(ids, values, strict=True)]


def uniform(seed: int, place: int, position: int) -> float:
    """A number in [0, 1) from three counters: the finaliser of splitmix64 over their mixture."""
    bits = (1 << 64) - 1
    x = (seed * 0x9E3779B97F4A7C15 + place * 0xD1342543DE82EF95 + position * 0xBF58476D1CE4E5B9) & bits
    for _ in range(2):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & bits
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & bits
        x ^= x >> 31
    return (x >> 11) / float(1 << 53)


# ------------------------------------------------------------------------------------- logits of a row


def _is_adjusted(request: Request) -> bool:
    """Whether `_adjust` would do anything: a view of a row alone costs more than this question."""
    params = request.sampling
    return (
        request.matcher is not None
        or params.repetition_penalty != 1.0
        or bool(params.frequency_penalty or params.presence_penalty or params.logit_bias)
        or request.n_tokens - request.n_prompt < params.min_tokens
    )


def _adjust(row: torch.Tensor, request: Request) -> None:
    """Penalties, bias, min_tokens and the constraint's mask, in place; nothing to do for most rows."""
    params = request.sampling
    _penalise(row, request)
    for token, bias in params.logit_bias:
        row[token] += bias
    if request.matcher is not None:
        _mask(row, request.matcher.mask())
    banned = _banned(request)
    if banned:
        at = torch.tensor(sorted(banned), device=row.device)
        kept = row[at]
        row[at] = _NEVER
        if request.matcher is not None and not bool((row > _NEVER).any()):
            row[at] = kept  # the constraint lets nothing but the end follow


def _banned(request: Request) -> frozenset[int]:
    """The ids that would end the text where it must not end yet."""
    params = request.sampling
    if request.n_tokens - request.n_prompt >= params.min_tokens:
        return frozenset()
    return request.eos_ids | frozenset(params.stop_token_ids)


def _penalise(row: torch.Tensor, request: Request) -> None:
    params = request.sampling
    if params.repetition_penalty != 1.0:
        seen = torch.from_numpy(np.unique(request.tokens).astype(np.int64)).to(row.device)
        values = row[seen]
        row[seen] = torch.where(values > 0, values / params.repetition_penalty, values * params.repetition_penalty)
    if (params.frequency_penalty or params.presence_penalty) and len(request.generated):
        ids, counts = np.unique(request.generated, return_counts=True)
        cost = params.frequency_penalty * counts + params.presence_penalty
        at = torch.from_numpy(ids.astype(np.int64)).to(row.device)
        row[at] -= torch.from_numpy(cost.astype(np.float32)).to(row.device)


def _mask(row: torch.Tensor, mask: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
    """Ban what the packed mask does not allow: bit i of word j is token 32 j + i."""
    allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(row)].astype(bool)
    row[: len(allowed)].masked_fill_(torch.from_numpy(~allowed).to(row.device), _NEVER)
    row[len(allowed) :] = _NEVER


# ----------------------------------------------------------------------------------------- the choice


def _choose(logits: torch.Tensor, requests: Sequence[Request]) -> list[int]:
    largest, at = logits.max(-1)
    largest_of, ids = torch.stack([largest.double(), at.double()]).tolist()  # one copy to the host
    if any(value != value for value in largest_of):
        raise BackendError(NOT_NUMBERS)
    ids = [int(i) for i in ids]
    drawn = [row for row, r in enumerate(requests) if r.sampling.temperature > _COLD]
    if drawn:
        some = logits if len(drawn) == len(requests) else logits[drawn]
        picked = _draw(some, [requests[row] for row in drawn])
        for row, token in zip(drawn, picked, strict=True):
            ids[row] = token
    return ids


def _draw(logits: torch.Tensor, requests: Sequence[Request]) -> list[int]:
    """Draw from the truncated distributions by inverting their cumulative sums."""
    params = [r.sampling for r in requests]
    device = logits.device
    temperature = torch.tensor([p.temperature for p in params], device=device)
    probs = torch.softmax(logits / temperature[:, None], -1)
    cut = [row for row, p in enumerate(params) if p.top_k > 0 or p.top_p < 1.0]
    if cut:
        probs[cut] = _truncate(probs[cut], [params[row].top_k for row in cut], [params[row].top_p for row in cut])
    floors = torch.tensor([p.min_p for p in params], device=device)
    if any(p.min_p > 0 for p in params):
        probs = torch.where(probs >= floors[:, None] * probs.amax(-1, keepdim=True), probs, 0.0)
    draws = [uniform(r.seed, r.place, r.n_tokens) for r in requests]
    return _invert(probs, torch.tensor(draws, dtype=torch.float64, device=device)).tolist()


def _invert(weights: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """For each row of weights [rows, n] the index where a draw in [0, 1) of their sum falls; int64 [rows].

    First among blocks, then in one: sums over the whole vocabulary in float64 would cost more than the softmax.
    """
    rows = torch.arange(len(weights), device=weights.device)
    blocks = torch.nn.functional.pad(weights, (0, -weights.shape[1] % _BLOCK)).view(len(weights), -1, _BLOCK)
    sums = blocks.sum(-1, dtype=torch.float32).double()
    block, rest = _find(sums, draws * sums.sum(-1))
    inside, _ = _find(blocks[rows, block].double(), rest)
    return block * _BLOCK + inside


def _find(weights: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The first index whose cumulative sum exceeds `at`, and how far `at` reaches into it.

    Rounding may put `at` beyond the end: then it is the last index with any weight.
    """
    sums = weights.cumsum(-1)
    last = (sums >= sums[:, -1:]).int().argmax(-1)
    index = torch.minimum(torch.searchsorted(sums, at[:, None], right=True)[:, 0], last)
    before = sums.gather(1, index[:, None])[:, 0] - weights.gather(1, index[:, None])[:, 0]
    return index, (at - before).clamp_(min=0.0)  # below 0 by rounding, it could fall on an index without weight


def _truncate(probs: torch.Tensor, top_k: list[int], top_p: list[float]) -> torch.Tensor:
    """Zero what lies outside the k likeliest or beyond a cumulative probability of p; not renormalised."""
    values, order = probs.sort(dim=-1, descending=True, stable=True)
    n = values.shape[1]
    k = torch.tensor([k if k > 0 else n for k in top_k], device=probs.device)[:, None]
    rank = torch.arange(n, device=probs.device)
    values = torch.where(rank < k, values, 0.0)
    before = values.cumsum(-1) - values
    p = torch.tensor(top_p, device=probs.device)[:, None] * values.sum(-1, keepdim=True)
    values = torch.where((before < p) | (rank == 0), values, 0.0)
    return torch.zeros_like(probs).scatter_(-1, order, values)


def _with_logprobs(row: torch.Tensor, request: Request, token: int) -> Sampled:
    if request.n_top is None:
        return Sampled(token)
    logprobs = torch.log_softmax(row, -1)
    top: tuple[TokenLogprob, ...] = ()
    if request.n_top:
        values, ids = logprobs.topk(min(request.n_top, len(row)))
        top = tuple(TokenLogprob(i, p) for i, p in zip(ids.tolist(), values.tolist(), strict=True))
    return Sampled(token, TokenLogprob(token, float(logprobs[token])), top)
