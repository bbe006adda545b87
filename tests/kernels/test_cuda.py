"""The CUDA forms of the kernels against float64, or against their torch references. Skipped without a device."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nbsglang.kernels.flash import flashinfer
from nbsglang.kernels.gated import silu_mul
from nbsglang.kernels.norm import add_rms_norm, rms_norm, sum_rms_norm
from nbsglang.kernels.paged import paged_attention
from nbsglang.kernels.rope import HeadNorms, rope_store, rope_store_torch
from nbsglang.kernels.spans import Reads, SpanForm

pytestmark = [pytest.mark.gpu]
needs_flash = pytest.mark.skipif(flashinfer() is None, reason="needs FlashInfer")
HEADS = [(32, 8, 128), (9, 3, 64), (4, 2, 12)]


def off(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The size of the difference, relative to that of the expected values."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-6), (torch.bfloat16, 6e-3)])
def test_rope_and_store(heads, normed, dtype, limit):
    n_heads, n_kv, dim = heads
    n = 37
    rows = torch.randn(n, (n_heads + 2 * n_kv) * dim, device="cuda").to(dtype)
    cos, sin = torch.randn(n, dim, device="cuda"), torch.randn(n, dim, device="cuda")
    slots = torch.randperm(100, device="cuda")[:n]
    norms = HeadNorms(*torch.rand(2, dim, device="cuda").to(dtype), 1e-6) if normed else None
    pools = [torch.zeros(2, 100, n_kv, dim, device="cuda", dtype=dtype) for _ in range(2)]
    given = rows.clone()
    query = rope_store(rows, cos, sin, slots, *pools[0], norms)
    expected = rope_store_torch(given, cos, sin, slots, *pools[1], norms)
    assert off(query, expected) < limit
    assert off(pools[0][0], pools[1][0]) < limit
    assert torch.equal(pools[0][1], pools[1][1])
    heads = rows.view(n, -1, dim)
    assert torch.equal(heads[:, n_heads : n_heads + n_kv], pools[0][0][slots]), "the keys are turned in place"
    assert torch.equal(heads[:, n_heads + n_kv :], pools[0][1][slots])


def test_norms_and_gate():
    x, r = torch.randn(2, 50, 4096, device="cuda").bfloat16()
    w = torch.rand(4096, device="cuda").bfloat16()

    def normed(rows: torch.Tensor) -> torch.Tensor:
        wide = rows.double()
        return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5) * w.double()

    assert off(rms_norm(x, w, 1e-5), normed(x)) < 4e-3
    total = x.double() + r.double()
    assert off(sum_rms_norm(x, r, w, 1e-5), normed(total)) < 4e-3
    for dtype in (torch.bfloat16, torch.float32):
        found = r.to(dtype, copy=True)
        assert off(add_rms_norm(x, found, w, 1e-5), normed(total)) < 4e-3
        assert off(found, total) < (4e-3 if dtype == torch.bfloat16 else 2e-7)
        found, before = r.to(dtype, copy=True), torch.randn_like(x)
        more = total + before.double()
        assert off(add_rms_norm(x, found, w, 1e-5, before), normed(more)) < 4e-3
        assert off(found, more) < (4e-3 if dtype == torch.bfloat16 else 2e-7)
    both = torch.randn(50, 2048, device="cuda").bfloat16()
    gate, up = both.double().chunk(2, -1)
    assert off(silu_mul(both), torch.nn.functional.silu(gate) * up) < 4e-3


@needs_flash
@pytest.mark.parametrize("heads", HEADS[:2])
@pytest.mark.parametrize(
    ("rows", "contexts"),
    [([300, 700], [300, 900]), ([300, 700], [300, 700]), ([1, 200, 1, 33], [50, 200, 900, 400]), ([5, 1], [5, 1])],
)
def test_paged_attention(heads, rows, contexts):
    n_heads, n_kv, dim = heads
    form = SpanForm(n_heads, n_kv, dim, dim, dim**-0.5)
    paged = paged_attention(form, torch.bfloat16, torch.device("cuda"))
    if paged is None:
        pytest.skip("FlashInfer's form is not compiled")
    k_pool, v_pool = torch.randn(2, 5000, n_kv, dim, device="cuda").bfloat16()
    rng = np.random.default_rng(0)
    starts, at = (np.cumsum([0, *sizes]).astype(np.int32) for sizes in (contexts, rows))
    slots = np.concatenate([rng.permutation(4999)[:n] + 1 for n in contexts]).astype(np.int32)
    query = torch.randn(int(at[-1]), n_heads, dim, device="cuda").bfloat16()
    reads = Reads(at, starts, slots)
    ends = np.concatenate([slots[b - n : b] for b, n in zip(starts[1:], rows, strict=True)]).astype(np.int64)
    own = [pool[torch.from_numpy(ends).cuda()] for pool in (k_pool, v_pool)]
    new = torch.cat([torch.full_like(query, float("nan")), *own], 1).flatten(1)  # as a layer's product has them
    paged.plan(reads)
    found = torch.full_like(query, float("nan"))
    paged.run(query, new, k_pool, v_pool, found)
    for i, n in enumerate(contexts):
        mine = torch.from_numpy(slots[starts[i] : starts[i + 1]].astype(np.int64)).cuda()
        group = n_heads // n_kv
        keys, values = (p[mine].double().transpose(0, 1).repeat_interleave(group, 0) for p in (k_pool, v_pool))
        scores = query[at[i] : at[i + 1]].double().transpose(0, 1) @ keys.transpose(1, 2) * dim**-0.5
        seen = torch.ones(rows[i], n, device="cuda").tril(n - rows[i]).bool()
        weights = torch.softmax(scores.masked_fill(~seen, float("-inf")), -1)
        assert off(found[at[i] : at[i + 1]], (weights @ values).transpose(0, 1)) < 6e-3
