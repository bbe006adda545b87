"""Sizes that depend on the model and the machine: the KV pool, the batch, the chunk of a prefill.

Not here: what the user sets (`config.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import psutil
import torch

from nbsglang.engine.config import Config
from nbsglang.engine.model import Model
from nbsglang.engine.pool import KVPool
from nbsglang.engine.scheduler import Limits
from nbsglang.errors import UsageError

_CPU_STEP_S = 0.3  # aim of a prefill step on a CPU: a cancelled call waits for the end of a step, at most 0.4 s
_CPU_POOL_BYTES = 2 << 30


def eos_ids(module: torch.nn.Module) -> tuple[int, ...]:
    config = getattr(module, "generation_config", None)
    eos = getattr(config, "eos_token_id", None)
    return tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),)


def pool_tokens(model: Model, share: float | None) -> int:
    """The size of the pool in tokens, from the free memory."""
    if model.device.type == "cuda":
        n_bytes = torch.cuda.mem_get_info(model.device)[0] * (share or 0.85)
    else:
        free = psutil.virtual_memory().available
        n_bytes = free * share if share else min(free * 0.25, _CPU_POOL_BYTES)
    n_tokens = int(n_bytes // KVPool.bytes_per_token(model.shapes, model.dtype))
    if n_tokens < 16:
        raise UsageError(
            f"{n_bytes / 1e6:.0f} MB of free memory hold {n_tokens} tokens only; free some, or set kv_tokens"
        )
    return n_tokens


def limits(config: Config, model: Model) -> Limits:
    on_cpu = model.device.type == "cpu"
    max_batch = (64 if on_cpu else 256) if config.max_batch == "auto" else config.max_batch
    chunk = config.chunk_tokens or (_cpu_chunk(model) if on_cpu else 4096)
    return Limits(max_batch, chunk, config.lookahead)


def _cpu_chunk(model: Model, n_tokens: int = 128) -> int:
    """Prompt tokens that take about `_CPU_STEP_S`, in steps of 32, by a measurement.

    The best of three: a busy machine would otherwise be taken for a slow one for the engine's whole life, and
    small chunks cost throughput.
    """
    ids, positions = np.zeros(n_tokens, np.int64), np.arange(n_tokens)
    seconds = min(_timed(lambda: model.dry_run(ids, positions)) for _ in range(3))
    return max(32, min(int(n_tokens * _CPU_STEP_S / seconds) // 32 * 32, 1024))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
