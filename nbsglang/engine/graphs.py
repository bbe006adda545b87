"""Decode steps captured in CUDA graphs: one launch instead of hundreds, for a ladder of batch sizes.

A size is captured after a step that would have used it, one at a time, so that no first token waits for a capture.
Rows that fill up a size read and write slot 0, which is nobody's.

Not here: the step itself (`fused.py`), attention's plan (`kernels/paged.py`).
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import torch

from nbsglang.engine.batch import Batch
from nbsglang.engine.fused import FusedModel
from nbsglang.engine.pool import KVPool
from nbsglang.kernels.paged import GraphAttention, Ints, PagedAttention, Reads

_N_WARM = 2  # steps before a capture, in which kernels are loaded and tuned


def ladder(most: int) -> list[int]:
    """Batch sizes up to `most`: close together where a step is short."""
    sizes = [1, 2, 4, *range(8, 64, 8), *range(64, 256, 16), *range(256, 1025, 64)]
    return sorted({*(n for n in sizes if n < most), most})


class _Room:
    """Where the slots of all contexts stand for attention, on the device, and pinned on the host on their way there."""

    def __init__(self, n_slots: int, device: torch.device) -> None:
        self.there = torch.zeros(n_slots, dtype=torch.int32, device=device)
        self._here = torch.zeros(n_slots, dtype=torch.int32).pin_memory()

    def put(self, slots: Ints) -> None:
        """Send them; the step before has ended, so nothing reads the old ones any more."""
        n = len(slots)
        self._here.numpy()[:n] = slots
        self.there[:n].copy_(self._here[:n], non_blocking=True)


class _Captured:
    """One size: its graph, and the buffers that it reads and writes."""

    def __init__(self, n_rows: int, attention: GraphAttention, room: _Room, device: torch.device) -> None:
        self._room = room
        self.n_rows = n_rows
        self.attention = attention
        self.inputs = torch.zeros(3, n_rows, dtype=torch.int64, device=device)  # ids, positions, slots
        self.staging = torch.zeros(3, n_rows, dtype=torch.int64).pin_memory()
        self.graph = torch.cuda.CUDAGraph()
        self.logits: torch.Tensor | None = None

    def load(self, batch: Batch) -> None:
        """Put a batch into the buffers, filled up with rows on slot 0."""
        n = len(batch.ids)
        host = self.staging.numpy()
        host[:, n:] = 0
        host[0, :n], host[1, :n], host[2, :n] = batch.ids, batch.positions, batch.slots
        self.inputs.copy_(self.staging, non_blocking=True)
        assert batch.reads is not None
        self.plan(batch.reads)

    def plan(self, reads: Reads) -> None:
        """Tell attention what the rows read."""
        filled = _filled(reads, self.n_rows)
        self._room.put(filled.slots)
        self.attention.plan(filled)


class Graphs:
    """The captured sizes of one engine."""

    def __init__(self, model: FusedModel, pool: KVPool, paged: PagedAttention, most: int, room: int) -> None:
        self._model = model
        self._pool = pool
        self._paged = paged
        self._sizes = ladder(most)
        self._captured: dict[int, _Captured] = {}
        self._wanted: int | None = None
        device = pool.k[0].device
        self._room = _Room(room, device)
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._memory = torch.cuda.graph_pool_handle()

    def run(self, batch: Batch) -> torch.Tensor | None:
        """Logits of a decode step by its graph; None where there is none yet. They are overwritten by the next step."""
        n = len(batch.ids)
        assert batch.reads is not None
        if n > self._sizes[-1] or n != len(batch.wanted) or len(batch.reads.slots) + n > len(self._room.there):
            return None
        size = self._sizes[bisect_left(self._sizes, n)]
        captured = self._captured.get(size)
        if captured is None:
            self._wanted = size
            return None
        captured.load(batch)
        captured.graph.replay()
        assert captured.logits is not None
        return captured.logits[:n]

    def capture_wanted(self) -> None:
        """Capture the size that the last step lacked, if it lacked one."""
        if self._wanted is None:
            return
        size, self._wanted = self._wanted, None
        device = self._pool.k[0].device
        made = _Captured(size, self._paged.graph(size, self._room.there), self._room, device)
        nothing = np.zeros(1, np.int32)
        made.plan(Reads(nothing, nothing, nothing[:0]))
        self._stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._stream):
            for _ in range(_N_WARM):
                self._step(made)
        self._stream.synchronize()
        with torch.cuda.graph(made.graph, pool=self._memory, stream=self._stream):
            made.logits = self._step(made)
        torch.cuda.current_stream(device).wait_stream(self._stream)
        self._captured[size] = made

    def forget(self) -> None:
        """Drop all: what they point to is gone, or about to go."""
        self._captured.clear()
        self._wanted = None

    def _step(self, made: _Captured) -> torch.Tensor:
        ids, positions, slots = made.inputs
        return self._model.forward(ids, positions, slots, None, self._pool, made.attention.run)


def _filled(reads: Reads, n_rows: int) -> Reads:
    """The reads of a decode step with rows on slot 0 added: each of these reads that one slot."""
    n = len(reads.starts) - 1
    more = np.arange(1, n_rows - n + 1, dtype=np.int32)
    starts = np.concatenate([reads.starts, reads.starts[-1] + more])
    slots = np.concatenate([reads.slots[: reads.starts[-1]], np.zeros(n_rows - n, np.int32)])
    return Reads(np.arange(n_rows + 1, dtype=np.int32), starts.astype(np.int32), slots.astype(np.int32))
