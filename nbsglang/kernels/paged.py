"""Attention over each request's own list of slots, by FlashInfer: the pool is a paged cache with pages of one slot.

What every request reads is planned once for a step, outside of any CUDA graph; each layer then runs by the plan.

Not here: attention over runs that requests share (`attention.py`, which also does what FlashInfer has no form for).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from nbsglang.kernels.flash import flash_for, flashinfer

Ints = npt.NDArray[np.int32]
_WORKSPACE = 512 << 20  # bytes, for partial results of long contexts: 293 MB were needed for 896 rows


class Heads(NamedTuple):
    """What all layers share: query heads, key and value heads, their width, the factor of the scores."""

    n_query: int
    n_kv: int
    dim: int
    scale: float


class Reads(NamedTuple):
    """What the requests of a step read, on the host: `slots` int32 of all contexts, one after the other, of which
    request i has those from `starts[i]` to `starts[i + 1]`; its rows are those from `rows[i]` to `rows[i + 1]`."""

    rows: Ints
    starts: Ints
    slots: Ints


def can_page(sample: torch.Tensor, dim: int) -> bool:
    """Whether FlashInfer has a form for keys like `sample` with heads of this width."""
    return flash_for(sample) is not None and dim in (64, 128, 256)


class PagedAttention:
    """Plans and runs; one step at a time. `graph` makes one for decode steps of a fixed number of rows."""

    def __init__(self, heads: Heads, dtype: torch.dtype, device: torch.device) -> None:
        self.heads = heads
        self._dtype = dtype
        self._device = device
        self._workspace = torch.zeros(_WORKSPACE, dtype=torch.uint8, device=device)
        self._prefill = flashinfer().BatchPrefillWithPagedKVCacheWrapper(self._workspace, "NHD")  # type: ignore[union-attr]
        self._decode = self._decoder()
        self._planned: Any = None

    def plan(self, reads: Reads) -> None:
        """Get ready for the rows of a step; a row sees its request's context up to itself."""
        if len(reads.rows) - 1 == reads.rows[-1]:  # one row each
            self._planned = self._decode
            slots = torch.from_numpy(reads.slots).to(self._device, non_blocking=True)
            _plan_decode(self._decode, reads.starts, slots, self.heads, self._dtype)
            return
        self._planned = self._prefill
        heads, n = self.heads, len(reads.rows) - 1
        rows, starts, slots = (torch.from_numpy(part) for part in reads)
        ones = torch.ones(n, dtype=torch.int32)
        self._prefill.plan(
            rows,
            starts,
            slots.to(self._device, non_blocking=True),
            ones,
            heads.n_query,
            heads.n_kv,
            heads.dim,
            1,
            causal=True,
            sm_scale=heads.scale,
            q_data_type=self._dtype,
        )

    def run(self, query: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor) -> torch.Tensor:
        """One layer's `query` [rows, heads, dim] over its pools [slots, kv, dim], as planned; the same shape."""
        out: torch.Tensor = self._planned.run(query, (k_pool[:, None], v_pool[:, None]))
        return out

    def graph(self, n_rows: int, room: torch.Tensor) -> GraphAttention:
        """For decode steps of `n_rows` rows in a CUDA graph; `room` int32 holds the slots of all contexts."""
        return GraphAttention(self._decoder(n_rows, room), room, self.heads, self._dtype)

    def _decoder(self, n_rows: int | None = None, room: torch.Tensor | None = None) -> Any:
        grouped = self.heads.n_query // self.heads.n_kv >= 4  # then tensor cores pay
        fixed: dict[str, Any] = {}
        if n_rows is not None:
            fixed = {
                "use_cuda_graph": True,
                "paged_kv_indptr_buffer": torch.zeros(n_rows + 1, dtype=torch.int32, device=self._device),
                "paged_kv_indices_buffer": room,
                "paged_kv_last_page_len_buffer": torch.ones(n_rows, dtype=torch.int32, device=self._device),
            }
        maker = flashinfer().BatchDecodeWithPagedKVCacheWrapper  # type: ignore[union-attr]
        return maker(self._workspace, "NHD", use_tensor_cores=grouped, **fixed)


class GraphAttention:
    """Attention of captured decode steps: `plan` before each replay, `run` while capturing."""

    def __init__(self, wrapper: Any, room: torch.Tensor, heads: Heads, dtype: torch.dtype) -> None:
        self._wrapper = wrapper
        self._room = room
        self._heads = heads
        self._dtype = dtype

    def plan(self, reads: Reads) -> None:
        """Get ready for a replay with these contexts, one row each. The slots must be in `room` already."""
        _plan_decode(self._wrapper, reads.starts, self._room[: len(reads.slots)], self._heads, self._dtype)

    def run(self, query: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor) -> torch.Tensor:
        """See `PagedAttention.run`."""
        out: torch.Tensor = self._wrapper.run(query, (k_pool[:, None], v_pool[:, None]))
        return out


def _plan_decode(wrapper: Any, starts_at: Ints, slots: torch.Tensor, heads: Heads, dtype: torch.dtype) -> None:
    starts = torch.from_numpy(starts_at)
    ones = torch.ones(len(starts_at) - 1, dtype=torch.int32)
    wrapper.plan(starts, slots, ones, heads.n_query, heads.n_kv, heads.dim, 1, q_data_type=dtype, sm_scale=heads.scale)
