"""Masks of logits: torch's form against numpy's bits and float64, Triton's against torch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nbsglang.kernels.mask import mask_rows, mask_rows_torch

CASES = [(100, 3, 2, 1), (49152, 5, 5, 3), (9100, 7, 4, 4), (32, 1, 1, 1), (128_256, 64, 40, 9)]  # vocabulary, rows ...


def case(n_vocab: int, n: int, n_bound: int, n_masks: int) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(n_vocab)
    masks = rng.integers(-(1 << 31), 1 << 31, (n_masks, -(-n_vocab // 32))).astype(np.int32)
    masks[0] = 0  # only one token ...
    masks[0, (n_vocab - 1) // 32] = np.uint32(1 << (n_vocab - 1) % 32).view(np.int32)
    rows = np.sort(rng.permutation(n)[:n_bound]).astype(np.int32)
    which = rng.integers(0, n_masks, n_bound).astype(np.int32)
    which[0] = 0
    logits = torch.from_numpy(rng.normal(0, 4, (n, n_vocab)).astype(np.float32))
    return logits, *map(torch.from_numpy, (rows, which, masks))


@pytest.mark.parametrize("sizes", CASES)
def test_what_a_mask_lacks_is_banned_and_nothing_else(sizes):
    logits, rows, which, masks = case(*sizes)
    found = logits.clone()
    share = mask_rows_torch(found, rows, which, masks)
    bits = np.unpackbits(masks.numpy().view(np.uint8), axis=1, bitorder="little")[:, : sizes[0]].astype(bool)
    expected = logits.clone()
    for at, (row, mask) in enumerate(zip(rows.tolist(), which.tolist(), strict=True)):
        banned = torch.from_numpy(~bits[mask])
        expected[row, banned] = float("-inf")
        probability = torch.softmax(logits[row].double(), -1)[banned].sum()
        assert share[at].item() == pytest.approx(probability.item(), abs=1e-4)  # float32 sums of the vocabulary
    assert torch.equal(found, expected)
    assert (found > float("-inf")).any(1).all()


@pytest.mark.gpu
@pytest.mark.parametrize("sizes", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tritons_form_is_torchs(sizes, dtype):
    there = [tensor.cuda() for tensor in case(*sizes)]
    there[0] = there[0].to(dtype)
    found, expected = there[0].clone(), there[0].clone()
    shares = mask_rows(found, *there[1:]), mask_rows_torch(expected, *there[1:])
    assert torch.equal(found, expected)
    assert torch.allclose(*shares, atol=1e-5)
