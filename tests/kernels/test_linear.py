"""oneDNN's product against float64, and where it must not be used."""

from __future__ import annotations

import platform

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.kernels.linear import linear, works


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    rows=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    n_in=st.integers(1, 200),
    n_out=st.integers(1, 300),
    with_bias=st.booleans(),
)
def test_it_is_the_product(seed, rows, n_in, n_out, with_bias):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(*rows, n_in, generator=rng)
    weight, bias = torch.randn(n_out, n_in, generator=rng), torch.randn(n_out, generator=rng) if with_bias else None
    with torch.inference_mode():
        out = linear(x, weight, bias)
    expected = torch.nn.functional.linear(x.double(), weight.double(), None if bias is None else bias.double())
    assert out.shape == (*rows, n_out)
    assert out.dtype == torch.float32
    assert (out.double() - expected).abs().max() < 1e-6 * (n_in + 10)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_dtypes_take_torchs_own(dtype):
    x, weight = torch.randn(3, 8).to(dtype), torch.randn(5, 8).to(dtype)
    with torch.inference_mode():
        assert torch.equal(linear(x, weight), torch.nn.functional.linear(x, weight))


def test_gradients_are_never_lost():
    x, weight = torch.randn(3, 8), torch.randn(5, 8, requires_grad=True)
    linear(x, weight).sum().backward()
    assert torch.allclose(weight.grad, x.sum(0).expand(5, -1))


def test_rows_that_are_not_contiguous():
    x, weight = torch.randn(8, 5).t(), torch.randn(6, 16)[:, ::2]
    with torch.inference_mode():
        assert torch.allclose(linear(x, weight), x @ weight.t(), atol=1e-5)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines may lack the operator")
def test_it_is_used_on_this_machine():
    assert works()
