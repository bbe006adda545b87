"""The command: workloads on one engine with random weights, a table, and a JSON file with a picture beside it.

    python -m benchmarks.gpu --model llama8b --out benchmarks/results/h200_nbsglang.json
        [--only NAME ...] [--scale 1.0] [--engine ours|language|transformers|vllm|sglang] [--option NAME=VALUE ...]

`--option` goes to the engine's constructor (`--option kv_tokens=200000`). json runs only when it is asked for, on our
engine with `--tokenizer` (a folder, or smollm2) and `--vocab` (49152 for smollm2); `--option jump=off` has no jumps.

Not here: the ablations (`ablation.py`), the peers' committed figures (`goals.py`).
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu import report
from benchmarks.gpu.engines import ENGINES, Opened, Unavailable, open_player
from benchmarks.gpu.measure import measure
from benchmarks.gpu.shapes import SHAPES, shape_of
from benchmarks.gpu.workloads import DEFAULT, NAMES


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0, or 3 where the engine is not installed."""
    options = _options(arguments)
    shape = shape_of(options.model, options.vocab)
    with asyncio.Runner() as loop:
        try:
            opened = open_player(options.engine, shape, options.device, loop, options.option, options.tokenizer)
        except Unavailable as why:
            print(f"skipped: {why}")
            return 3
        print(f"{options.engine}: first token {opened.start_up_s:.2f} s after the constructor", flush=True)
        print(f"prepared in {opened.prepare_s:.2f} s more", flush=True)
        try:
            workloads = _all(opened, options, shape.vocab)
        finally:
            opened.player.close()
    comparable = options.scale == 1.0 and options.model == "llama8b" and options.device.startswith("cuda")
    print(f"\n{report.table(workloads, comparable)}")
    if options.out:
        facts = report.environment(_title(options), options.device, options.commit)
        starts = {name: round(getattr(opened, name), 2) for name in ("build_s", "start_up_s", "prepare_s")}
        _write(options.out, {**facts, "model": options.model, "scale": options.scale, **starts, "workloads": workloads})
        if comparable:
            options.out.with_suffix(".svg").write_text(report.picture(workloads))
    return 0


def _all(opened: Opened, options: argparse.Namespace, n_vocab: int) -> dict[str, dict[str, Any]]:
    workloads = {}
    for name in options.only or DEFAULT:
        if name == "json" and not (options.engine == "ours" and options.tokenizer):
            print("json: skipped, it runs on ours with --tokenizer")
            continue
        result = measure(opened.player, name, n_vocab, options.scale, options.runs, options.warm_up)
        workloads[name] = result.for_json()
        match = "" if result.valid is None else f", {result.valid} of {result.n_prompts} texts match in full"
        print(f"{name:18}{result.seconds:9.3f} s, {result.out_s:8.0f} tokens/s{match}", flush=True)
    return workloads


def _title(options: argparse.Namespace) -> str:
    name = "nbsglang" if options.engine in ("ours", "language") else options.engine
    through = " through its language" if options.engine == "language" else ""
    return f"{name}{through}, {options.model} with random weights, {options.device}"


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def pair(text: str) -> tuple[str, Any]:
    """`NAME=VALUE` with a value as Python writes it, or a text."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="Benchmarks of the GPU step")
    cuda = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--model", choices=SHAPES, default="llama8b", help="the shape; weights are random")
    parser.add_argument("--engine", choices=ENGINES, default="ours")
    parser.add_argument("--only", choices=NAMES, nargs="+", help="these workloads; json runs only when it is named")
    parser.add_argument("--scale", type=float, default=1.0, help="of programs, samples and lengths; goals hold at 1")
    parser.add_argument("--runs", type=int, default=1, help="of each workload; the median counts")
    parser.add_argument("--warm-up", type=float, help="scale of the run with other tokens before; 0 for none")
    parser.add_argument("--device", default=cuda)
    parser.add_argument("--option", type=pair, nargs="+", default=[], help="NAME=VALUE for the engine's constructor")
    parser.add_argument("--tokenizer", help="of our engine: a folder or smollm2; not given: one character for each id")
    parser.add_argument("--vocab", type=int, help="another size of the vocabulary")
    parser.add_argument("--commit", default="", help="the commit that is measured, where there is no repository")
    parser.add_argument("--out", type=Path, help="a JSON file to write; a picture goes beside it")
    options = parser.parse_args(arguments)
    options.option = dict(options.option)
    return options


if __name__ == "__main__":
    raise SystemExit(main())
