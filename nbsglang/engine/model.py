"""The user's transformers module as the engine runs it: gates, forward pass, and living beside its owner.

The module is called as it is, with our attention function in place only while a step runs; between steps
it is the user's, unchanged. A model that would give wrong results is refused by three gates: its layer
types, a dry pass that must reach our function once for each layer, and equal logits on a few tokens.

Not here: loading (`load.py`) and the attention itself (`attend.py`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from transformers import AttentionInterface

from nbsglang.calls import SamplingParams
from nbsglang.engine.attend import NAME, Attending, Forward, Probe, attend, has_spans
from nbsglang.engine.batch import Batch, Packing, pack
from nbsglang.engine.draws import with_drawn
from nbsglang.engine.fast import FastPath, fast_path
from nbsglang.engine.host_copy import to_device
from nbsglang.engine.linears import Linears
from nbsglang.engine.pool import KVPool
from nbsglang.engine.radix import RadixTree
from nbsglang.engine.request import Request
from nbsglang.errors import ModelRefused

if TYPE_CHECKING:
    from nbsglang.kernels.spans import SpanForm
    from nbsglang.kernels.spans_runner import SpanAttention
    from nbsglang.kernels.spans_torch import TorchSpans

AttentionInterface.register(NAME, attend)  # a definition: without `forward=` nothing ever selects it

_LAYER_TYPES = {"full_attention", "sliding_attention"}
Fingerprint = tuple[object, ...]


class Model:
    """A module that passed the gates. `shapes` are its layers' keys and values, `n_context` its longest input."""

    def __init__(
        self, module: torch.nn.Module, name: str, verify: bool = True, *, fuse: bool = True, n_captured: int = 0
    ) -> None:
        self.module = module
        self.name = name
        self.config: Any = cast(Any, module).config.get_text_config()
        self._lock = _lock_of(module)
        parameter = next(module.parameters())
        self.device, self.dtype = parameter.device, _float_type(module)
        self.n_context = _context_of(self.config)
        self.n_vocab = int(self.config.vocab_size)
        self._linears = Linears(module, self.device)
        self._check_layer_types()
        self._fuse = fuse
        self._spans: dict[SpanForm, SpanAttention | TorchSpans] = {}  # without a fast path; kept for their buffers
        self._has_spans = has_spans(self.device)
        self._n_captured = n_captured
        on_gpu = self.device.type == "cuda"
        with torch.cuda.device(self.device) if on_gpu else nullcontext():  # kernels are launched on the current one
            probe = self._probe()
            self.shapes = tuple(shape for _, shape in probe.shapes)
            self._fast = self._proved_fast_path(probe)
            if verify and self._fast is None:
                self._check_logits()
        self._hooks = [
            module.register_forward_pre_hook(self._enter_user_call),
            module.register_forward_hook(self._leave_user_call, always_call=True),
        ]

    # --------------------------------------------------------------------------------------- running

    def run(
        self,
        batch: Batch,
        pool: KVPool,
        wanted: Callable[[], bool] = lambda: True,
        drawn: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """One forward pass over a batch. Returns logits [wanted, vocabulary] on the device, good until the next pass.

        `drawn` int64 has the ids drawn last, where the batch refers to them. Raises Abandoned soon after `wanted()`
        has become false.
        """
        if self._fast is not None:
            with self._lock, torch.inference_mode():
                return self._fast.run(batch, pool, drawn)
        ids = to_device(batch.ids, self.device)
        if batch.drawn is not None:
            assert drawn is not None
            ids = with_drawn(ids, to_device(batch.drawn, self.device), drawn)
        return self._call(ids, batch.positions, batch.wanted, Forward(batch, pool, wanted, self._spans))

    @property
    def packing(self) -> Packing | None:
        """How batches are to be packed; see `pack`."""
        if self._fast is not None:
            return self._fast.packing
        return Packing(sys.maxsize) if self._has_spans else None

    @property
    def is_fused(self) -> bool:
        """Whether it runs by merged weights and large kernels."""
        return self._fast is not None

    def between_steps(self) -> None:
        """Work that the step before asked for and no token waits for."""
        if self._fast is not None:
            with self._lock, torch.inference_mode():
                self._fast.between_steps()

    @property
    def has_chores(self) -> bool:
        """Whether there is something to get ready while nobody asks for anything."""
        return self._fast is not None and self._fast.has_chores

    def do_chore(self) -> None:
        """Do a piece of it, which takes less than a tenth of a second."""
        if self._fast is not None:
            with self._lock, torch.inference_mode():
                self._fast.do_chore()

    def renew(self) -> None:
        """After a change of weights or adapters: a fast path that does not compute the same any more is made anew."""
        if self._fast is None or self._fast.holds:
            return
        with self._lock:
            self._fast.release()
            self._fast = None
            self._fast = self._proved_fast_path(self._probe())

    def _proved_fast_path(self, probe: Probe) -> FastPath | None:
        """The module's fast path if it has one, after it gave transformers' logits."""
        if not self._fuse or self.module.training:
            return None
        fast = self._fast = fast_path(self.module, probe, self._n_captured)
        if fast is not None:
            try:
                self._check_logits()
            except ModelRefused:
                fast.release()
                return None
        return fast

    def dry_run(self, ids: Any, positions: Any) -> Probe:
        """A forward pass without a pool: what the layers send, and about what a step costs."""
        probe = Probe()
        self._call(to_device(ids, self.device), positions, np.array([len(ids) - 1]), probe)
        return probe

    def _call(self, ids: torch.Tensor, positions: Any, wanted: Any, forward: Attending) -> torch.Tensor:
        with self._ours(), self._linears.swapped(), torch.inference_mode():
            out = self.module(
                input_ids=ids[None],
                position_ids=to_device(positions, self.device)[None],
                use_cache=False,
                logits_to_keep=to_device(wanted, self.device),
                forward=forward,
            )
            return out.logits[0].float()  # type: ignore[no-any-return]

    @contextmanager
    def _ours(self, implementation: str = NAME) -> Iterator[None]:
        """Hold the module: our attention, no dropout; afterwards everything is as the user had it."""
        with self._lock:
            before = self.config._attn_implementation
            training = [m for m in self.module.modules() if m.training] if self.module.training else []
            self.config._attn_implementation = implementation
            for part in training:
                part.training = False
            try:
                yield
            finally:
                self.config._attn_implementation = before
                for part in training:
                    part.training = True

    # The user's own calls wait for a step to end, and a step for them. The lock is reentrant: our own
    # calls pass through the same hooks.

    def _enter_user_call(self, module: torch.nn.Module, args: object) -> None:
        self._lock.acquire()

    def _leave_user_call(self, module: torch.nn.Module, args: object, output: object) -> None:
        self._lock.release()

    def release(self) -> None:
        """Give the module back as it was."""
        for hook in self._hooks:
            hook.remove()
        if self._fast is not None:
            with self._lock:
                self._fast.release()
                self._fast = None
        self._spans.clear()

    # ------------------------------------------------------------------------------------- its owner

    def fingerprint(self) -> Fingerprint:
        """Changes when weights or adapters change: versions and places of all tensors, a few of their values.

        In-place writes through `.data` raise no version; the sampled values notice those that touch
        whole tensors, as merging an adapter does.
        """
        tensors = [*self.module.parameters(), *self.module.buffers()]
        with torch.no_grad():
            samples = [
                torch.stack([_sample(t) for t in tensors if t.device == device]).cpu().numpy().tobytes()
                for device in sorted({t.device for t in tensors}, key=str)
            ]
        # tensors made in inference mode have no version
        versions = tuple((t.data_ptr(), 0 if t.is_inference() else t._version) for t in tensors)
        return versions, tuple(samples), tuple(_adapters(self.module))

    # ----------------------------------------------------------------------------------------- gates

    def _refuse(self, why: str) -> ModelRefused:
        return ModelRefused(f"{self.name} ({type(self.module).__name__}) cannot be served: {why}")

    def _check_layer_types(self) -> None:
        kinds = set(getattr(self.config, "layer_types", None) or ()) - _LAYER_TYPES
        if kinds:
            raise self._refuse(f"its layers of type {', '.join(sorted(kinds))} keep no plain KV cache")
        if getattr(self.config, "is_encoder_decoder", False):
            raise self._refuse("it is an encoder-decoder model")

    def _probe(self) -> Probe:
        """Gate 2: a dry pass reaches our function once for each layer, and shows what the layers keep."""
        try:
            probe = self.dry_run(np.zeros(4, np.int64), np.arange(4))
        except Exception as error:
            raise self._refuse(f"a dry pass failed: {type(error).__name__}: {error}") from None
        n_layers = int(self.config.num_hidden_layers)
        if [layer for layer, _ in probe.shapes] != list(range(n_layers)):
            raise self._refuse(
                f"its attention reached the engine {len(probe.shapes)} times in a pass over {n_layers} layers; "
                "the architecture does not call transformers' attention interface for each layer"
            )
        return probe

    def _check_logits(self, n_tokens: int = 24) -> None:
        """Gate 3: a text in two pieces through the KV pool gives the logits of transformers' eager attention."""
        ids = np.random.default_rng(0).integers(0, self.n_vocab, n_tokens)
        with self._ours("eager"), torch.inference_mode():
            out = self.module(input_ids=torch.from_numpy(ids)[None].to(self.device), use_cache=False)
            expected = out.logits[0].float()
        pool = KVPool(self.shapes, n_tokens, self.dtype, self.device)
        request = Request(0, "verify", ids.astype(np.int32), n_tokens, 0, 1, SamplingParams(), 0)
        request.node = RadixTree().root
        request.slots[:] = np.arange(1, n_tokens + 1)
        pieces = []
        for n in (n_tokens // 2 + 1, n_tokens - n_tokens // 2 - 1):
            request.n_planned = n
            pieces.append(self.run(pack([request], self.packing), pool).clone())
            request.n_computed += n
        off = ((torch.cat(pieces) - expected).norm() / expected.norm().clamp(min=1e-6)).item()
        limit = _tolerance(self.dtype)
        if not off <= limit:
            raise self._refuse(
                f"its logits through the KV cache differ by {off:.2g} of their size from those of transformers "
                f"(allowed: {limit:.2g})"
            )


def _lock_of(module: torch.nn.Module) -> threading.RLock:
    """The lock of the engines that share this module: two locks would be taken in both orders."""
    for hook in module._forward_pre_hooks.values():
        owner = getattr(hook, "__self__", None)
        if isinstance(owner, Model):
            return owner._lock
    return threading.RLock()


def _context_of(config: Any) -> int:
    """The longest text in tokens.

    Long-RoPE models turn their keys otherwise once any text of a pass is longer than the original context, which
    would spoil what is cached and what else is in the batch: they are served up to the original context.
    """
    longest = int(getattr(config, "max_position_embeddings", 0) or 1 << 20)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    for kind in kinds:
        if (kind.get("rope_type") or kind.get("type")) == "longrope":
            original = kind.get("original_max_position_embeddings") or getattr(
                config, "original_max_position_embeddings", None
            )
            longest = min(longest, int(original or 1))
    return longest


def _float_type(module: torch.nn.Module) -> torch.dtype:
    """The dtype of the activations: of the first floating-point parameter, as quantised weights are integers."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)


def _tolerance(dtype: torch.dtype) -> float:
    """Allowed difference relative to the size of the logits; in 16 bits many layers of random weights differ by 0.1."""
    return 1e-4 if dtype == torch.float32 else 0.2


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of eight values spread over the tensor."""
    flat = tensor.detach().reshape(-1) if tensor.is_contiguous() else tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // 8)].double().sum()


def _adapters(module: torch.nn.Module) -> Iterator[object]:
    """What PEFT-like layers have switched on."""
    for part in module.modules():
        active = getattr(part, "active_adapters", None)
        if isinstance(active, list):
            yield (tuple(active), getattr(part, "disable_adapters", False), getattr(part, "merged", False))
