"""Triton's form of the masks of logits: each logit is read once, and what is banned is written.

Not here: what it computes, in torch (`mask.py`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_BLOCK = 4096  # tokens of a program
_LEAST = tl.constexpr(-1e30)  # instead of no largest logit: differences stay numbers


@triton.jit
def _mask_kernel(logits, rows, which, masks, parts, row_stride, n_vocab, n_words, block: tl.constexpr):
    """Ban, and leave in `parts` [m, 3, blocks] the largest logit, the weights relative to it, those of the banned."""
    number = tl.program_id(0)
    part = tl.program_id(1)
    row = tl.load(rows + number).to(tl.int64)
    mask = tl.load(which + number).to(tl.int64)
    token = part * block + tl.arange(0, block)
    inside = token < n_vocab
    word = tl.load(masks + mask * n_words + token // 32, inside, 0)
    is_banned = inside & (((word >> (token % 32)) & 1) == 0)
    place = logits + row * row_stride + token
    logit = tl.load(place, inside, float("-inf")).to(tl.float32)
    largest = tl.maximum(tl.max(logit), _LEAST)
    weight = tl.exp(logit - largest)
    n_blocks = tl.num_programs(1)
    at = parts + 3 * number * n_blocks + part
    tl.store(at, largest)
    tl.store(at + n_blocks, tl.sum(weight))
    tl.store(at + 2 * n_blocks, tl.sum(tl.where(is_banned, weight, 0.0)))
    never = tl.full((block,), float("-inf"), tl.float32)
    tl.store(place, never, is_banned)


@triton.jit
def _share_kernel(parts, out, n_blocks, padded: tl.constexpr):
    """Of all weights of a row, the banned ones' share."""
    number = tl.program_id(0)
    block = tl.arange(0, padded)
    inside = block < n_blocks
    at = parts + 3 * number * n_blocks + block
    largest = tl.load(at, inside, _LEAST)
    scale = tl.exp(largest - tl.max(largest))
    whole = tl.sum(tl.load(at + n_blocks, inside, 0.0) * scale)
    banned = tl.sum(tl.load(at + 2 * n_blocks, inside, 0.0) * scale)
    tl.store(out + number, tl.minimum(banned / whole, 1.0))


def mask_rows_triton(
    logits: torch.Tensor, rows: torch.Tensor, which: torch.Tensor, masks: torch.Tensor
) -> torch.Tensor:
    """See `mask.mask_rows`; logits are contiguous within a row."""
    assert logits.stride(1) == 1
    n_vocab, n_words = logits.shape[1], masks.shape[1]
    n_rows, n_blocks = len(rows), triton.cdiv(n_vocab, _BLOCK)
    parts = torch.empty(n_rows, 3, n_blocks, dtype=torch.float32, device=logits.device)
    share = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    _mask_kernel[(n_rows, n_blocks)](
        logits, rows, which, masks, parts, logits.stride(0), n_vocab, n_words, block=_BLOCK, num_warps=8
    )
    _share_kernel[(n_rows,)](parts, share, n_blocks, padded=triton.next_power_of_2(n_blocks))
    return share
