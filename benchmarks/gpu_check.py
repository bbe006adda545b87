"""Checks of the engine on a CUDA device, once and with committed results.

Greedy tokens on smollm2 in float32 and bfloat16 against the float32 reference, the same texts with and without captured
decode steps, a user's module beside an engine, and ten openings and closings without growth of memory.

Not here: speed (`gpu_step.py`, `gpu/`), the CPU benchmark (`cpu.py`).
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu import report
from nbsglang.engine.engine import Engine
from nbsglang.engine.load import load

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


def check_graph(n_rows: int = 8, n_prompt: int = 70, n_new: int = 48) -> dict[str, Any]:
    """The same greedy texts with and without captured decode steps, and milliseconds of a step of the whole engine."""
    loaded = load("smollm2", dtype=torch.bfloat16, device="cuda")
    asked = np.random.default_rng(0).integers(0, 40_000, (n_rows, n_prompt)).tolist()
    found: dict[bool, tuple[list[tuple[int, ...]], float]] = {}
    for graphs in (False, True):
        with Engine(loaded.module, tokenizer=loaded.tokenizer, kv_tokens=8000, graphs=graphs) as engine:
            for _ in range(3):  # the first two load and capture
                engine.flush()
                before, began = engine.stats()["steps"], time.perf_counter()
                outputs = engine.generate(asked, max_tokens=n_new, temperature=0, ignore_eos=True)
                n_steps = engine.stats()["steps"] - before
                step_ms = (time.perf_counter() - began) / n_steps * 1e3
            found[graphs] = [output.ids for output in outputs], step_ms
    pairs = zip(found[False][0], found[True][0], strict=True)
    return {
        "rows": n_rows,
        "equal_tokens": sum(x == y for one, other in pairs for x, y in zip(one, other, strict=True)),
        "of": n_rows * n_new,
        "eager_ms": found[False][1],
        "graph_ms": found[True][1],
    }


def check_own_forward() -> dict[str, Any]:
    """A user's module in bfloat16: its own logits before, beside and after an engine that merged its weights."""
    loaded = load("smollm2", dtype=torch.bfloat16, device="cuda")
    ids = torch.arange(5, 90, device="cuda")[None]
    with torch.inference_mode():
        before = loaded.module(ids, use_cache=False).logits
        with Engine(loaded.module, tokenizer=loaded.tokenizer, kv_tokens=2000) as engine:
            engine.generate("Hello", max_tokens=8, temperature=0)
            is_fused = engine._model.is_fused
            beside = loaded.module(ids, use_cache=False).logits
        after = loaded.module(ids, use_cache=False).logits
    return {"fused": is_fused, "equal_beside": bool(before.equal(beside)), "equal_after": bool(before.equal(after))}


def check_open_close(n: int = 10) -> dict[str, Any]:
    """Used memory of the device before and after each of ten engines on a live module that its user has run before.

    What CUDA's libraries load for a kernel that runs for the first time stays until the process ends; `torch_mb` is
    what torch still holds.
    """
    loaded = load("smollm2", dtype=torch.bfloat16, device="cuda")
    with torch.inference_mode():
        loaded.module.generate(torch.arange(5, 90, device="cuda")[None], max_new_tokens=8, do_sample=False)

    def used() -> float:
        gc.collect()
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        return (total - free) / 1e6

    before, torch_before, open_mb, after = used(), torch.cuda.memory_reserved() / 1e6, [], []
    for _ in range(n):
        with Engine(loaded.module, tokenizer=loaded.tokenizer, kv_memory=0.3) as engine:
            engine.generate("Hello", max_tokens=4, temperature=0)
            open_mb.append(used())
        after.append(used())
    return {
        "before_mb": before,
        "open_mb": max(open_mb),
        "after_first_mb": after[0],
        "after_last_mb": after[-1],
        "torch_mb": torch.cuda.memory_reserved() / 1e6 - torch_before,
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
        **report.environment("nbsglang, smollm2", "cuda", args.commit, "benchmarks.gpu_check"),
        "greedy_float32": check_greedy(reference.module, reference.tokenizer, torch.float32),
        "greedy_bfloat16": check_greedy(reference.module, reference.tokenizer, torch.bfloat16),
        "cuda_graph": check_graph(),
        "own_forward": check_own_forward(),
        "open_close": check_open_close(),
    }
    if args.out:
        args.out.write_text(json.dumps(results, indent=1) + "\n")
    for name, values in results.items():
        print(f"{name:16} {values}")


if __name__ == "__main__":
    main()
