"""The gate of a gated MLP: torch's reference, and which form is used.

Not here: Triton's form (`rows_triton.py`), the products around it (`engine/fused.py`).
"""

from __future__ import annotations

import torch
from torch.nn import functional


def silu_mul(rows: torch.Tensor) -> torch.Tensor:
    """silu of the left half of `rows` [n, 2 * width] times the right half: [n, width]."""
    if rows.is_cuda and rows.is_contiguous():
        from nbsglang.kernels.rows_triton import gate_triton  # torch for CPUs comes without Triton

        return gate_triton(rows)
    gate, up = rows.chunk(2, -1)
    return functional.silu(gate) * up
