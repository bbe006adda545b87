"""Triton's kernels of attention by spans: one program for each item and key head, and one that merges.

Keys and values are gathered by slot, a block of them at a time; a program's queries are the rows of its item times the
query heads that share the key head. Scores are kept in powers of two.

Not here: the plan (`spans.py`), buffers and launches (`spans_runner.py`).
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def _scores(q, k, scale, softcap: tl.constexpr, precision: tl.constexpr):
    """Scores of a block of keys, times log2(e)."""
    scores = tl.dot(q, tl.trans(k), input_precision=precision)
    if softcap > 0:
        # tanh(x) = 2 sigmoid(2 x) - 1; `scale` has log2(e) in it already
        bounded = 2.0 * tl.sigmoid(scores * (scale * (2.0 / LOG2E / softcap))) - 1.0
        return bounded * (softcap * LOG2E)
    return scores * scale


@triton.jit
def spans_kernel(
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
    kind: tl.constexpr,
    n_kv: tl.constexpr,
    group: tl.constexpr,
    k_dim: tl.constexpr,
    v_dim: tl.constexpr,
    k_pad: tl.constexpr,
    v_pad: tl.constexpr,
    window: tl.constexpr,
    softcap: tl.constexpr,
    has_sinks: tl.constexpr,
    precision: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
):
    """One item and key head of a class, of which `counts[kind]` says how many items there are; others end at once.

    Options are 0 where a model has none.
    """
    item, kv = tl.program_id(0) // n_kv, tl.program_id(0) % n_kv
    if item >= tl.load(counts + kind):
        return
    record = items + item * 8
    key_start = tl.load(record)
    n_keys = tl.load(record + 1)
    entry = tl.load(record + 2)
    n_lines = tl.load(record + 3)
    first = tl.load(record + 4)
    sees_all = tl.load(record + 5) != 0

    m = tl.arange(0, block_m)
    line = m // group
    taken = line < n_lines
    head = kv * group + m % group
    row = tl.load(entry_rows + entry + line, taken, 0)
    place = tl.load(places + entry + line, taken, -1)
    at_k = tl.arange(0, k_pad)
    at_v = tl.arange(0, v_pad)
    in_k = at_k < k_dim
    in_v = at_v < v_dim
    at_q = row.to(tl.int64)[:, None] * query_stride + head[:, None] * k_dim + at_k[None, :]
    q = tl.load(query + at_q, taken[:, None] & in_k[None, :], 0.0)
    # keys, counted from the item's first, that a line sees: from `lower` + 1 to before `upper`
    seen_to = tl.load(positions + row, taken & (sees_all == 0), 1 << 30) - first
    upper = tl.minimum(seen_to + 1, n_keys)
    lower = tl.where(sees_all, -1, seen_to - window)

    keys = k_pool + kv * k_dim + at_k[None, :]
    values = v_pool + kv * v_dim + at_v[None, :]
    mine = slots + key_start
    acc = tl.zeros([block_m, v_pad], tl.float32)
    top = tl.full([block_m], float("-inf"), tl.float32)
    total = tl.zeros([block_m], tl.float32)
    n = tl.arange(0, block_n)
    coming = tl.load(mine + n, n < n_keys, 0)
    for begin in range(0, n_keys, block_n):
        at = begin + n
        inside = at < n_keys
        slot = coming.to(tl.int64)
        coming = tl.load(mine + at + block_n, at + block_n < n_keys, 0)  # a turn before its keys
        k = tl.load(keys + (slot * k_stride)[:, None], inside[:, None] & in_k[None, :], 0.0)
        scores = _scores(q, k, scale, softcap, precision)
        seen = at[None, :] < upper[:, None]
        if window > 0:
            seen = seen & (at[None, :] > lower[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        base = tl.where(higher == float("-inf"), 0.0, higher)  # a line may have seen nothing yet
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(top - base)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(values + (slot * v_stride)[:, None], inside[:, None] & in_v[None, :], 0.0)
        acc = acc * shrink[:, None]
        acc = tl.dot(weights.to(v.dtype), v, acc, input_precision=precision)
        top = higher

    alone = place < 0
    whole = total
    if has_sinks:
        base = tl.where(top == float("-inf"), 0.0, top)
        sink = tl.exp2(tl.load(sinks + head, taken, 0.0).to(tl.float32) * LOG2E - base)
        whole = tl.where(alone, total + sink, total)
    acc = acc / tl.where(whole > 0.0, whole, 1.0)[:, None]
    n_heads: tl.constexpr = n_kv * group
    at_out = (row.to(tl.int64) * n_heads + head) * v_dim
    tl.store(
        out + at_out[:, None] + at_v[None, :], acc.to(out.dtype.element_ty), (taken & alone)[:, None] & in_v[None, :]
    )
    at_part = place.to(tl.int64) * n_heads + head
    merged = taken & (place >= 0)
    part = partials + (at_part * v_dim)[:, None] + at_v[None, :]
    tl.store(part, acc.to(partials.dtype.element_ty), merged[:, None] & in_v[None, :])
    tl.store(lses + at_part, top + tl.log2(total), merged)


@triton.jit
def merge_kernel(
    partials,
    lses,
    sinks,
    lists,
    out,
    n_heads: tl.constexpr,
    v_dim: tl.constexpr,
    v_pad: tl.constexpr,
    has_sinks: tl.constexpr,
    block_p: tl.constexpr,
    block_h: tl.constexpr,
):
    """One program for each row and `block_h` heads: partial results weighted by their log-sum-exp, 0 without any."""
    row = tl.program_id(0)
    start = tl.load(lists + 2 * row)
    n = tl.load(lists + 2 * row + 1)
    if n == 1:  # it stands in `out` already
        return
    head = tl.program_id(1) * block_h + tl.arange(0, block_h)
    at_v = tl.arange(0, v_pad)
    p = tl.arange(0, block_p)
    is_head = head < n_heads
    is_out = is_head[:, None] & (at_v < v_dim)[None, :]
    acc = tl.zeros([block_h, v_pad], tl.float32)
    top = tl.full([block_h], float("-inf"), tl.float32)
    total = tl.zeros([block_h], tl.float32)
    if has_sinks:
        top = tl.load(sinks + head, is_head, 0.0).to(tl.float32) * LOG2E
        total += 1.0
    for begin in range(0, n, block_p):
        there = (begin + p < n)[:, None] & is_head[None, :]
        at = (start + begin + p).to(tl.int64)[:, None] * n_heads + head[None, :]
        lse = tl.load(lses + at, there, float("-inf"))
        part = tl.load(partials + (at * v_dim)[:, :, None] + at_v[None, None, :], there[:, :, None] & is_out[None], 0.0)
        higher = tl.maximum(top, tl.max(lse, 0))
        base = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(lse - base[None, :])
        shrink = tl.exp2(top - base)
        total = total * shrink + tl.sum(weights, 0)
        acc = acc * shrink[:, None] + tl.sum(part.to(tl.float32) * weights[:, :, None], 0)
        top = higher
    acc = acc / tl.where(total > 0.0, total, 1.0)[:, None]
    at_out = (row.to(tl.int64) * n_heads + head) * v_dim
    tl.store(out + at_out[:, None] + at_v[None, :], acc.to(out.dtype.element_ty), is_out)
