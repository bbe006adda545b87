"""The tensors of the KV cache: for each layer K and V apart, `[slots, kv_heads, head_dim]`.

Not here: which slots are free (`slots.py`) or cached (`radix.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


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
        def make(n_heads: int, dim: int) -> torch.Tensor:
            # zeros, not empty: padding reads slot 0, and 0 x NaN is NaN
            return torch.zeros(n_slots + 1, n_heads, dim, dtype=dtype, device=device)

        self.k = [make(s.n_heads, s.k_dim) for s in shapes]
        self.v = [make(s.n_heads, s.v_dim) for s in shapes]

    @staticmethod
    def bytes_per_token(shapes: tuple[LayerShape, ...], dtype: torch.dtype) -> int:
        """Bytes of one slot over all layers."""
        return sum(s.n_values for s in shapes) * dtype.itemsize
