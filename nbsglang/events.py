"""What happens, as plain values in one bounded log; every view is a pure function of it.

Writers `emit` from any thread; readers poll `since(seq)`. Bodies hold ints, floats, strings, None and
tuples of them, so a log can be saved as JSON lines and replayed without torch. Logs hold prompts and
outputs: a saved file is private to its user (mode 0600), and `redact=True` leaves the texts out.

Not here: what views make of events (`viz/fold.py`).
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from nbsglang.errors import UsageError

# ---------------------------------------------------------------- the engine: loading, steps, requests


class Loading(NamedTuple):
    """A model is being made ready: `what` is done up to `done` of `total` (bytes or steps; 0: unknown)."""

    what: str
    done: int
    total: int


class Ready(NamedTuple):
    """The engine `name` serves `model` with a KV pool of `n_slots` tokens."""

    name: str
    model: str
    device: str
    dtype: str
    n_slots: int


class Queued(NamedTuple):
    """Request `request` of call `call_id` waits with `n_prompt` tokens."""

    request: int
    call_id: str
    n_prompt: int


class Admitted(NamedTuple):
    """The request runs: `n_hit` tokens are in the tree, up to node `node`; `n_new` must be computed."""

    request: int
    call_id: str
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


class Tokens(NamedTuple):
    """New tokens of a step: request ids and, aligned with them, the ids that each received."""

    requests: tuple[int, ...]
    ids: tuple[tuple[int, ...], ...]


class TokenTexts(NamedTuple):
    """The texts of token ids that this log has not named before."""

    ids: tuple[int, ...]
    texts: tuple[str, ...]


class Preempted(NamedTuple):
    """The request gave its memory back and waits again; `n_tokens` were computed."""

    request: int
    call_id: str
    n_tokens: int


class Finished(NamedTuple):
    """The request ended: `reason` is a finish reason, "cancelled" or "error"."""

    request: int
    call_id: str
    reason: str
    n_prompt: int
    n_cached: int
    n_generated: int


class Failed(NamedTuple):
    """A call or a step failed; the message says why."""

    call_id: str
    message: str


class Control(NamedTuple):
    """Something from outside: "flush", "weights changed", "prompt encoded anew", "closed" and the like."""

    what: str
    detail: str


# ------------------------------------------------------------------------------------- the radix tree


class NodeAdded(NamedTuple):
    """`node` hangs under `parent` (0 is the root) with these token ids on its edge."""

    node: int
    parent: int
    tokens: tuple[int, ...]
    tick: int
    request: int


class NodeExtended(NamedTuple):
    """The edge of the leaf `node` grows by these token ids."""

    node: int
    tokens: tuple[int, ...]
    tick: int
    request: int


class NodeSplit(NamedTuple):
    """`node` keeps its edge from `at` on; a new node `upper` takes the part before it and its place."""

    node: int
    upper: int
    at: int
    request: int


class NodeTouched(NamedTuple):
    """The nodes of a path were used at logical time `tick`, by a hit of `request`."""

    nodes: tuple[int, ...]
    tick: int
    request: int


class NodeLocked(NamedTuple):
    """Each node on the way from `node` to the root has `delta` more locks."""

    node: int
    delta: int


class NodeEvicted(NamedTuple):
    """The leaf `node` and its KV are gone."""

    node: int
    n_tokens: int


class Snapshot(NamedTuple):
    """The whole tree, for a reader that comes late: (id, parent, tokens, locks, tick) of each node but the root."""

    nodes: tuple[tuple[int, int, tuple[int, ...], int, int], ...]


# ---------------------------------------------------------------------------------------- the programs


class StreamBegan(NamedTuple):
    """A stream of a program exists; `parent` is the stream it was forked from ("" for a program's own)."""

    stream: str
    parent: str
    branch: int
    label: str


class StreamEnded(NamedTuple):
    """Nothing more happens on the stream: it is done, joined, failed or cancelled."""

    stream: str
    how: str


class StreamText(NamedTuple):
    """Literal text was appended to the stream (role tags excluded)."""

    stream: str
    text: str


class CallBegan(NamedTuple):
    """The stream submitted a call: `kind` is gen, score or prefix; `name` the variable it will set."""

    stream: str
    call_id: str
    kind: str
    name: str


class CallEnded(NamedTuple):
    """The call ended; `error` is "" when it went well."""

    stream: str
    call_id: str
    error: str


class VariableSet(NamedTuple):
    """The stream has a value for `name`, as text."""

    stream: str
    name: str
    text: str


Body = (
    Loading
    | Ready
    | Queued
    | Admitted
    | Step
    | Tokens
    | TokenTexts
    | Preempted
    | Finished
    | Failed
    | Control
    | NodeAdded
    | NodeExtended
    | NodeSplit
    | NodeTouched
    | NodeLocked
    | NodeEvicted
    | Snapshot
    | StreamBegan
    | StreamEnded
    | StreamText
    | CallBegan
    | CallEnded
    | VariableSet
)
KINDS: dict[str, type[Body]] = {kind.__name__: kind for kind in Body.__args__}
_TEXTS = {"texts", "text", "label", "message", "detail"}  # fields that redact leaves out
_TOKENS = {"tokens", "ids", "nodes"}  # fields that hold token ids, from which texts can be had


class Event(NamedTuple):
    """A body with its place in the log: `seq` from 1 without gaps, `t_ns` monotonic, `source` who says it."""

    seq: int
    t_ns: int
    source: str
    body: Body


_Row = tuple[int, int, str, str, tuple[Any, ...]]  # an Event, its body as kind and fields


class EventLog:
    """A bounded log of events, safe from any thread; the oldest are dropped beyond `capacity`."""

    # Kept as plain tuples of plain values, which Python's garbage collector does not have to visit: as named
    # tuples, a full log more than doubles the time of a program that makes many objects.

    def __init__(self, capacity: int = 200_000) -> None:
        self._lock = threading.Lock()
        self._rows: deque[_Row] = deque(maxlen=capacity)
        self._seq = 0

    def emit(self, source: str, body: Body) -> int:
        """Append; returns the event's seq."""
        with self._lock:
            self._seq += 1
            self._rows.append((self._seq, time.monotonic_ns(), source, type(body).__name__, tuple(body)))
            return self._seq

    @property
    def seq(self) -> int:
        """The seq of the newest event, 0 when there is none yet."""
        return self._seq

    def since(self, seq: int = 0, limit: int | None = None) -> list[Event]:
        """The events after `seq`, oldest first, at most `limit`.

        When the first one's seq is not `seq + 1`, events were dropped in between.
        """
        with self._lock:
            n_new = min(self._seq - seq, len(self._rows))
            if n_new <= 0:
                return []
            start = len(self._rows) - n_new
            stop = len(self._rows) if limit is None else min(start + limit, len(self._rows))
            if n_new * 2 > len(self._rows):  # a deque is slow in its middle; a copy is fast
                rows = list(self._rows)[start:stop]
            else:
                rows = [self._rows[i] for i in range(start, stop)]
        return [Event(n, t, source, _body(kind, fields)) for n, t, source, kind, fields in rows]

    def save(self, path: str | os.PathLike[str], *, redact: bool = False) -> None:
        """Write JSON lines to `path`, whole or not at all, readable by its user only."""
        target = Path(path)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                for event in self.since(0):
                    file.write(_to_json(event, redact) + "\n")
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EventLog:
        """Read a log that `save` wrote. Raises UsageError when a line is not an event."""
        log = cls()
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    log._rows.append(_from_json(line))
                except (ValueError, KeyError, TypeError) as error:
                    raise UsageError(f"{path}, line {number} is not an event of nbsglang: {error}") from None
        log._seq = log._rows[-1][0] if log._rows else 0
        return log


def _to_json(event: Event, redact: bool) -> str:
    fields = event.body._asdict()
    if redact:
        for key in fields.keys() & (_TEXTS | _TOKENS):
            fields[key] = _blank(fields[key])
    return json.dumps([event.seq, event.t_ns, event.source, type(event.body).__name__, fields])


def _blank(value: object) -> object:
    """The value with every text emptied and every id zero, its shape kept."""
    if isinstance(value, str):
        return ""
    if isinstance(value, tuple):
        return tuple(_blank(item) for item in value)
    return 0


def _from_json(line: str) -> _Row:
    seq, t_ns, source, kind, fields = json.loads(line)
    if not (isinstance(seq, int) and isinstance(t_ns, int) and isinstance(source, str)):
        raise ValueError("seq, t_ns or source has a wrong type")
    make: Callable[..., Body] = KINDS[kind]  # raises TypeError for fields that the kind does not have
    body = make(**{key: _tuples(value) for key, value in fields.items()})
    return seq, t_ns, source, kind, tuple(body)


def _body(kind: str, fields: tuple[Any, ...]) -> Body:
    return KINDS[kind]._make(fields)


def _tuples(value: object) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
