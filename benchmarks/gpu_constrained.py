"""Tokens a second under a constraint that no text comes to the end of, and under none, at equal numbers of tokens.

    python -m benchmarks.gpu_constrained --out benchmarks/results/h200_constrained.json [--model llama8b] [--rows 64]

Random weights; the texts start together and are decoded to the same length, by the engine's core itself, prefill left
out. Two vocabularies: one of as many single characters as the shape has ids, half of which the constraint allows, and
smollm2's words. "first" is the first run, whose masks are all new. "landing first" is the same without a step ahead.

Not here: constraints with an end and jumps (the workload json of `benchmarks/gpu`), masks alone (`grammar.py`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu import report
from benchmarks.gpu.alphabet import tokenizer as alphabet
from benchmarks.gpu.shapes import SHAPES, Shape, random_model
from nbsglang.calls import Constraint, SamplingParams
from nbsglang.engine.config import Config
from nbsglang.engine.core import Core
from nbsglang.engine.grammar.constraints import Constraints
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.load import load
from nbsglang.engine.model import Model
from nbsglang.engine.request import Request
from nbsglang.engine.scheduler import Limits
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import NbsglangError

N_WORDS = 49_152  # of smollm2
WORDS = r"[\w\d\s]{4000,9000}"  # no text is so long, so none may end
PARTS = ("plan", "pack", "run", "commit")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of a step, tokens of a prompt and of a text, runs of which the median counts."""

    rows: int
    prompt: int
    new: int
    runs: int


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its rate, and milliseconds of a step, by part; `run` launches and waits."""

    tokens_s: float
    step_ms: float
    parts_ms: dict[str, float]


class Bench:
    """A core of one model and one vocabulary; with `ahead` steps are launched before the last has landed."""

    def __init__(self, model: Model, words: Tokenizer, sizes: Sizes, ahead: bool) -> None:
        n_slots = sizes.rows * (sizes.prompt + sizes.new + 8)
        limits = Limits(sizes.rows, 1 << 20)
        self._model, self._sizes = model, sizes
        self._core = Core(model, words, n_slots, limits, Config(), lambda body: None, ahead=ahead)

    def run(self, temperature: float, matcher: Callable[[], Matcher | None]) -> Run:
        """Decode all texts from an empty cache. Raises ValueError where one is shorter than asked for."""
        core, sizes = self._core, self._sizes
        core.flush()
        requests = self._submit(temperature, matcher)
        while any(request.n_new < 4 for request in requests):
            self._step()
        before, began = asdict(core.totals), time.perf_counter()
        while core.has_work:
            self._step()
        seconds = time.perf_counter() - began
        if any(request.n_new != sizes.new for request in requests):
            raise ValueError("a text came to its end before the others")
        spent = {name: value - before[name] for name, value in asdict(core.totals).items()}
        parts = {part: round(spent[f"{part}_s"] / spent["steps"] * 1e3, 3) for part in PARTS}
        return Run(spent["generated_tokens"] / seconds, seconds / spent["steps"] * 1e3, parts)

    def _submit(self, temperature: float, matcher: Callable[[], Matcher | None]) -> list[Request]:
        rng, sizes = np.random.default_rng(0), self._sizes
        requests = []
        for i in range(sizes.rows):
            row = np.zeros(sizes.prompt + sizes.new + 8, np.int32)
            row[: sizes.prompt] = rng.integers(0, self._model.n_vocab, sizes.prompt)
            params = SamplingParams(temperature=temperature, max_tokens=sizes.new, ignore_eos=True)
            made = Request(i, str(i), row, sizes.prompt, sizes.prompt - 1, sizes.new, params, i, matcher=matcher())
            requests.append(made)
            self._core.submit(made)
        return requests

    def _step(self) -> None:
        outputs = self._core.step()
        errors = [output.error for output in outputs if output.error is not None]
        if errors:
            raise errors[0]
        self._model.between_steps()

    def close(self) -> None:
        """Give the pool back."""
        self._core.release()


def compared(
    model: Model, words: Tokenizer, pattern: str, sizes: Sizes, temperatures: Sequence[float]
) -> dict[str, Any]:
    """One vocabulary: rates with and without the constraint, in turns, and under it without a step ahead."""
    constraints = Constraints(words.bytes_table, words.eos_ids, words.special_ids)
    found: dict[str, Any] = {"n_vocab": model.n_vocab, "pattern": pattern}

    def bound() -> Matcher:
        return constraints.compile(Constraint("regex", pattern))

    def free() -> None:
        return None

    with opened(model, words, sizes, ahead=True) as bench, opened(model, words, sizes, ahead=False) as landing:
        for temperature in temperatures:
            first = bench.run(temperature, bound)
            bench.run(temperature, free)
            pairs = [(bench.run(temperature, free), bench.run(temperature, bound)) for _ in range(sizes.runs)]
            found[f"temperature {temperature:g}"] = {
                "free": middle([pair[0] for pair in pairs]),
                "bound": middle([pair[1] for pair in pairs]),
                "ratio": round(statistics.median(pair[1].tokens_s / pair[0].tokens_s for pair in pairs), 4),
                "first": middle([first]),
            }
        for temperature in temperatures:  # apart: captured steps belong to a pool
            runs = [landing.run(temperature, bound) for _ in range(sizes.runs + 1)]
            found[f"temperature {temperature:g}"]["landing_first"] = middle(runs[1:])
    return found


@contextmanager
def opened(model: Model, words: Tokenizer, sizes: Sizes, ahead: bool) -> Iterator[Bench]:
    """A bench that is closed at the end."""
    bench = Bench(model, words, sizes, ahead)
    try:
        yield bench
    finally:
        bench.close()


def middle(runs: Sequence[Run]) -> dict[str, Any]:
    """The run with the median rate."""
    run = sorted(runs, key=lambda run: run.tokens_s)[(len(runs) - 1) // 2]
    return {"tokens_s": round(run.tokens_s, 1), "step_ms": round(run.step_ms, 3), "parts_ms": run.parts_ms}


def characters(shape: Shape) -> tuple[Any, str]:
    """A tokenizer of single characters, as many as the shape has ids, and a constraint that allows half of them."""
    return alphabet(shape.vocab), f"[\\U00010000-\\U{0x10000 + shape.vocab // 2:08x}]{{4000,9000}}"


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """All vocabularies that can be had."""
    shape = SHAPES[given.model]
    shape = replace(shape, layers=given.layers or shape.layers, context=16_384)
    sizes = Sizes(given.rows, given.prompt, given.new, given.runs)
    found: dict[str, Any] = {}
    for name in given.only:
        of_words = name == "smollm2"
        used = replace(shape, vocab=N_WORDS if of_words else shape.vocab)
        module = random_model(used, given.device)
        tokenizer, pattern = (None, WORDS) if of_words else characters(used)
        try:
            tokenizer = load(module, tokenizer or "smollm2").tokenizer
        except NbsglangError as error:
            print(f"{name}: skipped, {error}")
            continue
        model = Model(module, given.model, n_captured=given.rows)
        words = Tokenizer(tokenizer, n_vocab=model.n_vocab)
        found[name] = compared(model, words, pattern, sizes, given.temperatures)
        model.release()
        del model, module
        if given.device.startswith("cuda"):
            torch.cuda.empty_cache()
    return found


def table(found: dict[str, Any]) -> str:
    """Tokens a second."""
    columns = ("free", "bound", "first", "landing_first")
    lines = [f"{'tokens/s':28}" + "".join(f"{name.replace('_', ' '):>16}" for name in columns) + f"{'bound/free':>12}"]
    for name, case in found.items():
        for how, rates in case.items():
            if isinstance(rates, dict):
                values = "".join(f"{rates[column]['tokens_s']:>16.0f}" for column in columns)
                lines.append(f"{name + ', ' + how:28}{values}{rates['ratio']:>12.2%}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    given = _options(arguments)
    found = measure(given)
    facts = report.environment(
        f"nbsglang, {given.model} with random weights, {given.device}", given.device, given.commit, __spec__.name
    )
    sizes = {"rows": given.rows, "prompt": given.prompt, "new": given.new, "runs": given.runs}
    result = {**facts, "model": given.model, **sizes, "vocabularies": found}
    print(json.dumps(found, indent=1))
    print(table(found))
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    parser.add_argument("--model", choices=SHAPES, default="llama8b", help="the shape; weights are random")
    parser.add_argument("--layers", type=int, help="another number of layers")
    parser.add_argument("--rows", type=int, default=64, help="texts at once")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5, help="of each kind; the median counts")
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--only", choices=("characters", "smollm2"), nargs="+", default=["characters", "smollm2"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--commit", default="", help="the commit that is measured, where there is no repository")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
