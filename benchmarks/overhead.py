"""How much of a run is the engine's own bookkeeping: plan, pack, and the part of commit that is tree and scheduler.

Not here: the engine's counters, of which commit is one with sampling and detokenizing in it; so one extra run has its
scheduler's methods timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import nbsglang as sgl
from benchmarks.ours import Ours
from benchmarks.workloads import Workload

_OF_COMMIT = ("computed", "finish")  # tree inserts, unlocking, slots


class Overhead(NamedTuple):
    """Shares of the wall time of one run."""

    tree_and_scheduler: float  # plan + pack + the scheduler's part of commit
    commit: float  # all of commit: sampling and detokenizing too
    model: float
    elsewhere: float  # language, threads, encoding, events


def overhead(ours: Ours, workload: Workload) -> Overhead:
    """Run once with a cold cache and the scheduler's part of commit timed."""
    ours.reset()
    spent = [0.0]
    scheduler = _scheduler(ours.engine)
    for name in _OF_COMMIT:
        setattr(scheduler, name, _timed(getattr(scheduler, name), spent))
    try:
        before, start = ours.engine.stats(), time.perf_counter()
        getattr(ours, workload.kind)(workload)
        seconds, after = time.perf_counter() - start, ours.engine.stats()
    finally:
        for name in _OF_COMMIT:
            delattr(scheduler, name)
    plan, pack, run, commit = (after[f"{p}_s"] - before[f"{p}_s"] for p in ("plan", "pack", "run", "commit"))
    own = plan + pack + spent[0]
    return Overhead(own / seconds, commit / seconds, run / seconds, 1 - (plan + pack + run + commit) / seconds)


def _scheduler(engine: sgl.Engine) -> Any:
    return engine._loop._core.scheduler  # no public way in, and none is worth having for this


def _timed(method: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return method(*args)
        finally:
            spent[0] += time.perf_counter() - start

    return call
