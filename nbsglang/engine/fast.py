"""The fast path of a CUDA model: fused layers, paged attention, captured decode steps.

Not here: which models have one (`fused.py`), the path of all others (`model.py`).
"""

from __future__ import annotations

import warnings

import torch

from nbsglang.engine.attend import Probe
from nbsglang.engine.batch import Batch
from nbsglang.engine.fused import FusedModel, fused
from nbsglang.engine.graphs import Graphs
from nbsglang.engine.pool import KVPool
from nbsglang.kernels.paged import Heads, PagedAttention, can_page

_MOST_ROOM = 1 << 24  # slots that a captured step can name


class FastPath:
    """Runs flat batches of one module; made by `fast_path`. `most` rows of a decode step are captured, 0 for none."""

    def __init__(self, model: FusedModel, heads: Heads, dtype: torch.dtype, device: torch.device, most: int) -> None:
        self._model = model
        self._device = device
        self._most = most
        self._paged = PagedAttention(heads, dtype, device)
        self._graphs: Graphs | None = None
        self._pool: KVPool | None = None

    @property
    def holds(self) -> bool:
        """Whether it still computes what the module computes."""
        return self._model.holds

    def run(self, batch: Batch, pool: KVPool) -> torch.Tensor:
        """One forward pass; float32 logits [wanted, vocabulary], to be used before the next one."""
        assert batch.reads is not None
        if pool is not self._pool:
            self._pool = pool
            room = min(self._most * len(pool.k[0]), _MOST_ROOM)  # contexts that share slots name them once each
            self._graphs = Graphs(self._model, pool, self._paged, self._most, room) if self._most else None
        is_decode = len(batch.reads.rows) - 1 == len(batch.ids)
        if self._graphs is not None and is_decode and (logits := self._graphs.run(batch)) is not None:
            return logits
        self._paged.plan(batch.reads)
        ids, positions, slots, wanted = (
            torch.from_numpy(part).to(self._device, non_blocking=True)
            for part in (batch.ids, batch.positions, batch.slots, batch.wanted)
        )
        return self._model.forward(ids, positions, slots, wanted, pool, self._paged.run)

    def between_steps(self) -> None:
        """Capture a batch size that was missed. One that cannot be captured ends all captures; steps go on without."""
        try:
            if self._graphs is not None:
                self._graphs.capture_wanted()
        except RuntimeError as error:  # out of memory, or what a kernel does not allow in a graph
            self._graphs = None
            self._most = 0
            warnings.warn(f"decode steps run without CUDA graphs from here on: {error}", RuntimeWarning, stacklevel=2)

    def release(self) -> None:
        """Give the module its weights back, and drop what was captured. It is of no use afterwards."""
        self._graphs = self._pool = None
        del self._paged
        self._model.release()
        torch._C._cuda_clearCublasWorkspaces()  # 32 MB for each stream that ever captured


def fast_path(module: torch.nn.Module, probe: Probe, most: int) -> FastPath | None:
    """The module's fast path, or None if it has none: it is of another shape, elsewhere, or FlashInfer is missing."""
    shapes = {shape for _, shape in probe.shapes}
    if len(shapes) != 1 or len(probe.forms) != 1:
        return None
    (shape,), ((n_query, scale, plain),) = shapes, probe.forms
    parameter = next(module.parameters())
    if not plain or shape.k_dim != shape.v_dim or not can_page(parameter, shape.k_dim):
        return None
    model = fused(module)
    if model is None:
        return None
    heads = Heads(n_query, shape.n_heads, shape.k_dim, scale)
    return FastPath(model, heads, parameter.dtype, parameter.device, most)
