"""Root-mean-square norms, alone and with the residual sum before them: torch's reference, and which form is used.

The sum before one norm need not be stored where the next one adds the same rows again: one more reading of them, in 16
bits, costs less than a writing of the sum, in 32.

Not here: Triton's form (`rows_triton.py`), which layers use them (`engine/fused.py`).
"""

from __future__ import annotations

import torch


def rms_norm(rows: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """`rows` [n, width] over their root mean square, times `weight` [width], in the weight's dtype. Sums in float32."""
    if rows.is_cuda:
        from nbsglang.kernels.rows_triton import norm_triton  # torch for CPUs comes without Triton

        return norm_triton((rows,), weight, eps)
    wide = rows.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(weight.dtype)


def sum_rms_norm(rows: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """The norm of `residual + rows`, both [n, width], of which the former may be of a wider dtype."""
    if rows.is_cuda:
        from nbsglang.kernels.rows_triton import norm_triton

        return norm_triton((residual, rows), weight, eps)
    return rms_norm(residual + rows, weight, eps)


def add_rms_norm(
    rows: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, before: torch.Tensor | None = None
) -> torch.Tensor:
    """See `sum_rms_norm`; the sum is left in `residual`. The rows `before`, if there are any, are added first."""
    if rows.is_cuda:
        from nbsglang.kernels.rows_triton import norm_triton

        parts = (residual, rows) if before is None else (residual, before, rows)
        return norm_triton(parts, weight, eps, keeps=True)
    if before is not None:
        residual += before
    residual += rows
    return rms_norm(residual, weight, eps)
