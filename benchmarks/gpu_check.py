"""Checks of the engine on a CUDA device, once and with committed results: nothing in the structure forbids speed.

Greedy tokens on smollm2 in float32 and bfloat16 against the float32 reference, a decode step captured in a
CUDA graph and replayed with other rows, and ten openings and closings without growth of memory.

Not here: speed (that needs the fused and captured forms), the CPU benchmark (`cpu.py`).
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nbsglang
from nbsglang.calls import SamplingParams
from nbsglang.engine.attend import Forward
from nbsglang.engine.batch import NOWHERE, Batch, Work, pack
from nbsglang.engine.engine import Engine
from nbsglang.engine.load import load
from nbsglang.engine.model import Model
from nbsglang.engine.pool import KVPool
from nbsglang.engine.radix import RadixTree
from nbsglang.engine.request import Request

SUBJECTS = [
    "rain",
    "Paris",
    "a clock",
    "the number seven",
    "bread",
    "mountains",
    "a library",
    "whales",
    "copper",
    "tea",
]
QUESTIONS = ["Tell me one fact about {}.", "Write a line of verse about {}."]
N_TOKENS = 64


def prompts(tokenizer: Any) -> list[list[int]]:
    """Twenty chats as ids."""
    texts = (question.format(subject) for subject in SUBJECTS for question in QUESTIONS)
    turns = ([{"role": "user", "content": text}] for text in texts)
    rendered = [tokenizer.apply_chat_template(t, tokenize=False, add_generation_prompt=True) for t in turns]
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in rendered]


def check_greedy(reference: torch.nn.Module, tokenizer: Any, dtype: torch.dtype) -> dict[str, Any]:
    """Teacher-forced: how many of the engine's tokens are the float32 reference's choice, and the worst loss in nat.

    `transformers_equal` counts the same for the choices of transformers itself in this dtype, on the same texts.
    """
    loaded = load("smollm2", dtype=dtype, device="cuda")
    asked = prompts(tokenizer)
    with Engine(loaded.module, tokenizer=tokenizer, kv_tokens=20_000) as engine:
        start = time.perf_counter()
        outputs = engine.generate(asked, max_tokens=N_TOKENS, temperature=0, ignore_eos=True)
        seconds = time.perf_counter() - start
    n_equal, n_theirs, n_ties, worst = 0, 0, 0, 0.0
    for prompt, output in zip(asked, outputs, strict=True):
        ids = torch.tensor([[*prompt, *output.ids]], device="cuda")
        with torch.inference_mode():
            logits = reference(ids, use_cache=False).logits[0, len(prompt) - 1 : -1].float()
            theirs = loaded.module(ids, use_cache=False).logits[0, len(prompt) - 1 : -1]
        logprobs = torch.log_softmax(logits, -1)
        lost = logprobs.amax(-1) - logprobs.gather(1, ids[0, len(prompt) :, None])[:, 0]
        n_equal += int((logits.argmax(-1) == ids[0, len(prompt) :]).sum())
        n_theirs += int((logits.argmax(-1) == theirs.argmax(-1)).sum())
        n_ties += int(((lost > 0) & (lost <= 1e-5)).sum())
        worst = max(worst, float(lost.max()))
    n_all = len(asked) * N_TOKENS
    return {
        "tokens": n_all,
        "equal": n_equal,
        "ties": n_ties,
        "worst_loss_nat": worst,
        "transformers_equal": n_theirs,
        "seconds": seconds,
    }


def _padded(batch: Batch, multiple: int = 64) -> Batch:
    """Keys padded to a multiple, so that the shapes of a decode step stay the same for a while."""
    work = []
    for item in batch.work:
        n = -item.slots.shape[1] % multiple
        slots = np.pad(item.slots, ((0, 0), (0, n)))
        positions = np.pad(item.positions, ((0, 0), (0, n)), constant_values=NOWHERE)
        work.append(Work(item.rows, slots, positions, item.level, "some"))
    return batch._replace(work=tuple(work))


def _requests(n: int, n_prompt: int, n_vocab: int) -> list[Request]:
    rng = np.random.default_rng(0)
    made = []
    for i in range(n):
        ids = rng.integers(0, n_vocab, n_prompt).astype(np.int32)
        request = Request(i, f"c{i}", np.resize(ids, 2 * n_prompt), n_prompt, n_prompt - 1, 64, SamplingParams(), 0)
        request.node = RadixTree().root
        request.slots[:] = 1 + i * 2 * n_prompt + np.arange(2 * n_prompt)
        made.append(request)
    return made


def _inputs(model: Model, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The inputs of a step as tensors that a graph can keep reading."""
    ids, positions, wanted = (torch.from_numpy(v).to(model.device) for v in (batch.ids, batch.positions, batch.wanted))
    return ids[None], positions[None], wanted


def check_graph(n_rows: int = 8, n_prompt: int = 70) -> dict[str, Any]:
    """Capture one decode step, replay it for the next tokens with new ids, slots and masks; compare with eager."""
    loaded = load("smollm2", dtype=torch.bfloat16, device="cuda")
    model = Model(loaded.module, "smollm2", verify=False)
    pool = KVPool(model.shapes, 4000, model.dtype, model.device)
    requests = _requests(n_rows, n_prompt, model.n_vocab)
    for request in requests:
        request.n_planned = request.n_missing
    logits = model.run(pack(requests), pool)
    worst, n_equal, n_steps = 0.0, 0, 6
    graph: Any = None
    static: dict[str, Any] = {}
    for _ in range(n_steps):
        for request, token in zip(requests, logits.argmax(-1).tolist(), strict=True):
            request.n_computed += request.n_planned
            request.append(token)
            request.want_from, request.n_planned = request.n_tokens - 1, 1
        batch = _padded(pack(requests))
        logits = model.run(batch, pool)  # eager; writes the same keys and values as the replay below
        forward = Forward(batch, pool)
        inputs = _inputs(model, batch)
        parts = [forward._part(item, None) for item in batch.work]
        if graph is None:
            static = {"forward": forward, "inputs": inputs}
            graph, static["out"] = _capture(model, forward, inputs)
        else:
            _refill(static, inputs, forward, parts)
        graph.replay()
        torch.cuda.synchronize()
        worst = max(worst, (static["out"].float() - logits).abs().max().item())
        n_equal += int((static["out"].argmax(-1) == logits.argmax(-1)).sum())
    eager_ms = _median_ms(lambda: model.run(batch, pool))
    graph_ms = _median_ms(graph.replay)
    return {
        "rows": n_rows,
        "replays": n_steps,
        "equal_tokens": n_equal,
        "of": n_rows * n_steps,
        "worst_difference": worst,
        "eager_ms": eager_ms,
        "graph_ms": graph_ms,
    }


def _capture(model: Model, forward: Forward, inputs: tuple[torch.Tensor, ...]) -> tuple[Any, torch.Tensor]:
    ids, positions, wanted = inputs

    def step() -> torch.Tensor:
        out = model.module(
            input_ids=ids, position_ids=positions, use_cache=False, logits_to_keep=wanted, forward=forward
        )
        return out.logits[0]  # type: ignore[no-any-return]

    with model._ours(), torch.inference_mode():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = step()
    return graph, out


def _refill(static: dict[str, Any], inputs: tuple[torch.Tensor, ...], forward: Forward, parts: list[Any]) -> None:
    """Copy a step's values into the tensors that the graph reads."""
    with torch.inference_mode():
        for mine, new in zip(static["inputs"], inputs, strict=True):
            mine.copy_(new)
        static["forward"]._slots.copy_(forward._slots)
        for mine, new in zip(static["forward"]._parts[None], parts, strict=True):
            mine.slots.copy_(new.slots)
            mine.mask.copy_(new.mask)


def _median_ms(work: Any, n: int = 30) -> float:
    times = []
    for _ in range(n):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[n // 2]


def check_open_close(n: int = 10) -> dict[str, Any]:
    """Free memory of the device before and after each of ten engines on a live module."""
    loaded = load("smollm2", dtype=torch.bfloat16, device="cuda")

    def used() -> float:
        gc.collect()
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        return (total - free) / 1e6

    before, open_mb, after = used(), [], []
    for _ in range(n):
        with Engine(loaded.module, tokenizer=loaded.tokenizer, kv_memory=0.3) as engine:
            engine.generate("Hello", max_tokens=4, temperature=0)
            open_mb.append(used())
        after.append(used())
    return {"before_mb": before, "open_mb": max(open_mb), "after_first_mb": after[0], "after_last_mb": after[-1]}


def _versions() -> dict[str, str]:
    import transformers

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
        "nbsglang": nbsglang.__version__,
        "device": torch.cuda.get_device_name(),
    }


def main() -> None:
    """Run the checks, print a table, write JSON with --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default="", help="the commit that is checked, for the record")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    reference = load("smollm2", dtype=torch.float32, device="cuda")
    results: dict[str, Any] = {
        "engine": "nbsglang",
        "versions": _versions(),
        "commit": args.commit,
        "command": "python -m benchmarks.gpu_check",
        "greedy_float32": check_greedy(reference.module, reference.tokenizer, torch.float32),
        "greedy_bfloat16": check_greedy(reference.module, reference.tokenizer, torch.bfloat16),
        "cuda_graph": check_graph(),
        "open_close": check_open_close(),
    }
    if args.out:
        args.out.write_text(json.dumps(results, indent=1) + "\n")
    for name, values in results.items():
        print(f"{name:16} {values}")


if __name__ == "__main__":
    main()
