"""The nouns that views show: nodes of the radix tree, requests, streams, totals.

Not here: how they change (`fold.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """An edge of the radix tree with its token ids. `parent` 0 is the root."""

    id: int
    parent: int
    tokens: list[int]
    locks: int = 0
    tick: int = 0


@dataclass(slots=True)
class RequestView:
    """One request. `state` is queued, running, preempted or a finish reason; n_hit and n_new are prompt tokens."""

    id: int
    call_id: str
    n_prompt: int = 0
    n_hit: int = 0
    n_new: int = 0
    state: str = "queued"
    ended: bool = False
    generated: list[int] = field(default_factory=list)


@dataclass(slots=True)
class StreamView:
    """One stream of a program. `parts` are (name, text): a variable that was set, or literal text (no name)."""

    id: str
    parent: str = ""
    branch: int = 0
    label: str = ""
    state: str = "running"
    parts: list[tuple[str, str]] = field(default_factory=list)
    calls: dict[str, str] = field(default_factory=dict)  # call id -> "running", "done" or the error

    @property
    def text(self) -> str:
        """All text so far: literals and values."""
        return "".join(text for _, text in self.parts)


@dataclass(slots=True)
class Totals:
    """Counts of tokens over all finished requests, and of changes of the tree."""

    n_requests: int = 0
    n_prompt: int = 0
    n_cached: int = 0
    n_generated: int = 0
    n_evicted: int = 0
    n_splits: int = 0
    n_preempted: int = 0

    @property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that were in the tree; 0.0 before any."""
        return self.n_cached / self.n_prompt if self.n_prompt else 0.0
