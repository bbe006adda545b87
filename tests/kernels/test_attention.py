"""The attention kernel against plain softmax attention in float64, for any cut into parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.kernels.attention import HIDDEN, Part, attention


def reference(q, k, v, mask, scale, softcap, sinks):
    """[heads, rows, dim] queries over all keys [kv, keys, dim] with a boolean mask [rows, keys], in float64."""
    group = q.shape[0] // k.shape[0]
    k, v = (t.double().repeat_interleave(group, 0) for t in (k, v))
    scores = q.double() @ k.transpose(1, 2) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores = scores.masked_fill(~mask, float("-inf"))
    if sinks is not None:
        scores = torch.cat([scores, sinks.double()[:, None, None].expand(-1, q.shape[1], 1)], -1)
    weights = torch.softmax(scores, -1)[..., : k.shape[1]]
    return weights @ v


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10_000),
    shape=st.sampled_from([(4, 2, 12, 12), (9, 3, 64, 64), (4, 4, 16, 8), (8, 1, 32, 32)]),
    n_rows=st.integers(1, 20),
    n_keys=st.integers(1, 60),
    n_cuts=st.integers(0, 3),
    softcap=st.sampled_from([None, None, 5.0]),
    with_sinks=st.booleans(),
)
def test_any_cut_into_parts_gives_the_whole(seed, shape, n_rows, n_keys, n_cuts, softcap, with_sinks):
    heads, kv, dim, v_dim = shape
    rng = torch.Generator().manual_seed(seed)
    q = torch.randn(heads, n_rows, dim, generator=rng) * 2
    pool_k = torch.randn(100, kv, dim, generator=rng)
    pool_v = torch.randn(100, kv, v_dim, generator=rng)
    slots = torch.randperm(99, generator=rng)[:n_keys] + 1
    mask = torch.rand(n_rows, n_keys, generator=rng) < 0.7
    mask[:, torch.randint(n_keys, (1,), generator=rng)] = True  # every row sees something
    sinks = torch.randn(heads, generator=rng) if with_sinks else None
    cuts = sorted(torch.randint(0, n_keys + 1, (n_cuts,), generator=rng).tolist())
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, n_keys], strict=True):
        if start < stop:
            additive = torch.where(mask[:, start:stop], 0.0, HIDDEN)[None, None]
            parts.append(Part(torch.arange(n_rows), slots[start:stop], 1, len(parts), additive))
    out = attention(q, pool_k, pool_v, parts, len(parts), dim**-0.5, softcap, sinks)
    keys, values = pool_k[slots].transpose(0, 1), pool_v[slots].transpose(0, 1)
    expected = reference(q, keys, values, mask, dim**-0.5, softcap, sinks)
    assert out.shape == (heads, n_rows, v_dim)
    assert (out.double() - expected).abs().max() < 2e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_stack_of_lines_with_padding_equals_each_line_alone(dtype):
    torch.manual_seed(0)
    heads, kv, dim = 6, 2, 16
    q = torch.randn(heads, 5, dim).to(dtype)
    pool_k, pool_v = (torch.randn(50, kv, dim).to(dtype) for _ in range(2))
    lengths = [7, 3, 9, 1, 9]
    slots = torch.zeros(5, 9, dtype=torch.int64)
    mask = torch.full((5, 1, 1, 9), HIDDEN, dtype=dtype)
    for i, n in enumerate(lengths):
        slots[i, :n] = torch.randperm(49)[:n] + 1
        mask[i, :, :, :n] = 0
    out = attention(q, pool_k, pool_v, [Part(torch.arange(5), slots.reshape(-1), 5, 0, mask)], 1, 0.25)
    for i, n in enumerate(lengths):
        keys, values = (pool[slots[i, :n]].transpose(0, 1) for pool in (pool_k, pool_v))
        expected = reference(q[:, i : i + 1], keys, values, torch.ones(1, n, dtype=torch.bool), 0.25, None, None)
        assert (out[:, i : i + 1].double() - expected).abs().max() < (2e-6 if dtype == torch.float32 else 2e-2)


@pytest.mark.parametrize("softcap", [None, 5.0])
@pytest.mark.parametrize(
    ("heads", "kv", "dim", "v_dim"), [(4, 2, 12, 12), (9, 3, 64, 64), (4, 4, 16, 8), (8, 1, 32, 32)]
)
@pytest.mark.parametrize("slots", [slice(10, 80), torch.randperm(99)[:70] + 1])
def test_a_causal_part_beside_its_past_gives_the_whole(heads, kv, dim, v_dim, softcap, slots):
    torch.manual_seed(1)
    n, n_past = 70, 20
    q = torch.randn(heads, n, dim) * 2
    pool_k, pool_v = torch.randn(130, kv, dim), torch.randn(130, kv, v_dim)
    rows = torch.arange(n)
    parts = [Part(rows, slots, 1, 0, None, causal=True), Part(rows, slice(100, 100 + n_past), 1, 1, None)]
    keys, values = (torch.cat([pool[100 : 100 + n_past], pool[slots]]).transpose(0, 1) for pool in (pool_k, pool_v))
    mask = torch.cat([torch.ones(n, n_past), torch.ones(n, n).tril()], 1).bool()
    out = attention(q, pool_k, pool_v, parts, 2, dim**-0.5, softcap)
    expected = reference(q, keys, values, mask, dim**-0.5, softcap, None)
    assert (out.double() - expected).abs().max() < 2e-5


def test_a_slice_of_the_pool_equals_its_slots():
    torch.manual_seed(0)
    q, pool_k, pool_v = torch.randn(4, 3, 8), torch.randn(30, 2, 8), torch.randn(30, 2, 8)
    rows = torch.arange(3)
    by_slice = attention(q, pool_k, pool_v, [Part(rows, slice(5, 20), 1, 0, None)], 1, 0.3)
    by_index = attention(q, pool_k, pool_v, [Part(rows, torch.arange(5, 20), 1, 0, None)], 1, 0.3)
    np.testing.assert_allclose(by_slice.numpy(), by_index.numpy(), atol=1e-6)
