"""From logits to tokens: vectorised over the rows of a step, each row with its own parameters.

Order: penalties and bias, mask of the constraint, temperature, top-k, top-p, min-p. Each row draws one
uniform number that depends on its seed and position only, so that its text is the same alone and in any
batch. Log probabilities are of the model's own distribution, before all of these.

Not here: stop conditions (`commit.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from nbsglang.engine.draws import Draws, Logprobs, Scores
from nbsglang.engine.host_copy import to_device
from nbsglang.engine.request import Request

_NEVER = float("-inf")
_BLOCK = 256
_SCORED = 512  # rows at once: their logits in float32 are 260 MB with a large vocabulary
_BITS = (1 << 64) - 1
_FACTORS = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95, 0xBF58476D1CE4E5B9  # of seed, place, position
_COLD = 1e-5  # at or below this temperature the largest logit is certain, and dividing by it would overflow


@torch.inference_mode()
def sample(logits: torch.Tensor, requests: Sequence[Request]) -> Draws:
    """Choose the next token of each request from its row of `logits` [rows, vocabulary]; the device is not waited for.

    The logits are the caller's to lose: they are changed in place.
    """
    if any(r.is_adjusted for r in requests):
        logits = logits.float()  # penalties and biases are finer than 16 bits
    wanting = [row for row, r in enumerate(requests) if r.n_top is not None]
    own = {row: logits[row].clone() for row in wanting}
    for row, request in enumerate(requests):
        if request.is_adjusted:
            _adjust(logits[row], request)
    bound = [row for row, request in enumerate(requests) if request.matcher is not None]
    if bound:
        _mask(logits, bound, [m.mask() for r in requests if (m := r.matcher) is not None])
    for row, request in enumerate(requests):
        if request.n_drawn < request.sampling.min_tokens:
            _ban(logits[row], request)
    ids, largest = _choose(logits, requests)
    return Draws(ids, largest, {row: Logprobs(own[row], ids[row], requests[row].n_top or 0) for row in wanting})


@torch.inference_mode()
def score(logits: torch.Tensor, ids: Sequence[int]) -> Scores:
    """Log probability of each given next token; logits [rows, vocabulary], one id a row."""
    chosen = to_device(np.array(ids, np.int64), logits.device)[:, None]
    parts = [
        some.gather(1, of)[:, 0].float() - torch.logsumexp(some.float(), -1)
        for some, of in zip(torch.split(logits, _SCORED), torch.split(chosen, _SCORED), strict=True)
    ]
    return Scores(ids, torch.cat(parts))


def uniform(seed: int, place: int, position: int) -> float:
    """A number in [0, 1) from three counters: the finaliser of splitmix64 over their mixture."""
    x = (seed * _FACTORS[0] + place * _FACTORS[1] + position * _FACTORS[2]) & _BITS
    for _ in range(2):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _BITS
        x ^= x >> 31
    return (x >> 11) / float(1 << 53)


def uniforms(seeds: Sequence[int], places: Sequence[int], positions: Sequence[int]) -> npt.NDArray[np.float64]:
    """`uniform` of many, at once."""

    def counters(values: Sequence[int], factor: int) -> npt.NDArray[np.uint64]:
        return np.array([value & _BITS for value in values], np.uint64) * np.uint64(factor)

    x = counters(seeds, _FACTORS[0]) + counters(places, _FACTORS[1]) + counters(positions, _FACTORS[2])
    for _ in range(2):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) / float(1 << 53)


# ------------------------------------------------------------------------------------- logits of a row


def _adjust(row: torch.Tensor, request: Request) -> None:
    """Penalties and bias, in place; nothing to do for most rows."""
    _penalise(row, request)
    for token, bias in request.sampling.logit_bias:
        row[token] += bias


def _ban(row: torch.Tensor, request: Request) -> None:
    """Keep out what would end a text that must go on, unless the constraint lets nothing but the end follow."""
    banned = _banned(request)
    if banned:
        at = to_device(np.array(sorted(banned)), row.device)
        kept = row[at]
        row[at] = _NEVER
        if request.matcher is not None and not bool((row > _NEVER).any()):
            row[at] = kept


def _banned(request: Request) -> frozenset[int]:
    return request.eos_ids | frozenset(request.sampling.stop_token_ids)


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


def _mask(logits: torch.Tensor, rows: Sequence[int], masks: Sequence[npt.NDArray[np.int32]]) -> None:
    """Ban what the rows' packed masks do not allow: bit i of word j is token 32 j + i."""
    n_vocab = logits.shape[1]
    if not logits.is_cuda:
        for row, mask in zip(rows, masks, strict=True):
            allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[:n_vocab].astype(bool)
            logits[row, : len(allowed)].masked_fill_(torch.from_numpy(~allowed), _NEVER)
            logits[row, len(allowed) :] = _NEVER
        return
    words = to_device(np.stack(masks), logits.device)  # unpacked there: a byte for each token would be 8 times the copy
    bits = torch.arange(32, dtype=torch.int32, device=logits.device)
    banned = ((words[:, :, None] >> bits) & 1).view(len(rows), -1)[:, :n_vocab] == 0
    banned = functional.pad(banned, (0, n_vocab - banned.shape[1]), value=True)
    if len(rows) == len(logits):
        logits.masked_fill_(banned, _NEVER)
        return
    at = to_device(np.array(rows), logits.device)
    logits[at] = logits[at].masked_fill(banned, _NEVER)


# ----------------------------------------------------------------------------------------- the choice


def _choose(logits: torch.Tensor, requests: Sequence[Request]) -> tuple[torch.Tensor, torch.Tensor]:
    """The chosen ids int64 [rows], and the largest logit of each row, which is NaN if any of the row is."""
    largest, ids = logits.max(-1)
    drawn = [row for row, r in enumerate(requests) if r.sampling.temperature > _COLD]
    if len(drawn) == len(requests):
        ids = _draw(logits, requests)
    elif drawn:
        at = to_device(np.array(drawn), logits.device)
        ids[at] = _draw(logits[at], [requests[row] for row in drawn])
    return ids, largest


def _draw(logits: torch.Tensor, requests: Sequence[Request]) -> torch.Tensor:
    """Draw from the truncated distributions by inverting their cumulative sums; int64 [rows]."""
    params = [r.sampling for r in requests]
    draws = uniforms([r.seed for r in requests], [r.place for r in requests], [r.n_known for r in requests])
    numbers = np.array([[p.temperature for p in params], draws, [p.min_p for p in params]])
    temperature, places, floors = to_device(numbers, logits.device)
    probs = torch.softmax(logits.float() / temperature.float()[:, None], -1)
    cut = [row for row, p in enumerate(params) if p.top_k > 0 or p.top_p < 1.0]
    if cut:
        at = to_device(np.array(cut), logits.device)
        probs[at] = _truncate(probs[at], [params[row].top_k for row in cut], [params[row].top_p for row in cut])
    if any(p.min_p > 0 for p in params):
        probs = torch.where(probs >= floors.float()[:, None] * probs.amax(-1, keepdim=True), probs, 0.0)
    return _invert(probs, places)


def _invert(weights: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """For each row of weights [rows, n] the index where a draw in [0, 1) of their sum falls; int64 [rows].

    First among blocks, then in one: sums over the whole vocabulary in float64 would cost more than the softmax.
    """
    rows = torch.arange(len(weights), device=weights.device)
    blocks = functional.pad(weights, (0, -weights.shape[1] % _BLOCK)).view(len(weights), -1, _BLOCK)
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
    k = to_device(np.array([k if k > 0 else n for k in top_k]), probs.device)[:, None]
    rank = torch.arange(n, device=probs.device)
    values = torch.where(rank < k, values, 0.0)
    before = values.cumsum(-1) - values
    p = to_device(np.array(top_p, np.float32), probs.device)[:, None] * values.sum(-1, keepdim=True)
    values = torch.where((before < p) | (rank == 0), values, 0.0)
    return torch.zeros_like(probs).scatter_(-1, order, values)
