"""Jump-forward decoding on the default model: the SGLang paper's character in JSON, for 32 programs at once.

    python -m benchmarks.jump [--programs 32] [--out benchmarks/results/cpu_jump.json]

For each mode of the engine's `jump`: seconds, steps of the engine, and passes, which are the tokens of a text that the
model was asked for. Greedy; the modes take turns, the first round warms up.

Not here: masks and their peers (`grammar.py`).
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.characters import PATTERN
from benchmarks.report import environment
from nbsglang.engine.engine import Engine

MODES = ("off", "exact", "canonical")
NAMES = (
    "Hermione Granger", "Harry Potter", "Ron Weasley", "Draco Malfoy",
    "Luna Lovegood", "Severus Snape", "Albus Dumbledore", "Sirius Black",
)  # fmt: skip
TASKS = ("Fill in the form about this character", "Describe this character", "Complete the record", "Write the entry")


def prompts(n: int) -> list[str]:
    """Different ones, as long as there are."""
    each = [f"{name} is a character in Harry Potter. {task}:\n" for task in TASKS for name in NAMES]
    return [each[i % len(each)] for i in range(n)]


def play(engine: Engine, asked: list[str]) -> dict[str, Any]:
    """One run from an empty cache."""
    engine.flush_cache()
    before, began = engine.stats(), time.perf_counter()
    outs = engine.generate(asked, max_tokens=400, temperature=0, regex=PATTERN)
    seconds = time.perf_counter() - began
    n_tokens, n_jumped = sum(len(out.ids) for out in outs), sum(out.usage.jumped_tokens for out in outs)
    return {
        "seconds": seconds,
        "steps": int(engine.stats()["steps"] - before["steps"]),
        "tokens": n_tokens,
        "jumped": n_jumped,
        "passes_per_text": (n_tokens - n_jumped) / len(asked),
        "full_matches": sum(re.fullmatch(PATTERN, out.text) is not None for out in outs),
        "ids": [out.ids for out in outs],
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms up")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    asked = prompts(given.programs)
    runs: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
    for _ in range(given.rounds + 1):
        for mode in MODES:
            with Engine("smollm2", jump=mode, kv_tokens=40_000) as engine:  # type: ignore[arg-type]
                engine.generate("Hello", max_tokens=4, temperature=0, regex="[a-z]+")
                runs[mode].append(play(engine, asked))
    results: dict[str, Any] = {}
    for mode in MODES:
        timed = runs[mode][1:]
        seconds = [run["seconds"] for run in timed]
        results[mode] = {key: value for key, value in timed[0].items() if key != "ids"}
        results[mode] |= {"seconds": round(statistics.median(seconds), 3), "runs": [round(s, 3) for s in seconds]}
        results[mode]["equal_to_off"] = sum(a == b for a, b in zip(timed[0]["ids"], runs["off"][1]["ids"], strict=True))
        print(mode, results[mode], flush=True)
    if given.out:
        about = {"engine": "nbsglang, smollm2 on a CPU", **environment(), "command": "python -m benchmarks.jump"}
        about["programs"] = given.programs
        given.out.write_text(json.dumps(about | {"modes": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
