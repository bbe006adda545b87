"""Triton's form of `rope_store`: one program for each row and head.

Not here: what it computes, in torch (`rope.py`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from nbsglang.kernels.rope import HeadNorms


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
    normed: tl.constexpr,
):
    """One program for each row and head; a head is read as two halves, which the rotation mixes."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = tl.arange(0, half)
    inside = at < dim // 2
    source = rows + row * row_stride + head * dim
    low = tl.load(source + at, inside, 0.0).to(tl.float32)
    high = tl.load(source + dim // 2 + at, inside, 0.0).to(tl.float32)
    slot = tl.load(slots + row)
    is_value = head >= n_heads + n_kv
    is_query = head < n_heads
    if is_value:
        target = v_pool + (slot * n_kv + head - n_heads - n_kv) * dim
    else:
        if normed:
            scale = 1.0 / tl.sqrt((tl.sum(low * low) + tl.sum(high * high)) / dim + eps)
            weight = k_weight
            if is_query:
                weight = q_weight
            low = low * scale * tl.load(weight + at, inside, 0.0).to(tl.float32)
            high = high * scale * tl.load(weight + dim // 2 + at, inside, 0.0).to(tl.float32)
        angle = row * dim
        c_low, s_low = tl.load(cos + angle + at, inside, 0.0), tl.load(sin + angle + at, inside, 0.0)
        c_high = tl.load(cos + angle + dim // 2 + at, inside, 0.0)
        s_high = tl.load(sin + angle + dim // 2 + at, inside, 0.0)
        turned_low = low * c_low - high * s_low
        high = high * c_high + low * s_high
        low = turned_low
        if is_query:  # noqa: SIM108 (Triton compiles no conditional pointers)
            target = out + (row * n_heads + head) * dim
        else:
            target = k_pool + (slot * n_kv + head - n_heads) * dim
    tl.store(target + at, low.to(out.dtype.element_ty), inside)
    tl.store(target + dim // 2 + at, high.to(out.dtype.element_ty), inside)


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
    grid = (len(rows), n_heads + 2 * n_kv)
    sizes = {"n_heads": n_heads, "n_kv": n_kv, "dim": dim, "half": half, "normed": norms is not None, "num_warps": 1}
    _kernel[grid](rows, cos, sin, slots, k_pool, v_pool, out, *weights, rows.stride(0), **sizes)
    return out
