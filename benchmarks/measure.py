"""Times a contestant on a workload: a warm-up with other text, then runs from a cold cache, of which the median counts.

Not here: what is compared with what (`cpu.py`).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
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
    slow: float = 8.0
    shares: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (workload, contestant) -> 1 / part


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of the whole workload: the median and each run. `share` is 1 where all of it was run."""

    seconds: float
    runs: tuple[float, ...]
    share: int
    outcome: Outcome


def measure(contestant: Contestant, name: str, workload: Workload, warm_up: Workload, plan: Plan) -> Measured:
    """Raises ValueError when the contestant did not generate as many tokens as it should."""
    share = plan.shares.get((name, contestant.name), 1)
    work = part(workload, share) if share > 1 else workload
    _once(contestant, warm_up)
    runs: list[tuple[float, Outcome]] = []
    while len(runs) < plan.runs and (not runs or runs[0][0] < plan.slow):
        runs.append(_once(contestant, work))
    for _, outcome in runs:
        if outcome.n_generated != work.n_generated:
            raise ValueError(f"{contestant.name} made {outcome.n_generated} tokens of {name}, not {work.n_generated}")
    times = [seconds * share for seconds, _ in runs]
    median = statistics.median_low(times)
    return Measured(median, tuple(times), share, runs[times.index(median)][1])


def _once(contestant: Contestant, workload: Workload) -> tuple[float, Outcome]:
    contestant.reset()
    start = time.perf_counter()
    outcome: Outcome = getattr(contestant, workload.kind)(workload)
    return time.perf_counter() - start, outcome
