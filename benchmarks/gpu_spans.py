"""Attention by spans on a GPU: one layer of the shape of Llama-3.1-8B, against FlashInfer and the bytes to be read.

    python -m benchmarks.gpu_spans [--only SHAPE ...] [--config NAME ...] [--ordered] [--skip-flash]

Each time is a median over replays of a CUDA graph that goes through the pools of many layers, which keeps reads out of
the cache. Sharing is used where a shape has it ("tree") or ignored ("flat"). Errors are relative to float64.

Not here: whole steps (`gpu_step.py`).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from nbsglang.kernels.flash import flashinfer
from nbsglang.kernels.spans import Ints, Reads, SpanForm, Spans, plan_spans, spans_of_reads, spans_of_tree
from nbsglang.kernels.spans_gluon import KEYS, LINES
from nbsglang.kernels.spans_runner import Room, SpanAttention, Tile
from nbsglang.kernels.spans_torch import attend_spans

FORM = SpanForm(32, 8, 128, 128, 128**-0.5)
BANDWIDTH = 4.2e12  # bytes a second, as copies reach it
N_LAYERS = 20  # pools that one graph goes through
DTYPE = torch.bfloat16


class Shape(NamedTuple):
    """A step: rows of each request, keys before them of its own, and how many requests share how long a prefix."""

    lines: tuple[int, ...]
    own: tuple[int, ...]
    per_group: int = 1
    shared: int = 0


class Config(NamedTuple):
    """Tiles for few and for many rows, programs for each multiprocessor (0: as usual), the dtype of partial results."""

    tiles: tuple[Tile, ...]
    fill: int = 0
    partial: torch.dtype = torch.float32


SHAPES = {
    "1x1024": Shape((1,), (1024,)),
    "1x8000": Shape((1,), (8000,)),
    "16x1024": Shape((1,) * 16, (1024,) * 16),
    "64x1024": Shape((1,) * 64, (1024,) * 64),
    "256x1024": Shape((1,) * 256, (1024,) * 256),
    "256xmixed": Shape((1,) * 256, tuple(range(64, 2112, 8))),
    "4x64:8000+64": Shape((1,) * 256, (64,) * 256, 64, 8000),
    "64x4:1000+64": Shape((1,) * 256, (64,) * 256, 4, 1000),
    "64x5:1700+64": Shape((1,) * 320, (64,) * 320, 5, 1700),
    "32x27:740+64": Shape((1,) * 864, (64,) * 864, 27, 740),
    "10x26:600+40": Shape((1,) * 260, (40,) * 260, 26, 600),
    "1x100:1800+500": Shape((1,) * 100, (500,) * 100, 100, 1800),
    "extend": Shape((500,) * 4 + (1,) * 200, (1000,) * 4 + (1024,) * 200),
}
S64, S128 = Tile(64, 64, 4, 3), Tile(128, 64, 8, 3)


def few(block_n: int, warps: int, stages: int) -> Tile:
    """A tile for few rows."""
    return Tile(16, block_n, warps, stages)


BASE = few(64, 4, 3)
CONFIGS = {
    # for few rows: these alone matter where nothing is shared
    "n64s3": Config((BASE, S64, S128)),
    "n64s3-fill8": Config((BASE, S64, S128), 8),
    "n64s4": Config((few(64, 4, 4), S64, S128)),
    "n32s4": Config((few(32, 4, 4), S64, S128)),
    "n32s4w2": Config((few(32, 2, 4), S64, S128), 8),
    "n64s3w2": Config((few(64, 2, 3), S64, S128)),
    "n128s3w8": Config((few(128, 8, 3), S64, S128), 2),
    "n32w1": Config((few(32, 1, 4), Tile(64, 32, 4, 4))),
    "chosen": Config((Tile(LINES, KEYS, 1, 1, direct=True), Tile(64, 32, 4, 4))),
    # for many rows
    "m128": Config((BASE, S128)),
    "m64": Config((BASE, S64)),
    "m32,128": Config((BASE, Tile(32, 64, 4, 3), S128)),
    "m64s2,128s2": Config((BASE, Tile(64, 64, 4, 2), Tile(128, 64, 8, 2))),
    "m64,128n128": Config((BASE, S64, Tile(128, 128, 8, 2))),
    "half": Config((BASE, S64, S128), 0, torch.float16),
    "half-fill8": Config((BASE, S64, S128), 8, torch.float16),
    "half-fill2": Config((BASE, S64, S128), 2, torch.float16),
}
FLAT_CONFIGS = list(CONFIGS)[:9]


def spans_of(shape: Shape, rng: np.random.Generator, ordered: bool) -> tuple[Reads, Spans, int]:
    """The reads of a step without and with sharing, and how many slots it has."""
    n_groups = len(shape.lines) // shape.per_group
    n_slots = n_groups * shape.shared + sum(shape.own)
    order = np.arange(n_slots) if ordered else rng.permutation(n_slots)
    slots: Ints = order.astype(np.int32) + np.int32(1)
    prefixes = [slots[i * shape.shared : (i + 1) * shape.shared] for i in range(n_groups)]
    owns = np.split(slots[n_groups * shape.shared :], np.cumsum(shape.own)[:-1])
    rows = np.cumsum([0, *shape.lines]).astype(np.int32)
    contexts = [np.concatenate([prefixes[i // shape.per_group], own]) for i, own in enumerate(owns)]
    starts = np.cumsum([0, *map(len, contexts)]).astype(np.int32)
    reads = Reads(rows, starts, np.concatenate(contexts))
    flat = spans_of_reads(reads)
    every = np.arange(rows[-1], dtype=np.int32)
    parts = [(own, every[rows[i] : rows[i + 1]], shape.shared) for i, own in enumerate(owns)]
    for i, prefix in enumerate(prefixes if shape.shared else []):
        parts.append((prefix, every[rows[i * shape.per_group] : rows[(i + 1) * shape.per_group]], 0))
    return reads, spans_of_tree(parts, flat.positions), n_slots + 1


def timed(launch: Callable[[int], object], n_layers: int, n_replays: int = 12) -> float:
    """Median milliseconds of `launch(layer)`, of a graph that does all layers."""
    launch(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for layer in range(n_layers):
            launch(layer)
    took = []
    for _ in range(n_replays + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        took.append(start.elapsed_time(end) / n_layers)
    return statistics.median(took[2:])


def off(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The size of the difference, relative to that of the expected values."""
    return float((found.double() - expected).norm() / expected.norm())


class Layers:
    """Random pools in one piece of memory, cut anew for each shape."""

    def __init__(self, n_slots: int) -> None:
        self._memory = torch.empty(2 * N_LAYERS * n_slots * FORM.n_kv * FORM.k_dim, dtype=DTYPE, device="cuda")
        for part in self._memory.split(1 << 28):
            part.normal_()

    def of(self, n_slots: int) -> tuple[torch.Tensor, torch.Tensor]:
        """K and V pools [layers, slots, kv, dim]."""
        size = N_LAYERS * n_slots * FORM.n_kv * FORM.k_dim
        k, v = (part.view(N_LAYERS, n_slots, FORM.n_kv, -1) for part in self._memory[: 2 * size].view(2, -1))
        return k, v


def ours(
    config: Config, spans: Spans, query: torch.Tensor, pools: tuple[torch.Tensor, torch.Tensor]
) -> tuple[float, float]:
    """Milliseconds of a layer, and of making and sending the plan."""
    device = query.device
    sizing = SpanAttention(FORM, DTYPE, device, None, config.tiles, None, config.partial)
    n_sm = torch.cuda.get_device_properties(device).multi_processor_count
    cut = sizing.cut._replace(n_programs=config.fill * n_sm) if config.fill else sizing.cut
    plan = plan_spans(spans, cut)
    attention = SpanAttention(FORM, DTYPE, device, Room.of(plan), config.tiles, None, config.partial)
    took = []
    for _ in range(9):
        began = time.perf_counter()
        attention.plan(plan_spans(spans, cut))
        took.append((time.perf_counter() - began) * 1e3)
        torch.cuda.synchronize()
    ms = timed(lambda layer: attention.run(query, pools[0][layer], pools[1][layer]), N_LAYERS)
    return ms, statistics.median(took)


def flash(reads: Reads, query: torch.Tensor, pools: tuple[torch.Tensor, torch.Tensor]) -> float | None:
    """FlashInfer's milliseconds of a layer, or None where there is none."""
    if flashinfer() is None:
        return None
    workspace = torch.zeros(512 << 20, dtype=torch.uint8, device=query.device)
    rows, starts, slots = (torch.from_numpy(part) for part in reads)
    ones = torch.ones(len(starts) - 1, dtype=torch.int32)
    heads = FORM.n_heads, FORM.n_kv, FORM.k_dim, 1
    wrapper: Any
    if len(starts) == len(query) + 1:
        wrapper = flashinfer().BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD", use_tensor_cores=True)
        wrapper.plan(starts, slots.cuda(), ones, *heads, q_data_type=DTYPE, sm_scale=FORM.scale)
    else:
        wrapper = flashinfer().BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD")
        wrapper.plan(rows, starts, slots.cuda(), ones, *heads, causal=True, q_data_type=DTYPE, sm_scale=FORM.scale)
    return timed(lambda layer: wrapper.run(query, tuple(pool[layer][:, None] for pool in pools)), N_LAYERS)


def errors(names: list[str]) -> None:
    """The worst difference from float64 of small steps, for each configuration."""
    small = {
        "flat": Shape((1,) * 7, (3, 900, 17, 1, 64, 1200, 33)),
        "tree": Shape((1,) * 40, (20,) * 40, 20, 500),
        "extend": Shape((70, 1, 200), (90, 300, 200)),
    }
    worst: dict[str, float] = {}
    for shape in small.values():
        reads, tree, n_slots = spans_of(shape, np.random.default_rng(1), False)
        query = torch.randn(int(reads.rows[-1]), FORM.n_heads, FORM.k_dim, device="cuda").to(DTYPE)
        k_pool, v_pool = torch.randn(2, n_slots, FORM.n_kv, FORM.k_dim, device="cuda").to(DTYPE)
        for name in names:
            config = CONFIGS[name]
            attention = SpanAttention(FORM, DTYPE, query.device, None, config.tiles, None, config.partial)
            plan = plan_spans(tree, attention.cut)
            attention.plan(plan)
            expected = attend_spans(query.double(), k_pool, v_pool, plan, FORM)
            worst[name] = max(worst.get(name, 0.0), off(attention.run(query, k_pool, v_pool), expected))
    print("difference from float64:", ", ".join(f"{name} {value:.1e}" for name, value in worst.items()), flush=True)


def floor_ms(n_slots: int, n_rows: int) -> float:
    """Milliseconds to read each key and value and query once and write the result."""
    n_bytes = (n_slots * FORM.n_kv + n_rows * FORM.n_heads) * 2 * FORM.k_dim * DTYPE.itemsize
    return n_bytes / BANDWIDTH * 1e3


def measure(name: str, layers: Layers, given: argparse.Namespace) -> None:
    """One shape: a line for FlashInfer and the floor, one for each configuration."""
    shape = SHAPES[name]
    reads, tree, n_slots = spans_of(shape, np.random.default_rng(0), given.ordered)
    pools = layers.of(n_slots)
    query = torch.randn(int(reads.rows[-1]), FORM.n_heads, FORM.k_dim, device="cuda").to(DTYPE)
    flashed = None if given.skip_flash else flash(reads, query, pools)
    floor = floor_ms(n_slots, len(query))
    print(f"\n{name}: floor {floor:.4f} ms, FlashInfer flat {flashed or float('nan'):.4f}")
    found: dict[str, tuple[float, float]] = {}
    ways = [("flat", spans_of_reads(reads)), ("tree", tree)] if shape.shared else [("flat", tree)]
    extends = max(shape.lines) > 1
    for (way, spans), (key, config) in itertools.product(ways, CONFIGS.items()):
        few_only = way == "flat" and not extends
        if (given.config and key not in given.config) or (few_only and not given.config and key not in FLAT_CONFIGS):
            continue
        if way == "flat" and shape.shared and not given.config and key != "n64s3":
            continue
        try:
            found[f"{way} {key}"] = ours(config, spans, query, pools)
        except Exception as error:  # one that does not fit the device must not end the others
            print(f"  {way} {key}: {type(error).__name__}: {str(error)[:150]}")
    if not found:
        return
    best = min(found, key=lambda key: found[key][0])
    line = ", ".join(f"{key} {ms:.4f}" for key, (ms, _) in sorted(found.items(), key=lambda pair: pair[1]))
    print(f"  {line}")
    ms, host = found[best]
    gain = f", {flashed / ms:.2f} x FlashInfer" if flashed else ""
    print(f"  best: {best} {ms:.4f} ms, {ms / floor:.2f} x floor{gain}; plan and upload {host:.2f} ms", flush=True)


def main() -> None:
    """Check, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--config", nargs="*", choices=list(CONFIGS), default=[])
    parser.add_argument("--ordered", action="store_true", help="contexts lie in the pool in order, not scattered")
    parser.add_argument("--skip-flash", action="store_true")
    given = parser.parse_args()
    began = time.perf_counter()
    torch.manual_seed(0)
    errors(given.config or list(CONFIGS))
    print(f"after {time.perf_counter() - began:.0f} s")
    layers = Layers(max(spans_of(SHAPES[name], np.random.default_rng(0), True)[2] for name in given.only))
    for name in given.only:
        measure(name, layers, given)
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
