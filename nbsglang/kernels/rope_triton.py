"""Triton's form of `rope_store`: one program for a few heads of a row.

Not here: what it computes, in torch (`rope.py`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from nbsglang.kernels.early_triton import begin, can_be_early
from nbsglang.kernels.rope import HeadNorms

_FEW, _MANY = 2, 16  # heads of a program: with few rows many programs share a row
_FEW_ROWS = 32


@triton.jit
def _kernel(
    rows,
    cos,
    sin,
    slots,
    k_pool,
    v_pool,
    out,
    q_weight,
    k_weight,
    eps,
    row_stride,
    n_heads: tl.constexpr,
    n_kv: tl.constexpr,
    dim: tl.constexpr,
    half: tl.constexpr,
    block: tl.constexpr,
    normed: tl.constexpr,
    early: tl.constexpr,
):
    """A program turns `block` heads of one row; each is read as two halves, which the rotation mixes."""
    begin(early)
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * block + tl.arange(0, block)[:, None]
    at = tl.arange(0, half)[None, :]
    is_query, is_value = head < n_heads, head >= n_heads + n_kv
    inside = (at < dim // 2) & (head < n_heads + 2 * n_kv)
    source = rows + row * row_stride + head * dim + at
    low = tl.load(source, inside, 0.0).to(tl.float32)
    high = tl.load(source + dim // 2, inside, 0.0).to(tl.float32)
    slot = tl.load(slots + row).to(tl.int64)

    value = v_pool + (slot * n_kv + head - n_heads - n_kv) * dim + at
    tl.store(value, low.to(out.dtype.element_ty), inside & is_value)
    tl.store(value + dim // 2, high.to(out.dtype.element_ty), inside & is_value)

    if normed:
        scale = 1.0 / tl.sqrt((tl.sum(low * low, 1) + tl.sum(high * high, 1)) / dim + eps)[:, None]
        of_query, of_key = inside & is_query, inside & ~is_query
        low_weight = tl.load(q_weight + at + 0 * head, of_query, 0.0) + tl.load(k_weight + at + 0 * head, of_key, 0.0)
        further = at + dim // 2 + 0 * head
        high_weight = tl.load(q_weight + further, of_query, 0.0) + tl.load(k_weight + further, of_key, 0.0)
        low = low * scale * low_weight.to(tl.float32)
        high = high * scale * high_weight.to(tl.float32)
    angle = row * dim + at
    in_head = at < dim // 2
    c_low, s_low = tl.load(cos + angle, in_head, 0.0), tl.load(sin + angle, in_head, 0.0)
    c_high, s_high = tl.load(cos + angle + dim // 2, in_head, 0.0), tl.load(sin + angle + dim // 2, in_head, 0.0)
    turned_low = (low * c_low - high * s_low).to(out.dtype.element_ty)
    turned_high = (high * c_high + low * s_high).to(out.dtype.element_ty)
    query = out + (row * n_heads + head) * dim + at
    tl.store(query, turned_low, inside & is_query)
    tl.store(query + dim // 2, turned_high, inside & is_query)
    key = k_pool + (slot * n_kv + head - n_heads) * dim + at
    is_key = (head >= n_heads) & (head < n_heads + n_kv)
    tl.store(key, turned_low, inside & is_key)
    tl.store(key + dim // 2, turned_high, inside & is_key)
    tl.store(source, turned_low, inside & is_key)
    tl.store(source + dim // 2, turned_high, inside & is_key)


def rope_store_triton(
    rows: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    slots: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    norms: HeadNorms | None,
) -> torch.Tensor:
    """See `rope_store`; on a CUDA device, in any floating dtype."""
    n_kv, dim = k_pool.shape[1:]
    n_heads = rows.shape[1] // dim - 2 * n_kv
    out = torch.empty(len(rows), n_heads, dim, dtype=rows.dtype, device=rows.device)
    weights = (norms.query, norms.key, norms.eps) if norms is not None else (rows, rows, 0.0)
    half = triton.next_power_of_2(dim // 2)
    block = _FEW if len(rows) <= _FEW_ROWS else _MANY
    grid = (len(rows), triton.cdiv(n_heads + 2 * n_kv, block))
    sizes = {"n_heads": n_heads, "n_kv": n_kv, "dim": dim, "half": half, "block": block, "normed": norms is not None}
    early = can_be_early(rows.device)
    launch = {"early": early, "launch_pdl": early, "num_warps": 1 if block < 8 else 4}
    _kernel[grid](rows, cos, sin, slots, k_pool, v_pool, out, *weights, rows.stride(0), **sizes, **launch)
    return out
