"""Time of a decode step and of a prefill on a GPU, for a model of the shape of Llama-3.1-8B with random weights.

    python -m benchmarks.gpu_step [--out FILE] [--layers 32] [--commit ID]

Not here: whole workloads (`benchmarks/gpu`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.gpu import report
from benchmarks.gpu.alphabet import tokenizer
from benchmarks.gpu.shapes import SHAPES, random_model
from nbsglang.calls import SamplingParams
from nbsglang.engine.batch import pack
from nbsglang.engine.config import Config
from nbsglang.engine.core import Core
from nbsglang.engine.model import Model
from nbsglang.engine.pool import KVPool
from nbsglang.engine.radix import RadixTree
from nbsglang.engine.request import Request
from nbsglang.engine.scheduler import Limits
from nbsglang.engine.sizes import limits, pace
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.events import Tokens

GOALS = {1: 4.6, 16: 5.5, 64: 7.2, 256: 15.0}  # ms


def requests(n: int, n_context: int, n_new: int, n_vocab: int, rng: np.random.Generator, at: int = 1) -> list[Request]:
    """`n` requests whose next `n_new` tokens are to be computed, on slots from `at` on."""
    made = []
    for i in range(n):
        row = rng.integers(0, n_vocab, n_context + n_new + 64).astype(np.int32)
        request = Request(i, str(i), row, n_context + n_new, n_context + n_new - 1, 64, SamplingParams(), 0)
        request.node = RadixTree().root
        request.slots[:] = np.arange(at, at + len(row))
        request.n_computed, request.n_planned = n_context, n_new
        made.append(request)
        at += len(row)
    return made


def decode(model: Model, pool: KVPool, n: int, n_context: int, n_steps: int = 30) -> dict[str, float]:
    """Median milliseconds of a decode step: by the wall, and of the device alone."""
    work = requests(n, n_context, 1, model.n_vocab, np.random.default_rng(0))
    walls, devices, packs = [], [], []
    for step in range(n_steps + 6):
        began = time.perf_counter()
        batch = pack(work, model.packing)
        packed = time.perf_counter()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        model.run(batch, pool)
        end.record()
        torch.cuda.synchronize()
        wall = time.perf_counter() - began
        model.between_steps()
        torch.cuda.synchronize()
        for request in work:
            request.n_computed += 1
            request.n_tokens += 1
        if step >= 6:
            walls.append(wall * 1e3)
            packs.append((packed - began) * 1e3)
            devices.append(start.elapsed_time(end))
    return {
        "wall_ms": round(statistics.median(walls), 3),
        "device_ms": round(statistics.median(devices), 3),
        "pack_ms": round(statistics.median(packs), 3),
    }


def prefill(model: Model, pool: KVPool, n: int, n_tokens: int, n_runs: int = 5) -> dict[str, float]:
    """Tokens a second, and TFLOP/s by two operations a weight and token."""
    n_weights = sum(p.numel() for p in model.module.parameters()) - 2 * model.n_vocab * 4096
    seconds = []
    for _ in range(n_runs + 2):
        batch = pack(requests(n, 0, n_tokens, model.n_vocab, np.random.default_rng(1)), model.packing)
        torch.cuda.synchronize()
        began = time.perf_counter()
        model.run(batch, pool)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    median = statistics.median(seconds[2:])
    rate = n * n_tokens / median
    return {"tokens_s": round(rate), "tflops": round(2 * n_weights * rate / 1e12, 1), "ms": round(median * 1e3, 2)}


def loop(model: Model, n: int, n_context: int, n_new: int = 40) -> dict[str, float]:
    """Milliseconds of a step of the whole engine, greedy, by part; `run` only starts the device's work."""
    words = Tokenizer(tokenizer(model.n_vocab), n_vocab=model.n_vocab)
    core = Core(model, words, n * (n_context + n_new + 8), Limits(n, 1 << 20), Config(), lambda body: None)
    rng = np.random.default_rng(2)
    for i in range(n):
        row = np.zeros(n_context + n_new + 8, np.int32)
        row[:n_context] = rng.integers(0, model.n_vocab, n_context)
        params = SamplingParams(temperature=0.0, max_tokens=n_new, ignore_eos=True)
        core.submit(Request(i, str(i), row, n_context, n_context - 1, n_new, params, 0))
    for _ in range(6):
        core.step()
        model.between_steps()
    before, n_before, began = asdict(core.totals), core.totals.steps, time.perf_counter()
    while core.has_work:
        core.step()
    n_steps = core.totals.steps - n_before
    result = {"step_ms": round((time.perf_counter() - began) / n_steps * 1e3, 3)}
    for part in ("plan", "pack", "run", "commit"):
        spent = getattr(core.totals, f"{part}_s") - before[f"{part}_s"]
        result[f"{part}_ms"] = round(spent / n_steps * 1e3, 3)
    core.release()
    return result


def beside(
    model: Model, n: int, n_context: int = 512, n_prompts: int = 40, n_prompt: int = 4000, settle_s: float = 1.0
) -> dict[str, float]:
    """Milliseconds between two tokens of a text while `n` texts are decoded and long prompts come in.

    Chunk and tile are the engine's own; the first `settle_s`, in which it finds its size, are left out.
    """
    words = Tokenizer(tokenizer(model.n_vocab), n_vocab=model.n_vocab)
    n_new = 20 * n_prompts
    stamps: list[float] = []

    def emit(body: object) -> None:
        if isinstance(body, Tokens) and 0 in body.requests:
            stamps.append(time.perf_counter())

    config = Config(caching=False, max_batch=n + 8)
    bounds = limits(config, model)
    n_slots = n * (n_context + n_new + 8) + 4 * n_prompt
    core = Core(model, words, n_slots, bounds, config, emit, pace(config, model.device, bounds.chunk_tokens))
    rng = np.random.default_rng(3)

    def ask(number: int, n_tokens: int, n_out: int) -> None:
        row = np.zeros(n_tokens + n_out + 8, np.int32)
        row[:n_tokens] = rng.integers(0, model.n_vocab, n_tokens)
        params = SamplingParams(temperature=0.0, max_tokens=n_out, ignore_eos=True)
        core.submit(Request(number, str(number), row, n_tokens, n_tokens - 1, n_out, params, 0))

    for i in range(n):
        ask(i, n_context, n_new)
    while len(stamps) < 20:
        core.step()
        model.between_steps()
    while model.has_chores:  # what an engine that was idle has done
        model.do_chore()
    began = time.perf_counter()
    for number in range(n, n + n_prompts):
        ask(number, n_prompt, 1)
        while len(core.scheduler.waiting) > 1 and core.has_work:
            core.step()
            model.between_steps()
    ended = time.perf_counter()
    core.release()
    gaps = np.diff([t for t in stamps if began + settle_s < t < ended]) * 1e3
    found = {"median_ms": np.median(gaps), "p99_ms": np.percentile(gaps, 99), "worst_ms": gaps.max()}
    return {name: round(float(value), 2) for name, value in found.items()} | {"tokens": len(gaps)}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--plain", action="store_true", help="without fused layers and graphs")
    parser.add_argument("--commit", default="", help="the commit that is measured, for the record")
    given = parser.parse_args()
    began = time.perf_counter()
    module = random_model(replace(SHAPES["llama8b"], layers=given.layers), "cuda")
    torch.cuda.synchronize()
    made = time.perf_counter()
    model = Model(module, "llama8b", fuse=not given.plain, n_captured=256)
    pool = KVPool(model.shapes, 256 * 1200, model.dtype, model.device)
    torch.cuda.synchronize()
    ready = time.perf_counter()
    result = report.environment("nbsglang, llama8b with random weights", "cuda", given.commit, "benchmarks.gpu_step")
    result |= {"made_s": round(made - began, 2), "engine_s": round(ready - made, 2)}
    result["fused"] = model.is_fused
    result["decode"] = {n: decode(model, pool, n, 1024) for n in GOALS}
    result["loop"] = {n: loop(model, n, 1024) for n in GOALS}
    result["prefill"] = prefill(model, pool, 8, 1024)
    del pool
    result["beside"] = beside(model, 64)
    print(json.dumps(result, indent=1))
    for n, goal in GOALS.items():
        took = result["decode"][n]
        host = f"wall {took['wall_ms']:.3f}, pack {took['pack_ms']:.3f}"
        print(f"batch {n:4}: {took['device_ms']:7.3f} ms (goal {goal}), {host}")
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
