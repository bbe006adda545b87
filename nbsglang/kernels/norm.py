"""Root-mean-square norms, alone and with the residual sum before them: FlashInfer's form, and torch's reference.

Not here: which layers use them (`engine/fused.py`).
"""

from __future__ import annotations

import torch

from nbsglang.kernels.flash import flash_for


def rms_norm(rows: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """`rows` [n, width] over their root mean square, times `weight` [width]. Sums in float32."""
    flash = flash_for(rows)
    if flash is not None:
        out: torch.Tensor = flash.rmsnorm(rows, weight, eps)
        return out
    wide = rows.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(rows.dtype)


def add_rms_norm(rows: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """The norm of `residual + rows`, both [n, width]; the sum is left in `residual`. `rows` may be overwritten."""
    flash = flash_for(rows)
    if flash is not None:
        flash.fused_add_rmsnorm(rows, residual, weight, eps)
        return rows
    residual += rows
    return rms_norm(residual, weight, eps)
