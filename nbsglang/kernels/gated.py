"""The gate of a gated MLP: FlashInfer's form, and torch's reference.

Not here: the products around it (`engine/fused.py`).
"""

from __future__ import annotations

import torch
from torch.nn import functional

from nbsglang.kernels.flash import flash_for


def silu_mul(rows: torch.Tensor) -> torch.Tensor:
    """silu of the left half of `rows` [n, 2 * width] times the right half: [n, width]."""
    flash = flash_for(rows)
    if flash is not None:
        out: torch.Tensor = flash.silu_and_mul(rows)
        return out
    gate, up = rows.chunk(2, -1)
    return functional.silu(gate) * up
