"""Attention over parts of a KV pool, merged by log-sum-exp: the torch reference.

Works on any device and dtype. On a CPU without softcap torch's own blocked kernel does the inner part.

Not here: what the parts are (`engine/batch.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import torch

HIDDEN = -1e30  # additive mask; finite, so that a row that sees nothing of a part gives weight 0, not NaN


class Part(NamedTuple):
    """One part of the attention of a step, on the device.

    `rows` int64 [b * q] flattened, `slots` int64 [b * k] flattened or a slice of the pool where b is 1,
    `mask` additive [b, 1, q, k] or None where everything is seen, but for `causal`: then q = k, b is 1, and query i
    sees the keys up to i.
    """

    rows: torch.Tensor
    slots: torch.Tensor | slice
    n_lines: int  # b
    level: int
    mask: torch.Tensor | None
    causal: bool = False


def attention(
    query: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    parts: list[Part],
    n_levels: int,
    scale: float,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend `query` [heads, rows, dim] over the parts.

    Returns [heads, rows, v_dim] in the dtype of the query. `softcap` bounds the scores by tanh, `sinks`
    [heads] are scores without a value that join each softmax.
    """
    n_heads, n_rows, _ = query.shape
    if len(parts) == 1 and sinks is None and parts[0].n_lines == 1 and parts[0].rows.numel() == n_rows:
        out, _ = _part(query, k_pool, v_pool, parts[0], scale, softcap)  # rows are in order: nothing to merge
        return out.to(query.dtype)
    # parts are kept in float32 until they are merged: a second rounding to 16 bits would cost exactness
    outs = torch.zeros(n_levels, n_heads, n_rows, v_pool.shape[2], dtype=torch.float32, device=query.device)
    lses = torch.full((n_levels, n_heads, n_rows), HIDDEN, dtype=torch.float32, device=query.device)
    for part in parts:
        out, lse = _part(query[:, part.rows], k_pool, v_pool, part, scale, softcap)
        outs[part.level].index_copy_(1, part.rows, out.float())
        lses[part.level].index_copy_(1, part.rows, lse)
    if n_levels == 1 and sinks is None:
        return outs[0].to(query.dtype)
    total = torch.logsumexp(lses, 0)  # [heads, rows]
    if sinks is not None:
        total = torch.logaddexp(total, sinks.float()[:, None])
    weights = torch.exp(lses - total)
    return (outs * weights[..., None]).sum(0).to(query.dtype)


def _part(
    query: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    part: Part,
    scale: float,
    softcap: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of one part alone: values [heads, b * q, v_dim] and log-sum-exp float32 [heads, b * q]."""
    n_heads, n_rows, dim = query.shape
    n_kv, b = k_pool.shape[1], part.n_lines
    group, q = n_heads // n_kv, n_rows // b
    keys = _lines(k_pool, part)  # [b, kv, k, dim]
    values = _lines(v_pool, part)
    inner = _blocked if _has_blocked(query, k_pool, v_pool, softcap) else _plain
    if part.causal:  # b is 1: the heads of a group, which read the same keys, take its place
        keys, values = keys.expand(group, -1, -1, -1), values.expand(group, -1, -1, -1)
        lines = query.view(n_kv, group, q, dim).transpose(0, 1)
        out, lse = inner(lines, keys, values, None, True, scale, softcap)  # [group, kv, q, v_dim], [group, kv, q]
        return out.transpose(0, 1).reshape(n_heads, q, -1), lse.transpose(0, 1).reshape(n_heads, q)
    lines = query.view(n_kv, group, b, q, dim).permute(2, 0, 1, 3, 4).reshape(b, n_kv, group * q, dim)
    mask = part.mask
    if mask is not None and group > 1:  # the query heads of a group lie in one block of rows
        mask = mask.expand(b, 1, group, -1) if q == 1 else mask.repeat(1, 1, group, 1)
    out, lse = inner(lines, keys, values, mask, False, scale, softcap)
    out = out.view(b, n_kv, group, q, -1).permute(1, 2, 0, 3, 4).reshape(n_heads, n_rows, -1)
    return out, lse.view(b, n_kv, group, q).permute(1, 2, 0, 3).reshape(n_heads, n_rows)


def _lines(pool: torch.Tensor, part: Part) -> torch.Tensor:
    """The part's slots of a pool as [b, kv, k, dim]; a slice is a view."""
    if isinstance(part.slots, slice):
        return pool[part.slots].transpose(0, 1)[None]
    flat = pool.index_select(0, part.slots)
    return flat.view(part.n_lines, -1, *pool.shape[1:]).transpose(1, 2)


def _has_blocked(query: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor, softcap: float | None) -> bool:
    return query.device.type == "cpu" and softcap is None and k_pool.shape[2] == v_pool.shape[2]


def _blocked(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float,
    softcap: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's blocked CPU kernel: the one behind scaled_dot_product_attention that also gives log-sum-exp."""
    del softcap
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = kernel(query, keys, values, 0.0, causal, attn_mask=mask, scale=scale)
    return out, lse.float()


def _plain(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float,
    softcap: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, softmax and values written out, in float32."""
    scores = torch.matmul(query.float(), keys.float().transpose(2, 3)) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, HIDDEN)
    if mask is not None:
        scores = scores + mask
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - lse[..., None])
    return torch.matmul(weights, values.float()), lse
