"""Times contestants on a workload: a warm-up with other text before each run, a cold cache, and the median counts.

Not here: what is compared with what (`cpu.py`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.workloads import Outcome, Workload, part


class Contestant(Protocol):
    """Has a method for each kind of workload, named like it, that takes the workload and returns an Outcome."""

    name: str

    def reset(self) -> None:
        """Forget what was computed before."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure.

    `runs` runs, but only one when it took longer than `slow` seconds: then noise is small beside it. `shares`:
    contestants that do the same work for each question, with nothing carried over, may do a part of the questions
    only; their time is multiplied.
    """

    runs: int = 3
    slow: float = 12.0
    shares: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (workload, contestant) -> 1 / part


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of the whole workload: the median and each run. `share` is 1 where all of it was run."""

    seconds: float
    runs: tuple[float, ...]
    share: int
    outcome: Outcome


def measure(contestant: Contestant, name: str, workload: Workload, warm_up: Workload, plan: Plan) -> Measured:
    """One contestant alone; see `measure_all`."""
    return measure_all([contestant], name, workload, warm_up, plan)[contestant.name]


def measure_all(
    contestants: Sequence[Contestant], name: str, workload: Workload, warm_up: Workload, plan: Plan
) -> dict[str, Measured]:
    """All contestants in turns, round by round, so that a machine that is slow for a while is so for each.

    Raises ValueError when one did not generate as many tokens as it should.
    """
    shares = {c.name: plan.shares.get((name, c.name), 1) for c in contestants}
    works = {n: part(workload, share) if share > 1 else workload for n, share in shares.items()}
    runs: dict[str, list[tuple[float, Outcome]]] = {c.name: [] for c in contestants}
    for _ in range(plan.runs):
        for contestant in contestants:
            mine = runs[contestant.name]
            if not mine or mine[0][0] < plan.slow:
                _once(contestant, warm_up)
                mine.append(_once(contestant, works[contestant.name]))
    return {n: _measured(n, name, works[n], shares[n], mine) for n, mine in runs.items()}


def _measured(who: str, name: str, work: Workload, share: int, runs: list[tuple[float, Outcome]]) -> Measured:
    for _, outcome in runs:
        if outcome.n_generated != work.n_generated:
            raise ValueError(f"{who} made {outcome.n_generated} tokens of {name}, not {work.n_generated}")
    times = [seconds * share for seconds, _ in runs]
    median = statistics.median_low(times)
    return Measured(median, tuple(times), share, runs[times.index(median)][1])


def _once(contestant: Contestant, workload: Workload) -> tuple[float, Outcome]:
    contestant.reset()
    start = time.perf_counter()
    outcome: Outcome = getattr(contestant, workload.kind)(workload)
    return time.perf_counter() - start, outcome
