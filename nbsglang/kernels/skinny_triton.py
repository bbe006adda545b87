"""Triton's products of a few rows with a layer's weights [n_out, n_in]; what counts is how fast the weights are read.

One row stays in registers, and products are added up by columns. Two to 64 rows go to the tensor cores as the right
operand, tiles of the weights as the left one; sums may be split over `split` programs, whose parts a second kernel adds
in their order. So the result is the same each time, and a row's is the same among any 2 to 16 rows.

Kernels start before the one ahead of them has ended, and fetch weights, which nothing writes, until they must wait.

Not here: how a product is cut, and what it computes, in torch (`skinny.py`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from nbsglang.kernels.early_triton import begin
from nbsglang.kernels.skinny import MOST_WIDE, Tiles

_AHEAD = 256  # columns of each tile's rows that are asked for while the kernel ahead still runs
_BLOCK = 256  # outputs of a program that adds parts


@triton.jit
def _tile(first, n_out, outs: tl.constexpr, gated: tl.constexpr):
    """The weights' rows of a tile; of gated ones gate and up alternate, so that both meet in one program."""
    at = tl.arange(0, outs)
    if gated:
        return (tl.minimum(first + at // 2, n_out - 1) + at % 2 * n_out).to(tl.int64)
    return tl.minimum(first + at, n_out - 1).to(tl.int64)


@triton.jit
def _silu_mul(gate, up, dtype: tl.constexpr):
    """As it is when the product was stored before: both are rounded."""
    gate, up = gate.to(dtype).to(tl.float32), up.to(dtype).to(tl.float32)
    return gate / (1.0 + tl.exp(-gate)) * up


@triton.jit
def _row_kernel(
    row,
    weight,
    bias,
    out,
    n_out,
    n_in,
    weight_stride,
    outs: tl.constexpr,
    ins: tl.constexpr,
    gated: tl.constexpr,
    biased: tl.constexpr,
    early: tl.constexpr,
):
    """One row: a program for `outs` rows of weights; the next tile is on its way."""
    done: tl.constexpr = outs // 2 if gated else outs
    first = tl.program_id(0) * done
    source = weight + _tile(first, n_out, outs, gated) * weight_stride
    at = tl.arange(0, ins)
    tile = tl.load(source[:, None] + at[None, :], (at < n_in)[None, :], 0.0)
    begin(early)
    acc = tl.zeros((outs, ins), tl.float32)
    for start in range(0, n_in, ins):
        here = start + at
        there = here + ins
        following = tl.load(source[:, None] + there[None, :], (there < n_in)[None, :], 0.0)
        acc += tile.to(tl.float32) * tl.load(row + here, here < n_in, 0.0).to(tl.float32)[None, :]
        tile = following
    total = tl.sum(acc, 1)
    ends = first + tl.arange(0, done)
    if gated:
        gate, up = tl.split(tl.reshape(total, (done, 2)))
        total = _silu_mul(gate, up, out.dtype.element_ty)
    if biased:
        total += tl.load(bias + ends, ends < n_out, 0.0).to(tl.float32)
    tl.store(out + ends, total.to(out.dtype.element_ty), ends < n_out)


@triton.jit(do_not_specialize=["n"])
def _rows_kernel(
    rows,
    weight,
    bias,
    out,
    n,
    n_out,
    n_in,
    row_stride,
    weight_stride,
    part_stride,
    out_stride,
    n_rows: tl.constexpr,
    outs: tl.constexpr,
    ins: tl.constexpr,
    stages: tl.constexpr,
    split: tl.constexpr,
    ahead: tl.constexpr,
    gated: tl.constexpr,
    biased: tl.constexpr,
    early: tl.constexpr,
):
    """A program for `outs` rows of weights and a part of the columns. With `split`, `out` is float32, by part.

    `n` rows are filled up to `n_rows` (16, 32 or 64) with the last one, which costs nothing; fewer would be slower.
    """
    done: tl.constexpr = outs // 2 if gated else outs
    first = tl.program_id(0) * done
    part = tl.program_id(1)
    n_part = tl.cdiv(n_in, ins * split) * ins
    low, high = part * n_part, tl.minimum((part + 1) * n_part, n_in)
    source = weight + _tile(first, n_out, outs, gated) * weight_stride
    if early:
        lines = source[:, None] + tl.minimum(low + tl.arange(0, ahead // 64) * 64, n_in - 1)[None, :]
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [lines], dtype=tl.int32, is_pure=False, pack=1
        )
    begin(early)
    at = tl.arange(0, ins)
    numbers = tl.arange(0, n_rows)
    row = rows + tl.minimum(numbers, n - 1).to(tl.int64) * row_stride
    acc = tl.zeros((outs, n_rows), tl.float32)
    for start in tl.range(low, high, ins, num_stages=stages):
        here = start + at
        inside = (here < n_in)[None, :]
        left = tl.load(source[:, None] + here[None, :], inside, 0.0)
        acc = tl.dot(left, tl.load(row[:, None] + here[None, :], inside, 0.0).T, acc)
    ends = first + tl.arange(0, done)
    dtype: tl.constexpr = out.dtype.element_ty
    if gated:
        gate, up = tl.split(tl.permute(tl.reshape(acc, (done, 2, n_rows)), (0, 2, 1)))
        acc = _silu_mul(gate, up, dtype)
    if biased:
        acc += tl.load(bias + ends, ends < n_out, 0.0).to(tl.float32)[:, None]
    target = out + part * part_stride + numbers[None, :] * out_stride + ends[:, None]
    tl.store(target, acc.to(dtype), (ends < n_out)[:, None] & (numbers < n)[None, :])


@triton.jit
def _add_kernel(
    parts,
    bias,
    out,
    n_out,
    part_stride,
    out_stride,
    split: tl.constexpr,
    block: tl.constexpr,
    biased: tl.constexpr,
    early: tl.constexpr,
):
    """The parts [split, n, n_out] of one row and `block` outputs, added in their order."""
    begin(early)
    row = tl.program_id(1)
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n_out
    source = parts + row * n_out + at
    total = tl.load(source, inside, 0.0)
    for part in tl.static_range(1, split):
        total += tl.load(source + part * part_stride, inside, 0.0)
    if biased:
        total += tl.load(bias + at, inside, 0.0).to(tl.float32)
    tl.store(out + row * out_stride + at, total.to(out.dtype.element_ty), inside)


def product(
    rows: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    out: torch.Tensor,
    tiles: Tiles,
    gated: bool = False,
    early: bool = True,
) -> torch.Tensor:
    """`rows` [n, n_in] times `weight` [n_out, n_in], transposed, into `out` [n, n_out]; of gated weights half as many.

    At most 64 rows, and one part where it is gated. `early` needs a device of compute capability 9 or more.
    """
    n, n_in = rows.shape
    n_out = out.shape[1]
    assert 0 < n <= MOST_WIDE
    assert not gated or tiles.split == 1
    given = out if bias is None else bias
    cut = {"outs": tiles.outs, "ins": tiles.ins, "num_warps": tiles.warps}
    flags = {"biased": bias is not None, "early": early, "launch_pdl": early}
    n_programs = triton.cdiv(len(weight), tiles.outs)
    if n == 1:
        _row_kernel[(n_programs,)](rows, weight, given, out, n_out, n_in, weight.stride(0), gated=gated, **cut, **flags)
        return out
    is_whole = tiles.split == 1
    target = out[None] if is_whole else torch.empty(tiles.split, n, n_out, dtype=torch.float32, device=out.device)
    strides = (rows.stride(0), weight.stride(0), target.stride(0), target.stride(1))
    _rows_kernel[n_programs, tiles.split](
        rows,
        weight,
        given,
        target,
        n,
        n_out,
        n_in,
        *strides,
        n_rows=max(16, triton.next_power_of_2(n)),
        stages=tiles.stages,
        split=tiles.split,
        ahead=_AHEAD,
        gated=gated,
        **cut,
        **(flags if is_whole else flags | {"biased": False}),
    )
    if not is_whole:
        grid = (triton.cdiv(n_out, _BLOCK), n)
        more = {"split": tiles.split, "block": _BLOCK, "num_warps": 2}
        _add_kernel[grid](target, given, out, n_out, target.stride(0), out.stride(0), **more, **flags)
    return out
