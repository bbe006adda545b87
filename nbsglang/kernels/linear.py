"""Matrix products with a layer's weights on a CPU: oneDNN's float32 kernel, on the weights as they are.

torch gives float32 products to MKL, which is slow for few rows, and on CPUs that are not Intel's for any number
(`docs/decisions.md` has figures). oneDNN comes with torch; the operator that reaches it has no gradient.

Not here: which layers use it (`engine/linears.py`).
"""

from __future__ import annotations

import torch
from torch.nn import functional


def linear(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`rows` [..., n_in] times `weight` [n_out, n_in], transposed, plus `bias`: what torch's `linear` gives."""
    if weight.dtype != torch.float32 or rows.dtype != torch.float32 or weight.device.type != "cpu":
        return functional.linear(rows, weight, bias)
    if torch.is_grad_enabled():
        return functional.linear(rows, weight, bias)
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return product


def works() -> bool:
    """Whether this torch has the operator, and it gives what torch's own product gives."""
    rng = torch.Generator().manual_seed(0)
    weight, bias = torch.randn(24, 40, generator=rng), torch.randn(24, generator=rng)
    try:
        with torch.inference_mode():
            for n in (1, 3, 70):
                rows = torch.randn(1, n, 40, generator=rng)
                for b in (None, bias):
                    if (linear(rows, weight, b) - functional.linear(rows, weight, b)).abs().max() > 1e-4:
                        return False
    except (AttributeError, RuntimeError, NotImplementedError):
        return False
    return True
