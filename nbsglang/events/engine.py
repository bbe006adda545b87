"""The life of an engine and of its requests: loading, steps, from the queue to the end.

Not here: the tokens that requests receive (`tokens.py`), where their prompts are cached (`tree.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from nbsglang.events.fields import Word


class Loading(NamedTuple):
    """A model is being made ready: `what` is done up to `done` of `total` (bytes or steps; 0: unknown)."""

    what: str
    done: int
    total: int


class Ready(NamedTuple):
    """The engine `name` serves `model` with a KV pool of `n_slots` tokens."""

    name: Word
    model: str
    device: Word
    dtype: Word
    n_slots: int


class Queued(NamedTuple):
    """Request `request` of call `call_id` waits with `n_prompt` tokens."""

    request: int
    call_id: Word
    n_prompt: int


class Admitted(NamedTuple):
    """The request runs: `n_hit` tokens are in the tree, up to node `node`; `n_new` must be computed."""

    request: int
    call_id: Word
    n_hit: int
    n_new: int
    node: int


class Step(NamedTuple):
    """One forward pass is over. Counts of tokens and requests, seconds of its four parts, the pool afterwards."""

    step: int
    n_prefill: int
    n_decode: int
    n_running: int
    n_waiting: int
    n_free: int
    n_evictable: int
    n_locked: int
    plan_s: float
    pack_s: float
    run_s: float
    commit_s: float


class Preempted(NamedTuple):
    """The request gave its memory back and waits again; `n_tokens` were computed."""

    request: int
    call_id: Word
    n_tokens: int


class Finished(NamedTuple):
    """The request ended: `reason` is a finish reason, "cancelled" or "error"."""

    request: int
    call_id: Word
    reason: Word
    n_prompt: int
    n_cached: int
    n_generated: int


class Failed(NamedTuple):
    """A call or a step failed; the message says why."""

    call_id: Word
    message: str


class Control(NamedTuple):
    """Something from outside: "flush", "weights changed", "prompt encoded anew", "closed" and the like."""

    what: Word
    detail: str


EngineBody = Loading | Ready | Queued | Admitted | Step | Preempted | Finished | Failed | Control
