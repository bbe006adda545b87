"""Whether FlashInfer can do something: it is optional, and has 16-bit forms for CUDA only.

Not here: what it does (`norm.py`, `gated.py`, `paged.py`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import torch

_DTYPES = (torch.bfloat16, torch.float16)


@cache
def flashinfer() -> Any | None:
    """The package, or None where it is missing or does not load."""
    try:
        return import_module("flashinfer")
    except Exception:  # a package that does not fit this torch or driver may raise anything
        return None


def flash_for(rows: torch.Tensor) -> Any | None:
    """FlashInfer, if it has a form for such a tensor."""
    return flashinfer() if rows.is_cuda and rows.dtype in _DTYPES else None
