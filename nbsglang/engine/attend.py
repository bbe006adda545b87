"""The attention function that transformers calls in each layer, and what it finds in one step.

The model is called with `forward=` as a keyword; transformers hands it down to `attend`, so a step needs
no global context. A `Forward` serves a batch; a `Probe` only looks at what a model sends.

Not here: the arithmetic (`kernels/attention.py`) and the model (`model.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch

from nbsglang.engine.batch import Batch, Work
from nbsglang.engine.host_copy import to_device
from nbsglang.engine.pool import KVPool, LayerShape
from nbsglang.kernels.attention import HIDDEN, Part, attention
from nbsglang.kernels.spans import SpanForm, plan_spans
from nbsglang.kernels.spans_torch import TorchSpans

if TYPE_CHECKING:
    from nbsglang.kernels.spans_runner import SpanAttention

NAME = "nbsglang"  # of our function in transformers' AttentionInterface


class Form(NamedTuple):
    """How a layer attends: factor of the scores, window in tokens, bound of the scores, scores without a value."""

    scale: float
    window: int | None = None
    softcap: float | None = None
    sinks: torch.Tensor | None = None


class Attending(Protocol):
    """What travels as `forward=`."""

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        form: Form,
    ) -> torch.Tensor:
        """Attend in one layer: [heads, rows, dim] each; returns [heads, rows, v_dim]."""
        ...


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    forward: Attending | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """The function registered with transformers: [1, heads, rows, dim] in, [1, rows, heads, v_dim] out."""
    if forward is None:
        raise RuntimeError(f"{type(module).__name__} drops keyword arguments, so the KV cache cannot reach it")
    scale = scaling if scaling is not None else 1.0 / math.sqrt(query.shape[-1])
    layer = int(getattr(module, "layer_idx", -1))
    out = forward.attend(layer, query[0], key[0], value[0], Form(scale, sliding_window, softcap, s_aux))
    return out.transpose(0, 1)[None].contiguous(), None


class Probe:
    """Collects the shape of each layer's keys and values; attends to the own token only."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, LayerShape]] = []
        self.forms: set[tuple[int, float, int | None, float | None, bool]] = set()  # heads; as Form; if there are sinks

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        form: Form,
    ) -> torch.Tensor:
        """Note the shapes; the result has the right shape and no meaning."""
        self.forms.add((query.shape[0], form.scale, form.window, form.softcap, form.sinks is not None))
        self.shapes.append((layer, LayerShape(key.shape[0], key.shape[2], value.shape[2])))
        return value.repeat_interleave(query.shape[0] // value.shape[0], dim=0)


class Abandoned(Exception):
    """The pass was left between two layers, since nobody wants its results any more."""


class Forward:
    """One batch on the device: writes each layer's new keys and values to the pool, then attends.

    `wanted` is asked before each layer; when it says no, the pass ends with Abandoned. `kept` are the attentions of
    earlier steps of this model, whose buffers are used again.
    """

    def __init__(
        self,
        batch: Batch,
        pool: KVPool,
        wanted: Callable[[], bool] = lambda: True,
        kept: dict[SpanForm, SpanAttention | TorchSpans] | None = None,
    ) -> None:
        self._wanted = wanted
        self._pool = pool
        self._batch = batch
        device = pool.k[0].device
        self._slots = to_device(batch.slots, device)
        self._device = device
        self._parts: dict[int | None, list[Part]] = {}  # by window: layers of one kind share their masks
        self._kept = kept if kept is not None else {}
        self._planned: set[SpanForm] = set()

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        form: Form,
    ) -> torch.Tensor:
        """Store and attend; see `Attending`."""
        if not self._wanted():
            raise Abandoned
        k_pool, v_pool = self._pool.k[layer], self._pool.v[layer]
        k_pool.index_copy_(0, self._slots, key.transpose(0, 1).to(k_pool.dtype))
        v_pool.index_copy_(0, self._slots, value.transpose(0, 1).to(v_pool.dtype))
        if self._batch.spans is not None:
            return self._by_spans(query, k_pool, v_pool, form)
        if form.window not in self._parts:
            self._parts[form.window] = [self._part(item, form.window) for item in self._batch.work]
        parts, n_levels = self._parts[form.window], self._batch.n_levels
        return attention(query, k_pool, v_pool, parts, n_levels, form.scale, form.softcap, form.sinks)

    def _by_spans(self, query: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor, form: Form) -> torch.Tensor:
        assert self._batch.spans is not None
        dims = k_pool.shape[1], k_pool.shape[2], v_pool.shape[2]
        shape = SpanForm(query.shape[0], *dims, form.scale, form.window, form.softcap)
        if shape not in self._kept:
            self._kept[shape] = span_attention(shape, k_pool.dtype, self._device)
        spans = self._kept[shape]
        if shape not in self._planned:
            self._planned.add(shape)
            spans.plan(plan_spans(self._batch.spans, spans.cut, form.window))
        rows = query.transpose(0, 1).to(k_pool.dtype).contiguous()  # [rows, heads, dim]
        return spans.run(rows, k_pool, v_pool, form.sinks).transpose(0, 1).to(query.dtype)

    def _part(self, work: Work, window: int | None) -> Part:
        slots = work.slots
        run = slice(int(slots[0, 0]), int(slots[0, 0]) + slots.shape[1])
        is_run = len(slots) == 1 and bool((slots[0] == np.arange(run.start, run.stop)).all())
        sees = work.sees if self._all_in_window(work, window) else "some"
        return Part(
            rows=torch.from_numpy(work.rows.reshape(-1).astype(np.int64)).to(self._device),
            slots=run if is_run else torch.from_numpy(slots.reshape(-1).astype(np.int64)).to(self._device),
            n_lines=len(slots),
            level=work.level,
            mask=self._mask(work, window) if sees == "some" else None,
            causal=sees == "own",
        )

    def _all_in_window(self, work: Work, window: int | None) -> bool:
        if window is None:
            return True
        queries = self._batch.positions[work.rows]  # [b, q]
        return bool((queries.max(1) - work.positions.min(1)).max() < window)

    def _mask(self, work: Work, window: int | None) -> torch.Tensor:
        """Additive mask [b, 1, q, k] in the pool's dtype."""
        queries = self._batch.positions[work.rows][:, :, None]  # [b, q, 1]
        keys = work.positions[:, None, :]  # [b, 1, k]
        seen = keys <= queries
        if window is not None:
            seen &= keys > queries - window
        mask = np.where(seen, np.float32(0), np.float32(HIDDEN))[:, None]
        return torch.from_numpy(mask).to(self._device, self._pool.k[0].dtype)


def has_spans(device: torch.device) -> bool:
    """Whether attention by spans runs there: it is for CUDA, and torch comes without Triton on some systems."""
    return device.type == "cuda" and find_spec("triton") is not None


def span_attention(form: SpanForm, dtype: torch.dtype, device: torch.device) -> SpanAttention | TorchSpans:
    """Attention by spans: Triton's form, or on a CPU torch's, which is slow."""
    if device.type != "cuda":
        return TorchSpans(form)
    from nbsglang.kernels.spans_runner import SpanAttention

    return SpanAttention(form, dtype, device)
