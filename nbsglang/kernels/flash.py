"""Whether FlashInfer can do something: it is optional, and has 16-bit forms for CUDA only.

Not here: what it does (`paged.py`).
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


def prefill_backend(dtype: torch.dtype, dim: int, device: torch.device) -> str | None:
    """The name of FlashInfer's fastest form of paged prefill that is compiled already; None where none is.

    Compiling one takes minutes and a CUDA toolkit, which nobody who runs a cell expects.
    """
    package = flashinfer()
    if package is None or device.type != "cuda" or dtype not in _DTYPES:
        return None
    try:
        jit = import_module("flashinfer.jit")
        best = ["fa3", "fa2"] if torch.cuda.get_device_capability(device)[0] == 9 else ["fa2"]
        specs = {
            name: jit.gen_batch_prefill_module(name, dtype, dtype, dtype, torch.int32, dim, dim, 0, False, False, False)
            for name in best
        }
        return next((name for name, spec in specs.items() if spec.is_aot or spec.is_compiled), None)
    except Exception:  # another version of the package, or a form that it refuses
        return None
