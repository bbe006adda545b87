"""Root-mean-square norms, alone and with the residual sum before them: torch's reference, and which form is used.

Not here: Triton's form (`rows_triton.py`), which layers use them (`engine/fused.py`).
"""

from __future__ import annotations

import torch


def rms_norm(rows: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """`rows` [n, width] over their root mean square, times `weight` [width], in the weight's dtype. Sums in float32."""
    if rows.is_cuda:
        from nbsglang.kernels.rows_triton import norm_triton  # torch for CPUs comes without Triton

        return norm_triton(rows, None, weight, eps)
    wide = rows.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(weight.dtype)


def add_rms_norm(rows: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """The norm of `residual + rows`, both [n, width]; the sum is left in `residual`, which may be of a wider dtype."""
    if rows.is_cuda:
        from nbsglang.kernels.rows_triton import norm_triton

        return norm_triton(rows, residual, weight, eps)
    residual += rows
    return rms_norm(residual, weight, eps)
