"""Counters of an engine's work.

Not here: who counts (`token_log.py`, `step_log.py`), who asks for them (`engine.py`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from nbsglang.engine.scheduler import Scheduler


@dataclass(slots=True)
class Totals:
    """Counters since the engine began, and seconds spent in the four parts of its steps.

    Of the computed tokens, the prefilled ones are those of prompts, and what was computed anew after a preemption.
    """

    steps: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    plan_s: float = 0.0
    pack_s: float = 0.0
    run_s: float = 0.0
    commit_s: float = 0.0


def stats(totals: Totals, scheduler: Scheduler) -> dict[str, float]:
    """What `Engine.stats` tells: the counters, and the state of queue, pool and tree."""
    slots, tree = scheduler.slots, scheduler.tree
    return {
        **asdict(totals),
        "preempted": scheduler.n_preempted,
        "hit_rate": totals.cached_tokens / totals.prompt_tokens if totals.prompt_tokens else 0.0,
        "kv_tokens": slots.n_slots,
        "kv_free": slots.n_free,
        "kv_cached": tree.n_tokens,
        "kv_locked": tree.n_locked,
        "running": len(scheduler.running),
        "waiting": len(scheduler.waiting),
    }
