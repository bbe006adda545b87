"""The nouns that views show: nodes of the radix tree and their marks, requests, calls, streams, totals.

Not here: how they change (`tree.py`, `streams.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple


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
    """One request. `state` is queued, running, preempted or a finish reason; n_hit and n_new are prompt tokens.

    `n_cached` and `n_computed` are those of the first admission: they are what its stream counts. `jumps` says which of
    the `generated` ids a constraint forced, as (first place, how many); the last may reach beyond the end of the text.
    """

    id: int
    call_id: str
    n_prompt: int = 0
    n_hit: int = 0
    n_new: int = 0
    n_cached: int = 0
    n_computed: int = 0
    state: str = "queued"
    ended: bool = False
    admitted: bool = False
    generated: list[int] = field(default_factory=list)
    jumps: list[tuple[int, int]] = field(default_factory=list)
    over: str = ""  # the end of the prompt that the first of them spell anew


class Weighed(NamedTuple):
    """A choice of a select: its score (a natural log), its probability, and whether it was taken."""

    choice: str
    score: float
    share: float
    is_chosen: bool


@dataclass(slots=True)
class CallView:
    """One call of a stream: `kind` is gen, score or prefix; `error` is None while it runs, "" when it went well."""

    id: str
    kind: str
    name: str
    began_ns: int
    requests: list[RequestView] = field(default_factory=list)
    first_ns: int | None = None  # when its first token came
    last_ns: int | None = None
    error: str | None = None
    told: bool = False  # its variable has been set
    under: str = ""  # the constraint that its answer must match
    scores: tuple[Weighed, ...] = ()  # of the choices of a score, the likeliest first

    @property
    def state(self) -> Literal["running", "waiting", "done", "failed", "cancelled"]:
        """What the call does: it waits while all of its requests do; a backend without requests runs at once."""
        if self.error is None:
            waits = bool(self.requests) and all(r.state in {"queued", "preempted"} for r in self.requests)
            return "waiting" if waits else "running"
        return "done" if not self.error else "cancelled" if self.error.startswith("Cancelled") else "failed"


PartKind = Literal["literal", "gen", "choice", "partial", "value", "role"]


class Part(NamedTuple):
    """A piece of a stream.

    `kind` is literal, gen or choice; "partial" is what a call had written when it ended badly; a "value" was set
    by the program and is no text of the prompt, and so is the name of a "role" whose message begins. `under` is the
    constraint that the text was written under, "" where there was none; `scores` are those of the choices of which a
    "choice" is one.
    """

    kind: PartKind
    name: str
    text: str
    under: str = ""
    scores: tuple[Weighed, ...] = ()


@dataclass(slots=True)
class StreamView:
    """One stream of a program: `source` is its run's, `depth` counts the forks above it, tokens are those so far.

    `ended` says how it ended (done, joined, failed, cancelled); "" while more may come.
    """

    id: str
    parent: str = ""
    branch: int = 0
    label: str = ""
    source: str = ""
    depth: int = 0
    began_ns: int = 0
    ended_ns: int | None = None
    ended: str = ""
    error: str = ""
    parts: list[Part] = field(default_factory=list)
    calls: dict[str, CallView] = field(default_factory=dict)
    n_cached: int = 0
    n_computed: int = 0
    n_generated: int = 0
    first_token_s: float | None = None  # from the submission of the call that wrote it

    @property
    def text(self) -> str:
        """All text so far: literals, and what calls wrote."""
        return "".join(part.text for part in self.parts if part.kind != "value")

    @property
    def state(self) -> str:
        """running, waiting (for the engine, or for the program), done, joined, failed or cancelled."""
        if self.ended:
            return self.ended
        if self.error:
            return "cancelled" if self.error.startswith("Cancelled") else "failed"
        return "running" if any(call.state == "running" for call in self.calls.values()) else "waiting"

    @property
    def open_call(self) -> CallView | None:
        """The gen or select that is being answered; hints do not count."""
        return next((c for c in self.calls.values() if c.error is None and c.kind != "prefix"), None)

    @property
    def tokens_per_s(self) -> float | None:
        """Generated tokens per second of writing; None before there are two."""
        seconds, n = 0.0, self.n_generated
        for call in self.calls.values():
            if call.first_ns is not None and call.last_ns is not None:
                seconds += (call.last_ns - call.first_ns) / 1e9
                n -= len(call.requests)  # the first token of each costs the prefill, not the writing
        return n / seconds if n > 0 and seconds > 0 else None


@dataclass(slots=True)
class Totals:
    """Counts of tokens over all finished requests, of tokens that were jumped over, and of changes of the tree."""

    n_requests: int = 0
    n_prompt: int = 0
    n_cached: int = 0
    n_generated: int = 0
    n_jumped: int = 0
    n_evicted: int = 0
    n_splits: int = 0
    n_preempted: int = 0

    @property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that were in the tree; 0.0 before any."""
        return self.n_cached / self.n_prompt if self.n_prompt else 0.0
