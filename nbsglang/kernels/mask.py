"""Bans the tokens that packed masks do not have, and says how likely they were: torch's reference, and which form runs.

Not here: Triton's form (`mask_triton.py`), where masks come from (`engine/grammar`).
"""

from __future__ import annotations

from importlib.util import find_spec

import torch

_NEVER = float("-inf")


def mask_rows(logits: torch.Tensor, rows: torch.Tensor, which: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """In row `rows[i]` of `logits` [n, vocabulary] ban all tokens that mask `which[i]` does not have, in place.

    `masks` int32 [masks, words] cover the vocabulary: bit i of word j is token 32 j + i. `rows` int32 [m] ascend. All
    three should begin at a multiple of 16 bytes: Triton compiles other code where they do not.
    Returns the probability that the banned tokens of each row had together, float32 [m].
    """
    if logits.is_cuda and find_spec("triton") is not None:
        from nbsglang.kernels.mask_triton import mask_rows_triton  # torch for CPUs comes without Triton

        return mask_rows_triton(logits, rows, which, masks)
    return mask_rows_torch(logits, rows, which, masks)


def mask_rows_torch(logits: torch.Tensor, rows: torch.Tensor, which: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """See `mask_rows`."""
    powers = 1 << torch.arange(8, dtype=torch.uint8, device=masks.device)
    banned = (masks.view(torch.uint8)[:, :, None] & powers == 0).view(len(masks), -1)[:, : logits.shape[1]][which]
    some = logits if len(rows) == len(logits) else logits[rows]
    share = torch.softmax(some.float(), -1).mul_(banned).sum(-1).clamp_(max=1.0)
    some.masked_fill_(banned, _NEVER)
    if some is not logits:
        logits[rows] = some
    return share
