"""A select's choices with their scores as an event: in bounds, however many and however long they are.

Not here: deciding (`choices.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nbsglang.events import Scored
from nbsglang.lang.choices import Decided

MAX_CHOICES = 32  # of one select, the likeliest and the one that was taken
MAX_TEXT = 120  # characters of one
IMPOSSIBLE = -1e9  # in the place of a score that is no finite number: JSON has none of these


def scored(stream_id: str, call_id: str, choices: Sequence[str], made: Decided) -> Scored:
    """The event that tells what the decision rests on."""
    scores = [score if math.isfinite(score) else IMPOSSIBLE for score in map(float, made.scores)]
    chosen = choices.index(made.decision)
    order = sorted(range(len(choices)), key=lambda at: -scores[at])
    if chosen not in order[:MAX_CHOICES]:
        order[MAX_CHOICES - 1] = chosen
    order = order[:MAX_CHOICES]
    return Scored(
        stream_id,
        call_id,
        tuple(_short(choices[at]) for at in order),
        tuple(scores[at] for at in order),
        tuple(made.probabilities[at] for at in order),
        order.index(chosen),
        len(choices),
    )


def _short(text: str) -> str:
    half = MAX_TEXT // 2
    return text if len(text) <= MAX_TEXT else f"{text[:half]}…{text[1 - half :]}"
