"""Attention by spans for few rows, whose keys and values go from memory straight to the registers of one warp.

A large step is bound by the power that the device may draw as much as by its memory, and a way through shared memory
costs power (`docs/performance.md`). Gluon is Triton's language in which a program says which thread holds what. Each
thread reads 16 bytes at a time; which dimension is which column of a product is chosen so that they lie where the
product wants them: scores are queries times keys, 16 lines of which 8 are empty, and the sums are values times weights.

Not here: the kernel for many rows and other forms (`spans_triton.py`), the plan (`spans.py`), launches
(`spans_runner.py`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2

from nbsglang.kernels.spans import SpanForm

LINES = 8  # of an item: rows times the query heads that share a key head
KEYS = 16  # of one turn
REGISTERS = 192  # of a thread: ten programs on a processor, with more of them memory is slower
_WIDTHS = (64, 128)


def is_for(form: SpanForm, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether the kernel computes such attention there."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device)[0] < 8:
        return False
    same = form.k_dim == form.v_dim and form.k_dim in _WIDTHS
    return same and dtype.itemsize == 2 and form.n_heads // form.n_kv <= LINES and form.softcap is None


@cache
def layouts(dim: int) -> dict[str, Any]:
    """Which thread of a warp holds what: pairs of 16-bit numbers of keys and of values, and scores.

    Four neighbours have 64 bytes of a key in four turns, and two keys each; of the values each has four keys, and
    eight neighbours 128 bytes of one.
    """
    pairs = dim // 2
    wide = [[0, 1 << bit] for bit in range(4, pairs.bit_length() - 1)]
    score_lanes = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]
    key_regs = [[0, 1], [0, 2], *wide, [8, 0]]
    key_lanes = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]]
    value_regs = [[0, 1], [0, 2], [1, 0], [8, 0], *wide[1:]]
    value_lanes = [[2, 0], [4, 0], [0, 4], [0, 8], [0, 16]]
    return {
        "key_layout": gl.DistributedLinearLayout(key_regs, key_lanes, [], [], [KEYS, pairs]),
        "value_layout": gl.DistributedLinearLayout(value_regs, value_lanes, [], [], [KEYS, pairs]),
        "score_layout": gl.DistributedLinearLayout([[0, 1], [0, 8]], score_lanes, [], [], [LINES, KEYS]),
    }


@gluon.jit
def _halves(pairs, dtype: gl.constexpr):
    """Pairs of 16-bit numbers [n, width] as [n, 2 * width]."""
    low = pairs.to(gl.int16).to(dtype, bitcast=True)
    high = (pairs >> 16).to(gl.int16).to(dtype, bitcast=True)
    return gl.reshape(gl.join(low, high), [pairs.shape[0], 2 * pairs.shape[1]])


@gluon.jit
def _read(columns, slots, step):
    """What the slots have; `columns` point to what slot 0 has."""
    return gl.load(columns[None, :] + (slots.to(gl.uint32).to(gl.uint64) * step)[:, None])


@gluon.jit
def spans_direct_kernel(
    query,
    k_pool,
    v_pool,
    sinks,
    out,
    partials,
    lses,
    counts,
    items,
    entry_rows,
    places,
    positions,
    slots,
    scale,
    query_stride,
    k_stride,
    v_stride,
    kind: gl.constexpr,
    n_kv: gl.constexpr,
    group: gl.constexpr,
    dim: gl.constexpr,
    window: gl.constexpr,
    has_sinks: gl.constexpr,
    key_layout: gl.constexpr,
    value_layout: gl.constexpr,
    score_layout: gl.constexpr,
):
    """As `spans_triton.spans_kernel`, of up to 8 lines; `scale` has log2(e) in it."""
    n_lines_most: gl.constexpr = 8
    n_turn: gl.constexpr = 16
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[1, 1], instr_shape=[16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
    right: gl.constexpr = gl.DotOperandLayout(1, mma, 2)
    item = gl.program_id(0) // n_kv
    kv = gl.program_id(0) % n_kv
    if item >= gl.load(counts + kind):
        return
    record = items + item * 8
    n_keys = gl.load(record + 1)
    entry = gl.load(record + 2)
    n_lines = gl.load(record + 3)
    first = gl.load(record + 4)
    sees_all = gl.load(record + 5) != 0
    mine = slots + gl.load(record)

    # Columns of the first product, as the product takes those of a thread from 16 bytes that follow each other.
    m = gl.arange(0, 16, gl.SliceLayout(1, left))
    column = gl.arange(0, dim, gl.SliceLayout(0, left))
    at_q = column // 32 * 32 + column // 2 % 4 * 8 + column // 16 % 2 * 4 + column // 8 % 2 * 2 + column % 2
    is_q = m // group < n_lines  # never for the last 8; the compiler is not to know, or it makes zeros at each turn
    row_q = gl.load(entry_rows + entry + m // group, is_q, 0).to(gl.int64)
    head_q = kv * group + m % group
    q = gl.load(query + (row_q * query_stride + head_q * dim)[:, None] + at_q[None, :], is_q[:, None], 0.0)

    # keys, counted from the item's first, that a line sees: from `lower` + 1 to before `upper`
    line = gl.arange(0, n_lines_most, gl.SliceLayout(1, score_layout)) // group
    row = gl.load(entry_rows + entry + line, line < n_lines, 0)
    seen_to = gl.load(positions + row, (line < n_lines) & (sees_all == 0), 1 << 30) - first
    upper = gl.minimum(seen_to + 1, n_keys)
    lower = gl.where(sees_all, -1, seen_to - window)

    pair: gl.constexpr = gl.pointer_type(gl.int32)
    keys = k_pool.to(pair) + kv * (dim // 2) + gl.arange(0, dim // 2, gl.SliceLayout(0, key_layout))
    values = v_pool.to(pair) + kv * (dim // 2) + gl.arange(0, dim // 2, gl.SliceLayout(0, value_layout))
    k_step = (k_stride // 2).to(gl.uint32).to(gl.uint64)
    v_step = (v_stride // 2).to(gl.uint32).to(gl.uint64)
    n_k = gl.arange(0, n_turn, gl.SliceLayout(1, key_layout))
    n_v = gl.arange(0, n_turn, gl.SliceLayout(1, value_layout))
    n = gl.arange(0, n_turn, gl.SliceLayout(0, score_layout))
    last = n_keys - 1  # is read again past the end, with a weight of 0
    k_raw = _read(keys, gl.load(mine + gl.minimum(n_k, last)), k_step)
    v_raw = _read(values, gl.load(mine + gl.minimum(n_v, last)), v_step)
    k_slots = gl.load(mine + gl.minimum(n_turn + n_k, last))
    v_slots = gl.load(mine + gl.minimum(n_turn + n_v, last))

    acc = gl.zeros([dim, n_lines_most], gl.float32, mma)
    top = gl.full([n_lines_most], float("-inf"), gl.float32, gl.SliceLayout(1, score_layout))
    totals = gl.zeros([n_lines_most, n_turn], gl.float32, score_layout)  # added up at the end
    for begin in range(0, n_keys, n_turn):
        k = gl.reshape(_halves(k_raw, q.dtype), [n_turn, dim // 32, 4, 2, 2, 2])
        k = gl.reshape(gl.permute(k, [1, 3, 4, 2, 5, 0]), [dim, n_turn])
        whole = mma_v2(q, gl.convert_layout(k, right), gl.zeros([16, n_turn], gl.float32, mma))
        k_raw = _read(keys, k_slots, k_step)  # as soon as their registers are free
        k_slots = gl.load(mine + gl.minimum(begin + 2 * n_turn + n_k, last))
        scores, _ = gl.split(gl.permute(gl.reshape(whole, [2, n_lines_most, n_turn]), [1, 2, 0]))
        scores = gl.convert_layout(scores, score_layout) * scale
        at = begin + n
        seen = at[None, :] < upper[:, None]
        if window > 0:
            seen = seen & (at[None, :] > lower[:, None])
        scores = gl.where(seen, scores, float("-inf"))
        higher = gl.maximum(top, gl.max(scores, 1))
        base = gl.where(higher == float("-inf"), 0.0, higher)  # a line may have seen nothing yet
        weights = gl.exp2(scores - base[:, None])
        shrink = gl.exp2(top - base)
        totals = totals * shrink[:, None] + weights
        top = higher
        acc = acc * gl.convert_layout(shrink, gl.SliceLayout(0, mma))[None, :]
        v = gl.reshape(_halves(v_raw, q.dtype), [n_turn, dim // 64, 8, 8])
        v = gl.reshape(gl.permute(v, [1, 3, 2, 0]), [dim, n_turn])
        right_weights = gl.convert_layout(gl.permute(weights.to(q.dtype), [1, 0]), right)
        acc = mma_v2(gl.convert_layout(v, left), right_weights, acc)
        v_raw = _read(values, v_slots, v_step)
        v_slots = gl.load(mine + gl.minimum(begin + 2 * n_turn + n_v, last))

    columns: gl.constexpr = gl.SliceLayout(0, mma)
    total = gl.convert_layout(gl.sum(totals, 1), columns)
    top = gl.convert_layout(top, columns)
    m = gl.arange(0, n_lines_most, columns)
    taken = m // group < n_lines
    row = gl.load(entry_rows + entry + m // group, taken, 0).to(gl.int64)
    place = gl.load(places + entry + m // group, taken, -1)
    head = kv * group + m % group
    alone = place < 0
    sum_of_all = total
    if has_sinks:
        base = gl.where(top == float("-inf"), 0.0, top)
        sink = gl.exp2(gl.load(sinks + head, taken, 0.0).to(gl.float32) * 1.4426950408889634 - base)
        sum_of_all = gl.where(alone, total + sink, total)
    acc = acc / gl.where(sum_of_all > 0.0, sum_of_all, 1.0)[None, :]
    r = gl.arange(0, dim, gl.SliceLayout(1, mma))
    at_d = r // 64 * 64 + r % 8 * 8 + r // 8 % 8  # the dimension of a value that a row of the sums is
    n_heads: gl.constexpr = n_kv * group
    at_out = (row * n_heads + head) * dim
    gl.store(out + at_out[None, :] + at_d[:, None], acc.to(out.dtype.element_ty), (taken & alone)[None, :])
    at_part = place.to(gl.int64) * n_heads + head
    merged = taken & (place >= 0)
    part = partials + (at_part * dim)[None, :] + at_d[:, None]
    gl.store(part, acc.to(partials.dtype.element_ty), merged[None, :])
    gl.store(lses + at_part, top + gl.log2(total), merged)
