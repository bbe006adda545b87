"""From logits to tokens: vectorised over the rows of a step, each row with its own parameters.

Order: mask of the constraint, penalties and bias, temperature, top-k, top-p, min-p. Each row draws one
uniform number that depends on its seed and position only, so that its text is the same alone and in any
batch. Log probabilities are of the model's own distribution, before all of these.

Not here: stop conditions (`commit.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from nbsglang.engine.draws import Draws, Logprobs, Scores
from nbsglang.engine.host_copy import host_memory, send, to_device
from nbsglang.engine.request import Request
from nbsglang.kernels.mask import mask_rows

_NEVER = float("-inf")
_BLOCK = 256
_SCORED = 512  # rows at once: their logits in float32 are 260 MB with a large vocabulary
_ALIGNED = 32  # int32s at whose multiples the arrays of one copy begin
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
    bound = [row for row, request in enumerate(requests) if request.matcher is not None]
    removed = None
    if bound:
        gone = _mask(logits, bound, [m.mask() for r in requests if (m := r.matcher) is not None])
        removed = _spread(gone, bound, len(logits))
    for row, request in enumerate(requests):
        if request.is_penalised or request.sampling.logit_bias:
            _adjust(logits[row], request)
    banned = [(row, token) for row, r in enumerate(requests) for token in _banned(r)]
    if banned:
        _ban(logits, np.ascontiguousarray(np.array(banned).T))
    ids, largest = _choose(logits, requests)
    logprobs = {row: Logprobs(own[row], ids[row], requests[row].n_top or 0) for row in wanting}
    return Draws(ids, largest, logprobs, removed)


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


def _banned(request: Request) -> list[int]:
    """What would end a text that must go on."""
    if request.n_drawn >= request.sampling.min_tokens:
        return []
    return sorted(request.eos_ids | frozenset(request.sampling.stop_token_ids))


def _ban(logits: torch.Tensor, places: npt.NDArray[np.int64]) -> None:
    """Keep out the tokens at `places` (rows, ids), unless a constraint lets nothing else follow."""
    rows, tokens = to_device(places, logits.device)
    kept = logits[rows, tokens]
    never = torch.full_like(kept, _NEVER)  # a number would be copied from the host, which waits for that
    logits[rows, tokens] = never
    is_last = logits.amax(-1) == _NEVER
    logits[rows, tokens] = torch.where(is_last[rows], kept, never)


def _penalise(row: torch.Tensor, request: Request) -> None:
    params = request.sampling
    if params.repetition_penalty != 1.0:
        seen = to_device(np.unique(request.tokens).astype(np.int64), row.device)
        values = row[seen]
        row[seen] = torch.where(values > 0, values / params.repetition_penalty, values * params.repetition_penalty)
    if (params.frequency_penalty or params.presence_penalty) and len(request.generated):
        ids, counts = np.unique(request.generated, return_counts=True)
        cost = params.frequency_penalty * counts + params.presence_penalty
        row[to_device(ids.astype(np.int64), row.device)] -= to_device(cost.astype(np.float32), row.device)


def _spread(values: torch.Tensor, rows: Sequence[int], n_rows: int) -> torch.Tensor:
    """The values [rows] of some rows among those of all; NaN for the others. [n_rows]"""
    if len(rows) == n_rows:
        return values
    found = torch.full((n_rows,), math.nan, device=values.device)
    found[to_device(np.array(rows), values.device)] = values
    return found


def _mask(logits: torch.Tensor, rows: Sequence[int], masks: Sequence[npt.NDArray[np.int32]]) -> torch.Tensor:
    """Ban what the rows' packed masks do not allow: bit i of word j is token 32 j + i. Returns how likely that was.

    All goes to the device in one copy, each mask once: texts in one state have the same one.
    """
    n, n_words = len(rows), -(-logits.shape[1] // 32)
    start = -(-n // _ALIGNED) * _ALIGNED
    each = {id(mask): mask for mask in masks}
    place = {key: number for number, key in enumerate(each)}
    memory = host_memory(2 * start + len(each) * n_words, torch.int32, logits.device)
    here = memory.numpy()
    here[:n], here[start : start + n] = rows, [place[id(mask)] for mask in masks]
    for line, mask in zip(here[2 * start :].reshape(-1, n_words), each.values(), strict=True):
        line[: len(mask)] = mask[:n_words]
        line[len(mask) :] = 0
    there = send(memory, logits.device)
    return mask_rows(logits, there[:n], there[start : start + n], there[2 * start :].view(-1, n_words))


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
