"""Steps of few rows captured in CUDA graphs: one launch instead of hundreds, for a ladder of sizes.

Each size comes in two kinds: where all spans are of few rows, and where some are of many, which takes another launch in
each layer. One is captured after the second step that would have used it has delivered its tokens, or while nobody asks
for anything; one at a time. Rows that fill up a size write to slot 0, which is nobody's, and read nothing.

Not here: the step itself (`fused.py`), attention (`kernels/spans.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import NamedTuple

import numpy as np
import torch

from nbsglang.engine.batch import Batch
from nbsglang.engine.draws import with_drawn
from nbsglang.engine.fused import FusedModel
from nbsglang.engine.host_copy import to_device
from nbsglang.engine.pool import KVPool
from nbsglang.kernels.spans import Cut, Plan, Reads, SpanForm, plan_spans, spans_of_reads
from nbsglang.kernels.spans_runner import Room, SpanAttention, SpanBuffers

_SPARE_ROWS = 16  # or a quarter: so many rows more may be computed for nothing rather than capture another size
_N_WARM = 1  # steps before a capture, in which kernels are loaded


def ladder(most: int) -> list[int]:
    """Batch sizes up to `most`: close together where a step is short."""
    sizes = [1, 2, 4, *range(8, 64, 8), *range(64, 256, 16), *range(256, 1025, 64)]
    return sorted({*(n for n in sizes if n < most), most})


class Kind(NamedTuple):
    """What a graph is for: rows, and whether there are spans of many."""

    n_rows: int
    wide: bool


def room_of(kind: Kind, cut: Cut, n_keys: int) -> Room:
    """Room for nearly every step of a kind. A class of items has as many as fill the device, and one for each block."""
    n, filled = kind.n_rows, -(-cut.n_programs // cut.n_kv)
    few = n + filled + 8 + (n // 2 if kind.wide else 0)
    many = n // 4 + filled + 8 if kind.wide else 0
    entries = few * min(cut.lines[0], 2) + many * cut.lines[-1]
    return Room(n, (few, many), entries, entries, n_keys)


class _Captured:
    """One kind: its graph, and the buffers that it reads and writes."""

    def __init__(self, n_rows: int, attention: SpanAttention, device: torch.device) -> None:
        self.n_rows = n_rows
        self.attention = attention
        self.inputs = torch.zeros(3, n_rows, dtype=torch.int64, device=device)  # ids, positions, slots
        self.graph = torch.cuda.CUDAGraph()
        self.ends: tuple[torch.Tensor, torch.Tensor] | None = None

    def attend(
        self, query: torch.Tensor, new: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor
    ) -> torch.Tensor:
        """One layer's; see `FusedModel.forward`."""
        return self.attention.run(query, k_pool, v_pool)

    def load(self, batch: Batch, plan: Plan, drawn: torch.Tensor | None) -> None:
        """Put a batch into the buffers, filled up with rows on slot 0."""
        n = len(batch.ids)
        rows = np.zeros((4, self.n_rows), np.int64)
        rows[:3, :n] = batch.ids, batch.positions, batch.slots
        if batch.drawn is None:
            self.inputs.copy_(to_device(rows[:3], self.inputs.device))
        else:
            assert drawn is not None
            rows[3] = -1
            rows[3, :n] = batch.drawn
            there = to_device(rows, self.inputs.device)
            self.inputs.copy_(there[:3])
            self.inputs[0] = with_drawn(there[0], there[3], drawn)
        self.attention.plan(plan)


class Graphs:
    """The captured kinds of one engine."""

    def __init__(self, model: FusedModel, pool: KVPool, form: SpanForm, most: int) -> None:
        self._model = model
        self._pool = pool
        self._form = form
        self._sizes = ladder(most)
        self._captured: dict[Kind, _Captured] = {}
        self._n_missed: Counter[Kind] = Counter()
        self.wanted: Kind | None = None  # what the last step lacked, and another before it
        device, dtype = pool.k[0].device, pool.k[0].dtype
        self._cut = SpanAttention(form, dtype, device).cut
        self._n_keys = len(pool.k[0]) + 64 * most  # short runs that rows share are named once for each
        self._buffers = SpanBuffers(room_of(Kind(most, True), self._cut, self._n_keys), form, torch.float32, device)
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._memory = torch.cuda.graph_pool_handle()

    def run(self, batch: Batch, drawn: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor] | None:
        """A step by its graph: what `FusedModel.forward` returns; None where there is none for it.

        It is overwritten by the next step.
        """
        n = len(batch.ids)
        if batch.spans is None or batch.reads is not None or n > self._sizes[-1]:
            return None
        plan = plan_spans(batch.spans, self._cut, self._form.window)
        captured = self._fitting(n, plan)
        if captured is None:
            return None
        captured.load(batch, plan, drawn)
        captured.graph.replay()
        assert captured.ends is not None
        rows, hidden = captured.ends
        return rows[:n], hidden[:n]

    def _fitting(self, n: int, plan: Plan) -> _Captured | None:
        """The smallest captured kind in which the step has room, if not much larger than the step.

        Where there is none the step's own kind has been missed; at the second time it is wanted.
        """
        wide = bool(plan.classes[1] < plan.classes[-1])
        start = bisect_left(self._sizes, n)
        for size in self._sizes[start:]:
            if size > n + max(_SPARE_ROWS, n // 4):
                break
            for kind in (Kind(size, wide), Kind(size, True)):
                captured = self._captured.get(kind)
                if captured is not None and captured.attention.has_room(plan):
                    return captured
        kind = Kind(self._sizes[start], wide)
        if kind not in self._captured:
            self._n_missed[kind] += 1
            self.wanted = kind if self._n_missed[kind] > 1 else None
        return None

    @property
    def missing(self) -> Kind | None:
        """The smallest kind that is not captured."""
        kinds = (Kind(n, wide) for wide in (False, True) for n in self._sizes)
        return next((kind for kind in kinds if kind not in self._captured), None)

    def capture(self, kind: Kind) -> None:
        """Capture one kind."""
        self.wanted = None
        pool, device = self._pool, self._pool.k[0].device
        room = room_of(kind, self._cut, self._n_keys)
        attention = SpanAttention(self._form, pool.k[0].dtype, device, room, buffers=self._buffers)
        made = _Captured(kind.n_rows, attention, device)
        nothing = np.zeros(1, np.int32)
        attention.plan(plan_spans(spans_of_reads(Reads(nothing, nothing, nothing[:0])), self._cut, self._form.window))
        self._stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(self._stream):
            for _ in range(_N_WARM):
                self._step(made)
        self._stream.synchronize()
        with torch.cuda.graph(made.graph, pool=self._memory, stream=self._stream):
            made.ends = self._step(made)
        torch.cuda.current_stream(device).wait_stream(self._stream)
        self._captured[kind] = made

    def _step(self, made: _Captured) -> tuple[torch.Tensor, torch.Tensor]:
        ids, positions, slots = made.inputs
        return self._model.forward(ids, positions, slots, self._pool, made.attend)
