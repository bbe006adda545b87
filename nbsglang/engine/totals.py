"""Counters of an engine's work.

Not here: who counts (`commit.py`, `step_log.py`), who shows them (`engine.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


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
