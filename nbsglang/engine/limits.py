"""How much a step and the engine take on.

Not here: how much that is for a model and a machine (`sizes.py`), who keeps to it (`scheduler.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a step and of admission.

    `max_batch` requests run at once; a step computes at most `chunk_tokens` prompt tokens. `lookahead`
    generated tokens of each running request are counted as taken when another is admitted. At most
    `max_passed` later arrivals overtake a request. The `window` oldest waiting requests are ordered. A step with
    prompt tokens left over has a multiple of `tile` rows in all.
    """

    max_batch: int
    chunk_tokens: int
    lookahead: int = 64
    max_passed: int = 64
    window: int = 256
    tile: int = 1
