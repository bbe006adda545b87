"""Sizes that depend on the model and the machine: the KV pool, the batch, the chunk of a prefill.

Not here: what the user sets (`config.py`).
"""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from nbsglang.engine.config import Config
from nbsglang.engine.limits import Limits
from nbsglang.engine.model import Model
from nbsglang.engine.pool import KVPool
from nbsglang.errors import UsageError

_CPU_STEP_S = 0.8  # aim of a prefill step on a CPU: shorter ones read the weights more often
_GPU_STEP_S = 0.055  # the most on a GPU: who is decoding waits as long for a token, and 60 ms are felt
_GPU_RECENT = 8  # steps, about as many as a long prompt takes, of which the last read the most
_GPU_TILE = 256  # rows: a large product takes as long for one more as for so many
_CPU_CHUNKS, _GPU_CHUNKS = (16, 1024), (256, 8192)  # tokens, least and most
_CPU_POOL_BYTES = 2 << 30
_LARGE_GPU = 60 << 30
_CONTAINER_LIMITS = (  # of control groups, version 2 and 1
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def eos_ids(module: torch.nn.Module) -> tuple[int, ...]:
    """The ids with which the model ends a text, as its generation config has them."""
    config = getattr(module, "generation_config", None)
    eos = getattr(config, "eos_token_id", None)
    return tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),)


def pool_tokens(model: Model, share: float | None) -> int:
    """The size of the pool in tokens, from the free memory."""
    if model.device.type == "cuda":
        n_bytes = torch.cuda.mem_get_info(model.device)[0] * (share or 0.85)
    else:
        free = min(psutil.virtual_memory().available, _container_room())
        n_bytes = free * share if share else min(free * 0.25, _CPU_POOL_BYTES)
    n_tokens = int(n_bytes // KVPool.bytes_per_token(model.shapes, model.dtype))
    if n_tokens < 16:
        raise UsageError(
            f"{n_bytes / 1e6:.0f} MB of free memory hold {n_tokens} tokens only; free some, or set kv_tokens"
        )
    return n_tokens


def _container_room() -> int:
    """Bytes that the container's limit leaves beside this process: psutil sees the whole machine's memory."""
    for file in _CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            return max(int(file.read_text()) - int(psutil.Process().memory_info().rss), 0)
    return sys.maxsize


def batch_rows(config: Config, device: torch.device) -> int:
    """How many requests run at once: what was set, else what the memory is made for."""
    if config.max_batch != "auto":
        return config.max_batch
    if device.type != "cuda":
        return 64
    return 1024 if torch.cuda.get_device_properties(device).total_memory > _LARGE_GPU else 256


def limits(config: Config, model: Model) -> Limits:
    """Bounds of a step for this model; on a CPU the chunk is only where `Pace` begins."""
    on_cpu = model.device.type == "cpu"
    max_batch = batch_rows(config, model.device)
    n_parameters = sum(p.numel() for p in model.module.parameters())
    chunk = config.chunk_tokens or (_pace_start(n_parameters) if on_cpu else 2048)
    return Limits(max_batch, chunk, config.lookahead, tile=1 if on_cpu else _GPU_TILE)


def _pace_start(n_parameters: int) -> int:
    """Prompt tokens for the first step on a CPU of which nothing is known but that it does 100 GFLOP/s at least."""
    return max(_CPU_CHUNKS[0], min(int(_CPU_STEP_S * 1e11 / (2 * n_parameters)), 256))


class Pace:
    """How many prompt tokens a step computes, so that it takes about `aim_s` seconds.

    It follows the steps that went before: a measurement at loading would take a machine that is busy at that moment
    for a slow one, and small chunks cost throughput. Of the last `recent` ones the second slowest counts: steps differ
    by the contexts that they read, and the slowest may have been slow for another reason. Tokens do not depend on it.
    """

    def __init__(
        self, chunk_tokens: int, aim_s: float, chunks: tuple[int, int], tile: int = 1, recent: int = 1
    ) -> None:
        self.chunk_tokens = chunk_tokens
        self._aim_s = aim_s
        self._least, self._most = chunks
        self._tile = tile
        self._costs: deque[float] = deque(maxlen=recent)  # seconds a row

    def observe(self, n_rows: int, seconds: float) -> int:
        """After a step of `n_rows` tokens: the chunk of the next. Steps far below the chunk tell nothing."""
        if n_rows > self.chunk_tokens - self._tile:  # which rows were left out to fill whole tiles
            self._costs.append(seconds / n_rows)
            wanted = self._aim_s / sorted(self._costs)[-2:][0]
            at_once = min(max(wanted, self.chunk_tokens / 2), self.chunk_tokens * 2)  # one odd step moves it little
            self.chunk_tokens = int(min(max(at_once, self._least), self._most))
        return self.chunk_tokens


def pace(config: Config, device: torch.device, chunk_tokens: int) -> Pace | None:
    """The pace of an engine on this device that begins with `chunk_tokens`; None where the user fixed the chunk."""
    if config.chunk_tokens is not None:
        return None
    if device.type == "cpu":
        return Pace(chunk_tokens, _CPU_STEP_S, _CPU_CHUNKS)
    return Pace(chunk_tokens, _GPU_STEP_S, _GPU_CHUNKS, _GPU_TILE, _GPU_RECENT)
