"""Our mechanisms taken away one by one, and what that does to the hit rate and the time.

    python -m benchmarks.gpu.ablation [--model llama8b] [--only NAME ...] [--scale 1.0] [--pool 0.3] [--out FILE]

The pool holds a share of the tokens that a cache without limits would hold at the end, so that order and eviction
count; with room for everything most orders are as good. Each variant has an engine of its own on the same module.
`no hint` is measured through the language, which is who hints, and so is beside `language`; a request that shares an
uncomputed prefix with one that computes it waits for it in any case, so that in `prefix` order a hint changes the time
and hardly the hit rate. `no hint, no tree` shows what a hint does where nobody waits: without it, branches share
nothing.

Not here: comparisons with other engines (`__main__.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu import report
from benchmarks.gpu.alphabet import tokenizer
from benchmarks.gpu.flat import flat_table
from benchmarks.gpu.measure import Result, play, result_of
from benchmarks.gpu.ours import Ours, open_engine
from benchmarks.gpu.players import Coroutines, Language, Player
from benchmarks.gpu.shapes import SHAPES, random_model, shape_of
from benchmarks.gpu.workloads import DEFAULT, Work, build

WORKLOADS = ("few_shot", "tree_of_thought", "judge", "agents")


@dataclass(frozen=True, slots=True)
class Variant:
    """What is taken away: by options of the engine, by a table for the tree, in the programs, in the language."""

    options: Mapping[str, Any] = field(default_factory=dict)
    flat: bool = False
    parallel: bool = True
    language: bool = False
    hint: bool = True


VARIANTS = {
    "full": Variant(),
    "no cache": Variant({"caching": False}),
    "no tree": Variant(flat=True),
    "fcfs": Variant({"policy": "fcfs"}),
    "random order": Variant({"policy": "random"}),
    "no parallelism": Variant(parallel=False),
    "language": Variant(language=True),
    "no hint": Variant(language=True, hint=False),
    "language, no tree": Variant(language=True, flat=True),
    "no hint, no tree": Variant(language=True, hint=False, flat=True),
}


def ablate(
    work: Work,
    module: Any,
    n_vocab: int,
    pool: float | None = 0.3,
    names: Sequence[str] = tuple(VARIANTS),
    options: Mapping[str, Any] | None = None,
    warm_up: Work | None = None,
) -> dict[str, Result]:
    """Every variant on one workload. `pool` is the share of the unique tokens that fits (None: all does)."""
    given = dict(options or {})
    if pool is not None:
        given["kv_tokens"] = pool_size(run(work, VARIANTS["full"], module, n_vocab, given), pool)
    return {name: run(work, VARIANTS[name], module, n_vocab, given, warm_up) for name in names}


def run(
    work: Work,
    variant: Variant,
    module: Any,
    n_vocab: int,
    options: Mapping[str, Any] | None = None,
    warm_up: Work | None = None,
) -> Result:
    """One variant on one workload, with an engine of its own."""
    with ExitStack() as stack:
        loop = stack.enter_context(asyncio.Runner())
        engine = open_engine(module, tokenizer(n_vocab), **{**(options or {}), **variant.options})
        stack.enter_context(engine)
        if variant.flat:
            stack.enter_context(flat_table(engine))
        player: Player = Coroutines(Ours(engine), loop, variant.parallel)
        if variant.language:
            player = Language(engine, variant.hint)
        if warm_up is not None:
            play(player, warm_up)
            engine.prepare()
        return result_of(work, [play(player, work)])


def pool_size(unlimited: Result, share: float) -> int:
    """Tokens of a pool with this share of the unique ones, and room for the longest request."""
    return max(round(unlimited.n_unique * share), unlimited.n_longest)


def table(results: Mapping[str, Result]) -> str:
    """One workload: the variants beside the whole."""
    whole = results.get("full")
    lines = [f"{'':20}{'seconds':>9}{'x full':>8}{'hit rate':>10}{'optimum':>9}{'at once':>9}"]
    for name, result in results.items():
        times = f"{result.seconds / whole.seconds:>8.2f}" if whole else f"{'-':>8}"
        rates = f"{result.hit_rate or 0.0:>10.2%}{result.optimum:>9.2%}"
        lines.append(f"{name:20}{result.seconds:>9.2f}{times}{rates}{result.peak:>9}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    from benchmarks.gpu.__main__ import pair

    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.ablation", description="Mechanisms taken away")
    cuda = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--model", choices=SHAPES, default="llama8b")
    parser.add_argument("--only", choices=DEFAULT, nargs="+", default=WORKLOADS)
    parser.add_argument("--variants", choices=VARIANTS, nargs="+", default=tuple(VARIANTS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--pool", type=float, default=0.3, help="share of the unique tokens that fits; 0: all does")
    parser.add_argument("--device", default=cuda)
    parser.add_argument("--option", type=pair, nargs="+", default=[], help="NAME=VALUE for the engine's constructor")
    parser.add_argument("--commit", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    shape = shape_of(options.model)
    module = random_model(shape, options.device)
    found: dict[str, dict[str, Any]] = {}
    for name in options.only:
        work = build(name, shape.vocab, 0, options.scale)
        small = build(name, shape.vocab, 1, min(options.scale, 0.1))
        results = ablate(work, module, shape.vocab, options.pool or None, options.variants, dict(options.option), small)
        print(f"\n{name}\n{table(results)}", flush=True)
        found[name] = {variant: result.for_json() for variant, result in results.items()}
    if options.out:
        facts = report.environment(
            f"nbsglang, {options.model}", options.device, options.commit, "benchmarks.gpu.ablation"
        )
        options.out.parent.mkdir(parents=True, exist_ok=True)
        whole = {**facts, "model": options.model, "scale": options.scale, "pool": options.pool, "workloads": found}
        options.out.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
