"""The tensors of the KV cache: for each layer K and V apart, `[slots, kv_heads, head_dim]`.

Not here: which slots are free (`slots.py`) or cached (`radix.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

_ALIGNED = 64  # bytes; the widest vector registers


@dataclass(frozen=True, slots=True)
class LayerShape:
    """Heads and widths of one layer's keys and values; the two widths may differ."""

    n_heads: int
    k_dim: int
    v_dim: int

    @property
    def n_values(self) -> int:
        """Numbers kept for one token."""
        return self.n_heads * (self.k_dim + self.v_dim)


class KVPool:
    """Keys and values of `n_slots` tokens, slots 1 .. n_slots; slot 0 is scratch for padding."""

    def __init__(self, shapes: tuple[LayerShape, ...], n_slots: int, dtype: torch.dtype, device: torch.device) -> None:
        self.k = [_zeros((n_slots + 1, s.n_heads, s.k_dim), dtype, device) for s in shapes]
        self.v = [_zeros((n_slots + 1, s.n_heads, s.v_dim), dtype, device) for s in shapes]

    @staticmethod
    def bytes_per_token(shapes: tuple[LayerShape, ...], dtype: torch.dtype) -> int:
        """Bytes of one slot over all layers."""
        return sum(s.n_values for s in shapes) * dtype.itemsize


def _zeros(shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros, as padding reads slot 0, and 0 x NaN is NaN. On a CPU they take memory only where they are written."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    n_bytes = math.prod(shape) * dtype.itemsize
    raw = np.zeros(n_bytes + _ALIGNED, np.uint8)  # of pages that the system maps when they are first written
    start = -raw.ctypes.data % _ALIGNED
    return torch.from_numpy(raw[start : start + n_bytes]).view(dtype).view(shape)
