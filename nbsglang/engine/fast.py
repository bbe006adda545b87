"""The fast path of a CUDA model: fused layers, attention by spans, captured decode steps.

Not here: which models have one (`fused.py`), the path of all others (`model.py`).
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

import torch

from nbsglang.engine.attend import Probe, has_spans
from nbsglang.engine.batch import Batch, Packing
from nbsglang.engine.draws import with_drawn
from nbsglang.engine.fused import FusedModel, fused
from nbsglang.engine.host_copy import to_device
from nbsglang.engine.pool import KVPool
from nbsglang.kernels.paged import PagedAttention, paged_attention
from nbsglang.kernels.spans import SpanForm, plan_spans

if TYPE_CHECKING:
    from nbsglang.engine.graphs import Graphs, Kind
    from nbsglang.kernels.spans_runner import SpanAttention

_N_LONG = 256  # tokens of a chunk from which FlashInfer's tiles are better filled
_WARMED = tuple(range(2560, 512, -256))  # rows of steps with prompts, which cuBLAS has different kernels for
_N_CAPTURED = 512  # rows of a step up to which a captured one is shorter: the host takes long to launch another


class FastPath:
    """Runs batches of one module; made by `fast_path`. `most` rows of a decode step are captured, 0 for none."""

    def __init__(
        self, model: FusedModel, form: SpanForm, spans: SpanAttention, paged: PagedAttention | None, most: int
    ) -> None:
        self._model = model
        self._form = form
        self._spans = spans
        self._paged = paged
        self._most = most
        self._unplanned: Batch | None = None  # the step's, until its first layer attends
        self._n_short = 0  # rows of the step that are read as spans
        self._cold = list(_WARMED)
        self._graphs: Graphs | None = None
        self._pool: KVPool | None = None

    @property
    def holds(self) -> bool:
        """Whether it still computes what the module computes."""
        return self._model.holds

    @property
    def packing(self) -> Packing:
        """See `pack`."""
        n_long = _N_LONG if self._paged is not None else sys.maxsize
        return Packing(n_long, min(self._most, _N_CAPTURED))

    def run(self, batch: Batch, pool: KVPool, drawn: torch.Tensor | None = None) -> torch.Tensor:
        """One forward pass; logits [wanted, vocabulary], to be used before the next one. `drawn`: see `Model.run`."""
        assert batch.spans is not None
        if pool is not self._pool:
            self._pool = pool
            self._graphs = self._new_graphs(pool) if self._most else None
        device = pool.k[0].device
        wanted = to_device(batch.wanted, device) if len(batch.wanted) < len(batch.ids) else None
        ends = self._graphs.run(batch, drawn) if self._graphs is not None else None
        if ends is None:
            return self._model.logits(*self._run_eager(batch, pool, drawn, wanted))
        rows, hidden = ends if wanted is None else (part[wanted] for part in ends)
        return self._model.logits(rows, hidden)

    def _new_graphs(self, pool: KVPool) -> Graphs:
        from nbsglang.engine.graphs import Graphs  # which needs Triton

        return Graphs(self._model, pool, self._form, self._most)

    def _run_eager(
        self, batch: Batch, pool: KVPool, drawn: torch.Tensor | None, wanted: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert batch.spans is not None
        device = pool.k[0].device
        self._unplanned = batch
        ids, positions, slots = (to_device(part, device) for part in (batch.ids, batch.positions, batch.slots))
        if batch.drawn is not None:
            assert drawn is not None
            ids = with_drawn(ids, to_device(batch.drawn, device), drawn)
        return self._model.forward(ids, positions, slots, pool, self._attend, wanted)

    def _plan(self, batch: Batch) -> None:
        assert batch.spans is not None
        self._n_short = len(batch.spans.positions)
        if self._n_short:
            self._spans.plan(plan_spans(batch.spans, self._spans.cut, self._form.window))
        if batch.reads is not None:
            assert self._paged is not None
            self._paged.plan(batch.reads)

    def _attend(
        self, query: torch.Tensor, new: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor
    ) -> torch.Tensor:
        if self._unplanned is not None:  # meanwhile the device has the first layer's product to do
            self._plan(self._unplanned)
            self._unplanned = None
        out = query.new_empty(len(query), self._form.n_heads, self._form.v_dim)
        n = self._n_short
        if n:
            self._spans.run(query[:n], k_pool, v_pool, out=out[:n])
        if n < len(query):
            assert self._paged is not None
            self._paged.run(query[n:], new[n:], k_pool, v_pool, out[n:])
        return out

    def between_steps(self) -> None:
        """Capture a batch size that was missed."""
        if self._graphs is not None and self._graphs.wanted is not None:
            self._capture(self._graphs.wanted)

    @property
    def has_chores(self) -> bool:
        """Whether sizes of steps are left to warm or to capture; none before the first step, which brings the pool."""
        return self._pool is not None and self.holds and (bool(self._cold) or self._missing is not None)

    def do_chore(self) -> None:
        """Warm the largest size of steps that is left, then capture the smallest."""
        if not self.holds:  # the module was changed meanwhile; the next work finds out what became of it
            return
        if self._cold and self._pool is not None:
            self._warm(self._cold.pop(0), self._pool)
        elif self._missing is not None:
            self._capture(self._missing)

    @property
    def _missing(self) -> Kind | None:
        return self._graphs.missing if self._graphs is not None else None

    def _warm(self, n: int, pool: KVPool) -> None:
        """Run `n` rows on slot 0 without attention.

        A kernel is loaded at its first use, which waits for the device: decoding texts would stand still for a step.
        """
        nothing = torch.zeros(n, dtype=torch.int64, device=pool.k[0].device)
        try:
            self._model.forward(nothing, nothing, nothing, pool, self._no_attention)
        except RuntimeError:  # out of memory, or a module that was moved; steps will say so to their requests
            self._cold.clear()

    def _no_attention(
        self, query: torch.Tensor, new: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor
    ) -> torch.Tensor:
        return query.new_zeros(len(query), self._form.n_heads, self._form.v_dim)

    def _capture(self, kind: Kind) -> None:
        """One that cannot be captured ends all captures; steps go on without."""
        assert self._graphs is not None
        try:
            self._graphs.capture(kind)
        except RuntimeError as error:  # out of memory, or what a kernel does not allow in a graph
            self._graphs = None
            self._most = 0
            warnings.warn(f"decode steps run without CUDA graphs from here on: {error}", RuntimeWarning, stacklevel=2)

    def release(self) -> None:
        """Give the module its weights back, and drop what was captured. It is of no use afterwards."""
        self._graphs = self._pool = self._paged = None
        del self._spans
        self._model.release()
        torch._C._cuda_clearCublasWorkspaces()  # 32 MB for each stream that ever captured


def fast_path(module: torch.nn.Module, probe: Probe, most: int) -> FastPath | None:
    """The module's fast path; None where it is of another shape, or not on a CUDA device with Triton."""
    shapes = {shape for _, shape in probe.shapes}
    if len(shapes) != 1 or len(probe.forms) != 1:
        return None
    (shape,), ((n_query, scale, window, softcap, has_sinks),) = shapes, probe.forms
    parameter = next(module.parameters())
    model = fused(module) if has_spans(parameter.device) and not has_sinks else None
    if model is None:
        return None
    from nbsglang.kernels.spans_runner import SpanAttention

    form = SpanForm(n_query, shape.n_heads, shape.k_dim, shape.v_dim, scale, window, softcap)
    spans = SpanAttention(form, parameter.dtype, parameter.device)
    paged = paged_attention(form, parameter.dtype, parameter.device)
    return FastPath(model, form, spans, paged, most)
