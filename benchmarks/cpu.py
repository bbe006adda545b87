"""The benchmarks on a CPU: workloads of language-model programs, ours beside what else one can do with transformers.

    python -m benchmarks.cpu [--only NAME] [--quick] [--runs 3] [--full] [--chunk-tokens N] [--out FILE]

All contestants use one live module (smollm2, float32), the same texts and the same threads, one after the other in
one process; all generate the same number of tokens, with the end token ruled out. Where generation is greedy, what
they wrote is compared.

Not here: the GPU, and serving engines.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import torch

import nbsglang as sgl
from benchmarks import report
from benchmarks.batched import Batched
from benchmarks.by_hand import ByHand
from benchmarks.guided import Guided, Unavailable
from benchmarks.loop import Loop
from benchmarks.measure import Contestant, Measured, Plan, measure_all
from benchmarks.optimum import hit_rate, n_gens, needed, optimum
from benchmarks.ours import Ours
from benchmarks.overhead import overhead
from benchmarks.workloads import (
    FULL,
    NAMES,
    QUICK,
    WARM_UP,
    Outcome,
    SelfConsistency,
    Sizes,
    Workload,
    build,
    token_counts,
)

# These would take minutes for all samples and questions, each of which is the same work as the others.
_SHARES = {("self_consistency", "loop"): 4, ("few_shot", "loop"): 8, ("few_shot", "batch"): 8}
_GREEDY_WITH = ("loop", "by_hand")  # contestants whose greedy text must be ours


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    begun, options = time.perf_counter(), _options(arguments)
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore", message=".*past_key_values.*")  # renamed in transformers 5.24 only
    from nbsglang.engine.load import load

    loaded = load("smollm2")
    chunk = options.chunk_tokens
    with sgl.Engine(model=loaded.module, tokenizer=loaded.tokenizer, log=sgl.EventLog(), chunk_tokens=chunk) as engine:
        print(f"{options.threads} threads; the engine computes {chunk or 'about 0.8 s of'} prompt tokens a step")
        contestants = enter(engine, loaded.module, loaded.tokenizer)
        plan = Plan(options.runs, shares={} if options.full or options.quick else _SHARES)
        sizes = QUICK if options.quick else FULL
        names = [options.only] if options.only else NAMES
        results = {name: run(name, contestants, loaded.tokenizer, sizes, plan) for name in names}
    if options.out:
        _write(
            options.out,
            {**report.environment(), "chunk_tokens": chunk, "workloads": {n: _for_json(r) for n, r in results.items()}},
        )
    print(f"\n{time.perf_counter() - begun:.0f} s in all\n\n{report.table(results)}")


def enter(engine: sgl.Engine, module: Any, tokenizer: Any) -> list[Contestant]:
    """All contestants that can take part; ours is the first."""
    contestants: list[Contestant] = [Ours(engine), Loop(module, tokenizer), Batched(module, tokenizer)]
    contestants.append(ByHand(module, tokenizer))
    try:
        contestants.append(Guided(module, tokenizer))
    except Unavailable as why:
        print(f"without guidance: {why}")
    return contestants


def run(name: str, contestants: Sequence[Contestant], tokenizer: Any, sizes: Sizes, plan: Plan) -> dict[str, Any]:
    """One workload with all contestants: their times, the hit rate and its optimum, what was compared."""
    workload, small = build(name, tokenizer, sizes), build(name, tokenizer, WARM_UP, seed=1)
    print(f"\n{name}: tokens {dict(token_counts(workload, tokenizer))}, generated {workload.n_generated}", flush=True)
    measured = measure_all(contestants, name, workload, small, plan)
    for contestant in contestants:
        done = measured[contestant.name]
        first = f", first token {done.outcome.first_token_s:.2f} s" if done.outcome.first_token_s else ""
        runs = ", ".join(f"{seconds:.2f}" for seconds in done.runs)
        print(f"  {contestant.name:9}{done.seconds:8.2f} s{first}   [{runs}]", flush=True)
    ours = contestants[0]
    assert isinstance(ours, Ours)
    prompts = needed(workload, measured[ours.name].outcome, tokenizer)
    result: dict[str, Any] = {
        "contestants": {n: _times(m) for n, m in measured.items()},
        "hit_rate": hit_rate(ours.counters, prompts, n_gens(workload)),
        "optimum": optimum(prompts),
    }
    print(f"  hit rate {result['hit_rate']:.2%}, optimum {result['optimum']:.2%}")
    result["equal"] = compare(name, workload, contestants, measured)
    if name == "plain":
        shares = overhead(ours, workload)
        result["overhead"] = shares._asdict()
        print(
            f"  tree and scheduler {shares.tree_and_scheduler:.2%} of the time (wanted: < 2 %), the model "
            f"{shares.model:.1%}, all of commit {shares.commit:.1%}, elsewhere {shares.elsewhere:.1%}"
        )
    return result


def compare(
    name: str, workload: Workload, contestants: Sequence[Contestant], measured: dict[str, Measured]
) -> dict[str, str]:
    """Ours against others where nothing is random; a sampled workload is run once more, greedily, with two samples."""
    outcomes: dict[str, Outcome] = {n: m.outcome for n, m in measured.items()}
    if isinstance(workload, SelfConsistency):
        work = replace(workload, n=2, temperature=0.0)
        chosen = [c for c in contestants if c.name in ("ours", *_GREEDY_WITH)]
        outcomes = {c.name: getattr(c, work.kind)(work) for c in chosen}
    equal = {}
    for other in _GREEDY_WITH:
        if other in outcomes:
            pairs = list(zip(outcomes["ours"].texts, outcomes[other].texts, strict=False))
            equal[other] = f"{sum(a == b for a, b in pairs)} of {len(pairs)}"
            print(f"  {name}: greedy output equal to {other}: {equal[other]}")
    return equal


def _times(measured: Measured) -> dict[str, Any]:
    first = measured.outcome.first_token_s
    return {
        "seconds": round(measured.seconds, 4),
        "runs": [round(seconds, 4) for seconds in measured.runs],
        "share": measured.share,
        **({"ttft": round(first, 4)} if first is not None else {}),
    }


def _for_json(result: dict[str, Any]) -> dict[str, Any]:
    """Contestants beside the rates, as plain numbers."""
    rest = {key: value for key, value in result.items() if key != "contestants"}
    return {**result["contestants"], **rest}


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description="Benchmarks on a CPU")
    parser.add_argument("--only", choices=NAMES, help="one workload")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to see that it runs, not how fast")
    parser.add_argument("--full", action="store_true", help="loop and batch do whole workloads, not a part")
    parser.add_argument("--runs", type=int, default=3, help="of each contestant; the median counts")
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1, help="of torch")
    parser.add_argument("--chunk-tokens", type=int, help="of the engine; its own choice if not given")
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
