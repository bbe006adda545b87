"""Products of a few rows: torch's form anywhere, Triton's forms against float64 on a CUDA device."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from nbsglang.kernels.skinny import Tiles, choose, skinny_gated, skinny_linear

ONE_ROW = [Tiles(2, 2048), Tiles(4, 1024), Tiles(16, 128, 2)]
ROWS = [Tiles(64, 128, 4, 4), Tiles(64, 128, 4, 4, split=2), Tiles(32, 128, 2, 6), Tiles(64, 64, 4, 3, split=3)]
WIDE = [Tiles(128, 64, 8, 6), Tiles(128, 64, 4, 6), Tiles(64, 128, 4, 4, split=4)]
FORMS = [(tiles, 1) for tiles in ONE_ROW] + [(tiles, n) for tiles in ROWS for n in (2, 7, 8, 16)]
FORMS += [(tiles, n) for tiles in WIDE for n in (17, 32, 33, 64)]
NAMES = [f"{n}x{tiles.outs}x{tiles.ins}/{tiles.split}" for tiles, n in FORMS]
SHAPES = [(96, 576), (970, 1536), (6144, 4096), (300, 80)]
gpu = pytest.mark.gpu


def off(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The size of the difference, relative to that of the expected values."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def gated(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """In float64, with both products rounded."""
    product = functional.linear(rows.double(), weight.double(), None if bias is None else bias.double())
    gate, up = product.to(rows.dtype).double().chunk(2, -1)
    return functional.silu(gate) * up


def drawn(n: int, n_out: int, n_in: int, dtype: torch.dtype, device: str = "cuda") -> list[torch.Tensor]:
    """Rows, weights, a bias."""
    rows, weight = torch.randn(n, n_in, device=device), torch.randn(n_out, n_in, device=device) * n_in**-0.5
    return [part.to(dtype) for part in (rows, weight, torch.randn(n_out, device=device))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_is_torch_on_a_cpu(dtype, n):
    rows, weight, bias = drawn(n, 40, 64, dtype, "cpu")
    assert torch.equal(skinny_linear(rows, weight), functional.linear(rows, weight))
    assert torch.equal(skinny_linear(rows, weight, bias), functional.linear(rows, weight, bias))
    for more in (None, bias):
        gate, up = functional.linear(rows, weight, more).chunk(2, -1)
        assert torch.equal(skinny_gated(rows, weight, more), functional.silu(gate) * up)


def test_many_rows_and_small_weights_are_left_to_torch():
    assert choose(0, 4096, 4096, False) is None
    assert choose(33, 4096, 4096, False) is None
    assert choose(65, 128_256, 4096, False) is None
    assert choose(1, 64, 64, False) is None


def test_cuts_of_an_8b_model():
    whole, half = Tiles(64, 128, 4, 4), Tiles(64, 128, 4, 4, split=2)
    one, few, quarter = Tiles(2, 2048, 4), Tiles(4, 1024, 4), Tiles(64, 128, 4, 4, split=4)
    gate, head = Tiles(128, 64, 8, 6), Tiles(128, 64, 4, 6)
    shapes = {
        (6144, 4096, False): (one, half, half, None),
        (4096, 4096, False): (few, half, quarter, None),
        (14336, 4096, True): (one, whole, gate, gate),
        (4096, 14336, False): (few, half, quarter, None),
        (128_256, 4096, False): (one, whole, head, head),
    }
    for shape, cuts in shapes.items():
        of_rows = dict(zip((range(1, 2), range(2, 17), range(17, 33), range(33, 65)), cuts, strict=True))
        assert all(choose(n, *shape) == cut for rows, cut in of_rows.items() for n in rows)


def test_sums_of_few_outputs_are_split_as_far_as_columns_allow():
    assert choose(4, 1024, 4096, False) == Tiles(64, 128, 4, 4, split=8)
    assert choose(4, 2048, 576, False) == Tiles(64, 128, 4, 4)
    assert choose(4, 1536, 2048, True) is None, "a gate wants whole sums: it is another kernel's then"


@gpu
@pytest.mark.parametrize(("tiles", "n"), FORMS, ids=NAMES)
@pytest.mark.parametrize(("dtype", "limit"), [(torch.bfloat16, 4e-3), (torch.float16, 6e-4)])
@pytest.mark.parametrize("early", [True, False])
def test_forms_against_float64(tiles, n, dtype, limit, early):
    from nbsglang.kernels.skinny_triton import product

    for n_out, n_in in SHAPES:
        rows, weight, bias = drawn(n, n_out, n_in, dtype)
        expected = rows.double() @ weight.double().T
        for more in (None, bias):
            out = torch.full((n, n_out), float("nan"), device="cuda", dtype=dtype)
            product(rows, weight, more, out, tiles, early=early)
            assert off(out, expected if more is None else expected + more.double()) < limit
        if tiles.split == 1:
            out = torch.full((n, n_out // 2), float("nan"), device="cuda", dtype=dtype)
            product(rows, weight, None, out, tiles, gated=True, early=early)
            assert off(out, gated(rows, weight)) < 2 * limit


@gpu
@pytest.mark.parametrize("tiles", ROWS, ids=lambda t: f"{t.outs}x{t.ins}/{t.split}")
def test_a_row_is_the_same_each_time_in_each_place_and_number(tiles):
    from nbsglang.kernels.skinny_triton import product

    rows, weight, _ = drawn(16, 2048, 4096, torch.bfloat16)
    first = product(rows, weight, None, torch.empty(16, 2048, device="cuda").bfloat16(), tiles)
    for i in range(20):
        order = torch.randperm(16, device="cuda")[: 16 - i % 15]
        again = product(rows[order], weight, None, torch.empty_like(first[order]), tiles)
        assert torch.equal(again, first[order])


@gpu
@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 70, 193, 256])
@pytest.mark.parametrize(
    "sizes", [(6144, 4096), (4096, 14336), (576, 1536), (960, 2048), (40, 36), (49, 33), (20_000, 512)]
)
def test_choices(n, sizes):
    rows, weight, bias = drawn(n, *sizes, torch.bfloat16)
    assert off(skinny_linear(rows, weight, bias), functional.linear(*(p.double() for p in (rows, weight, bias)))) < 4e-3
    if not sizes[0] % 2:
        assert off(skinny_gated(rows, weight), gated(rows, weight)) < 8e-3
        assert off(skinny_gated(rows, weight, bias), gated(rows, weight, bias)) < 8e-3
    wide = torch.randn(n, sizes[1] + 16, device="cuda").bfloat16()
    assert off(skinny_linear(wide[:, 16:], weight), wide[:, 16:].double() @ weight.double().T) < 4e-3


@gpu
@pytest.mark.parametrize("n", [1, 5, 24, 50])
def test_chains_in_a_graph(n):
    """Kernels start before the one ahead has ended: what it and those before it wrote must be there all the same."""
    from nbsglang.kernels.norm import add_rms_norm
    from nbsglang.kernels.rope import rope_store

    width, dim = 2048, 64
    rows = torch.randn(n, width, device="cuda").bfloat16()
    weights = [torch.randn(width, width, device="cuda").mul(width**-0.5).bfloat16() for _ in range(4)]
    gates = torch.randn(8 * width, width, device="cuda").mul(width**-0.5).bfloat16()
    norm = torch.ones(width, device="cuda").bfloat16()
    cos, sin = torch.randn(2, n, dim, device="cuda").tanh()
    slots = torch.arange(n, device="cuda") + 1
    pools = torch.zeros(2, n + 1, 4, dim, device="cuda", dtype=torch.bfloat16)

    def chain(start: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.zeros_like(start)
        for weight in weights * 3:
            turned = rope_store(skinny_linear(start, weight), cos, sin, slots, *pools).reshape(n, -1)
            start = add_rms_norm(skinny_linear(turned, weight[:, : turned.shape[1]]), total, norm, 1e-5)
            start = start + skinny_gated(start, gates)[:, :width]
        return skinny_linear(start, weights[0]), pools.clone()

    with torch.inference_mode():
        expected = []
        for given in (rows, rows.flip(0).neg()):
            torch.cuda.synchronize()
            expected.append([part.clone() for part in chain(given)])
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            chain(rows)
        stream.synchronize()
        graph, given = torch.cuda.CUDAGraph(), rows.clone()
        with torch.cuda.graph(graph, stream=stream):
            found = chain(given)
        for i in range(40):
            given.copy_(rows if i % 2 == 0 else rows.flip(0).neg())
            graph.replay()
            for ours, theirs in zip(found, expected[i % 2], strict=True):
                assert torch.equal(ours, theirs)
