"""Attention of long chunks over each request's own list of slots, by FlashInfer: the pool is a paged cache with pages
of one slot. Where all of a step's requests begin with their chunk, what they read are the step's own keys, side by
side, which is faster by a fifth.

What every request reads is planned once for a step; each layer then runs by the plan.

Not here: what requests share, short chunks and decodes (`spans.py`), and what FlashInfer has no form for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nbsglang.kernels.flash import flashinfer, prefill_backend
from nbsglang.kernels.spans import Reads, SpanForm

_WORKSPACE = 128 << 20  # bytes, for partial results


def paged_attention(form: SpanForm, dtype: torch.dtype, device: torch.device) -> PagedAttention | None:
    """FlashInfer's attention of this form, where it has one that need not be compiled first."""
    is_plain = form.window is None and form.softcap is None and form.k_dim == form.v_dim
    backend = prefill_backend(dtype, form.k_dim, device) if is_plain else None
    return PagedAttention(form, dtype, device, backend) if backend is not None else None


class PagedAttention:
    """Plans and runs, one step at a time; made by `paged_attention`."""

    def __init__(self, form: SpanForm, dtype: torch.dtype, device: torch.device, backend: str) -> None:
        self._form = form
        self._dtype = dtype
        self._device = device
        self._is_fresh = False  # the planned step reads its own rows alone
        workspace = torch.zeros(_WORKSPACE, dtype=torch.uint8, device=device)  # of the one that is planned
        maker: Any = flashinfer()
        self._paged = maker.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD", backend=backend)
        self._ragged = maker.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD", backend=backend)
        self._staged: torch.cuda.Event = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def plan(self, reads: Reads) -> None:
        """Get ready for the rows of a step; a row sees its request's context up to itself."""
        form = self._form
        self._is_fresh = np.array_equal(reads.rows, reads.starts)
        rows, starts, slots = (torch.from_numpy(part).pin_memory() for part in reads)
        options = {"causal": True, "sm_scale": form.scale, "q_data_type": self._dtype}
        self._staged.synchronize()  # the last plan is in pinned memory, from where the device fetches it
        if self._is_fresh:
            self._ragged.plan(rows, starts, form.n_heads, form.n_kv, form.k_dim, **options)
        else:
            there = slots.to(self._device, non_blocking=True)
            ones = torch.ones(len(rows) - 1, dtype=torch.int32, pin_memory=True)
            self._paged.plan(rows, starts, there, ones, form.n_heads, form.n_kv, form.k_dim, 1, **options)
        self._staged.record(torch.cuda.current_stream(self._device))

    def run(
        self, query: torch.Tensor, new: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor, out: torch.Tensor
    ) -> None:
        """One layer's `query` [rows, heads, dim] over its pools [slots, kv, dim], into `out` of the query's shape.

        `new` [rows, (heads + 2 * kv) * dim] has the keys and values of these rows, which are in the pools already.
        """
        if self._is_fresh:
            n_kv = self._form.n_kv
            heads = new.view(len(new), -1, self._form.k_dim)
            self._ragged.run(query, heads[:, -2 * n_kv : -n_kv], heads[:, -n_kv:], out=out)
        else:
            self._paged.run(query, (k_pool[:, None], v_pool[:, None]), out=out)
