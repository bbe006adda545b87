"""Triton's forms of the norms and of the gate: a program for each row, or for a piece of one.

Not here: what they compute, in torch (`norm.py`, `gated.py`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from nbsglang.kernels.early_triton import begin, can_be_early

_GATED = 1024  # numbers of a row that a program of the gate makes


@triton.jit
def _norm_kernel(
    first,
    second,
    third,
    weight,
    out,
    eps,
    first_stride,
    width: tl.constexpr,
    padded: tl.constexpr,
    n_parts: tl.constexpr,
    keeps: tl.constexpr,
    early: tl.constexpr,
):
    at = tl.arange(0, padded)
    inside = at < width
    scale = tl.load(weight + at, inside, 0.0).to(tl.float32)
    begin(early)
    row = tl.program_id(0).to(tl.int64)
    place = first + row * first_stride + at
    x = tl.load(place, inside, 0.0).to(tl.float32)
    if n_parts > 1:
        x += tl.load(second + row * width + at, inside, 0.0).to(tl.float32)
    if n_parts > 2:
        x += tl.load(third + row * width + at, inside, 0.0).to(tl.float32)
    if keeps:
        tl.store(place, x.to(first.dtype.element_ty), inside)
    x = x * (1.0 / tl.sqrt(tl.sum(x * x) / width + eps))
    tl.store(out + row * width + at, (x * scale).to(out.dtype.element_ty), inside)


def norm_triton(parts: tuple[torch.Tensor, ...], weight: torch.Tensor, eps: float, keeps: bool = False) -> torch.Tensor:
    """See `norm.py`: of the sum of one to three `parts`, left in the first if `keeps`; in the weight's dtype."""
    first = parts[0]
    n, width = first.shape
    assert all(part.is_contiguous() and part.shape == first.shape for part in parts[1:])
    out = torch.empty(n, width, dtype=weight.dtype, device=first.device)
    padded = triton.next_power_of_2(width)
    early = can_be_early(first.device)
    _norm_kernel[(n,)](
        *(*parts, first, first)[:3],
        weight,
        out,
        eps,
        first.stride(0),
        width=width,
        padded=padded,
        n_parts=len(parts),
        keeps=keeps,
        early=early,
        num_warps=max(1, min(8, padded // 512)),
        launch_pdl=early,
    )
    return out


@triton.jit
def _gate_kernel(rows, out, width, block: tl.constexpr, early: tl.constexpr):
    begin(early)
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    inside = at < width
    gate = tl.load(rows + row * 2 * width + at, inside, 0.0).to(tl.float32)
    up = tl.load(rows + row * 2 * width + width + at, inside, 0.0).to(tl.float32)
    tl.store(out + row * width + at, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), inside)


def gate_triton(rows: torch.Tensor) -> torch.Tensor:
    """See `gated.py`."""
    n, width = rows.shape[0], rows.shape[1] // 2
    out = rows.new_empty(n, width)
    early = can_be_early(rows.device)
    grid = (n, triton.cdiv(width, _GATED))
    _gate_kernel[grid](rows, out, width, block=_GATED, early=early, num_warps=4, launch_pdl=early)
    return out
