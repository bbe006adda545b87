"""What happens, as plain values in one bounded log; every view is a pure function of it.

Writers `emit` from any thread; readers poll `since(seq)`. Bodies hold ints, floats, strings and tuples of
them, so a log can be saved as JSON lines and replayed without torch. Logs hold prompts and outputs: a saved
file is private to its user (mode 0600), and `redact=True` leaves out every text but ids and words of our own.

Not here: what views make of events (`viz/fold.py`).
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from nbsglang.errors import UsageError

# What redact does is said by the types of the fields: a plain `str` is emptied, so that a new field leaks nothing.
Word = Annotated[str, "stays"]  # an id, or a word out of a fixed set
TokenIds = Annotated[tuple[int, ...], "made zeros"]  # texts can be had from them

# ---------------------------------------------------------------- the engine: loading, steps, requests


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


class Tokens(NamedTuple):
    """New tokens of a step: request ids and, aligned with them, the ids that each received."""

    requests: tuple[int, ...]
    ids: tuple[TokenIds, ...]


class Jumped(NamedTuple):
    """Tokens that a constraint forced, without a choice of the model: they follow what the request received."""

    request: int
    call_id: Word
    ids: TokenIds


class Healed(NamedTuple):
    """The first tokens that the request receives also spell `over`: the end of its prompt, none of its text."""

    request: int
    call_id: Word
    over: str


class Masked(NamedTuple):
    """How much the constraints of a step have taken away: request ids and, aligned with them, probabilities.

    They belong to the tokens that these requests receive next: that of all other tokens, by the model's own
    distribution, before the mask.
    """

    requests: tuple[int, ...]
    removed: tuple[float, ...]


class Logprobs(NamedTuple):
    """How likely tokens of a step were: ids of requests that asked for it and, aligned with them, log probabilities.

    They belong to the tokens that these requests receive next.
    """

    requests: tuple[int, ...]
    logprobs: tuple[float, ...]


class TopLogprobs(NamedTuple):
    """The likeliest tokens of a step, for requests that asked for them: ids and, aligned, their log probabilities.

    They are of the model's own distribution, before the mask; `allowed` says which of them the request's constraint
    lets come. They belong where the tokens stand that these requests receive next.
    """

    requests: tuple[int, ...]
    ids: tuple[TokenIds, ...]
    logprobs: tuple[tuple[float, ...], ...]
    allowed: tuple[tuple[bool, ...], ...]


class TokenTexts(NamedTuple):
    """The texts of token ids that this log has not named before, or so long ago that it may soon forget them."""

    ids: TokenIds
    texts: tuple[str, ...]


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


class Constrained(NamedTuple):
    """The answers to the call must match a constraint of a `kind` and a `text`; choices are a JSON list.

    A long text has lost its middle. `by` says what allows and forbids tokens: our own "automaton", or "llguidance".
    """

    call_id: Word
    kind: Word
    text: str
    by: Word


class ConstraintGraph(NamedTuple):
    """The compressed automaton of a constraint, when somebody has asked for it.

    `edges` are (source, target, text, n_forced): where n_forced is 0, the text is a class of characters as a regular
    expression writes it; else it is what must follow, n_forced characters, with "…" in place of its middle if it is
    long. `accepting` are the nodes in which the text may end. `is_whole` is false where some of it was left out.
    """

    kind: Word
    text: str
    start: int
    nodes: tuple[int, ...]
    edges: tuple[tuple[int, int, str, int], ...]
    accepting: tuple[int, ...]
    is_whole: bool


class Failed(NamedTuple):
    """A call or a step failed; the message says why."""

    call_id: Word
    message: str


class Control(NamedTuple):
    """Something from outside: "flush", "weights changed", "prompt encoded anew", "closed" and the like."""

    what: Word
    detail: str


# ------------------------------------------------------------------------------------- the radix tree


class NodeAdded(NamedTuple):
    """`node` hangs under `parent` (0 is the root) with these token ids on its edge."""

    node: int
    parent: int
    tokens: TokenIds
    tick: int
    request: int


class NodeExtended(NamedTuple):
    """The edge of the leaf `node` grows by these token ids."""

    node: int
    tokens: TokenIds
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

    nodes: tuple[tuple[int, int, TokenIds, int, int], ...]


# ---------------------------------------------------------------------------------------- the programs


class StreamBegan(NamedTuple):
    """A stream of a program exists; `parent` is the stream it was forked from ("" for a program's own)."""

    stream: Word
    parent: Word
    branch: int
    label: str


class StreamEnded(NamedTuple):
    """Nothing more happens on the stream: it is done, joined, failed or cancelled."""

    stream: Word
    how: Word


class StreamText(NamedTuple):
    """Literal text was appended to the stream (role tags excluded)."""

    stream: Word
    text: str


class StreamRole(NamedTuple):
    """The message of a role begins on the stream; `role` is the program's own word."""

    stream: Word
    role: str


class CallBegan(NamedTuple):
    """The stream submitted a call: `kind` is gen, score or prefix; `name` the variable it will set."""

    stream: Word
    call_id: Word
    kind: Word
    name: str


class CallEnded(NamedTuple):
    """The call ended; `error` is "" when it went well."""

    stream: Word
    call_id: Word
    error: str


class Scored(NamedTuple):
    """What a select has found about its choices: the likeliest of `n_choices` with their scores and probabilities.

    All three are aligned, the likeliest first. `scores` are natural logs, as the select's method compares them, and
    `shares` the probabilities that follow. `chosen` is the index of the choice that was taken. A long choice has lost
    its middle.
    """

    stream: Word
    call_id: Word
    choices: tuple[str, ...]
    scores: tuple[float, ...]
    shares: tuple[float, ...]
    chosen: int
    n_choices: int


class VariableSet(NamedTuple):
    """The stream has a value for `name`, as text."""

    stream: Word
    name: str
    text: str


Body = (
    Loading
    | Ready
    | Queued
    | Admitted
    | Step
    | Tokens
    | Jumped
    | Healed
    | Masked
    | Logprobs
    | TopLogprobs
    | TokenTexts
    | Preempted
    | Finished
    | Constrained
    | ConstraintGraph
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
    | StreamRole
    | CallBegan
    | CallEnded
    | Scored
    | VariableSet
)
KINDS: dict[str, type[Body]] = {kind.__name__: kind for kind in Body.__args__}


class Event(NamedTuple):
    """A body with its place in the log: `seq` from 1 without gaps, `t_ns` monotonic, `source` who says it."""

    seq: int
    t_ns: int
    source: str
    body: Body


_Row = tuple[int, int, str, str, tuple[Any, ...]]  # an Event, its body as kind and fields
_BEFORE_ALL: _Row = (0, 0, "", "", ())


class _OtherVersion(ValueError):
    """A line has the form of an event, but no such event is known."""


class EventLog:
    """A bounded log of events, safe from any thread; the oldest are dropped beyond `capacity` (at least one stays)."""

    # Kept as plain tuples of plain values, which Python's garbage collector does not have to visit: as named
    # tuples, a full log more than doubles the time of a program that makes many objects.

    def __init__(self, capacity: int = 200_000) -> None:
        # Reentrant: whatever allocates under the lock can start the garbage collector, and with it a finalizer
        # that emits to this very log, on this very thread. So each method looks again whether that happened.
        self._lock = threading.RLock()
        self._rows: deque[_Row] = deque(maxlen=max(capacity, 1))

    def emit(self, source: str, body: Body) -> int:
        """Append; returns the event's seq."""
        kind, fields = type(body).__name__, tuple(body)
        with self._lock:
            while True:
                last = self._rows[-1] if self._rows else _BEFORE_ALL
                row = (last[0] + 1, time.monotonic_ns(), source, kind, fields)
                # From here to the append nothing is allocated and no Python code can run.
                if not self._rows or self._rows[-1] is last:
                    self._rows.append(row)
                    return row[0]

    @property
    def capacity(self) -> int:
        """How many events stay."""
        return self._rows.maxlen or 1

    @property
    def seq(self) -> int:
        """The seq of the newest event, 0 when there is none yet."""
        return self._rows[-1][0] if self._rows else 0

    def since(self, seq: int = 0, limit: int | None = None) -> list[Event]:
        """The events after `seq`, oldest first, at most `limit`.

        When the first one's seq is not `seq + 1`, events were dropped in between.
        """
        with self._lock:
            while True:
                newest = self.seq
                rows = self._copy(seq, limit)
                if self.seq == newest:
                    break
        return [Event(n, t, source, _body(kind, fields)) for n, t, source, kind, fields in rows]

    def _copy(self, seq: int, limit: int | None) -> list[_Row]:
        """The rows after `seq`, at most `limit`."""
        n_rows = len(self._rows)
        start = n_rows - max(0, min(self.seq - seq, n_rows))
        while start < n_rows and self._rows[start][0] <= seq:  # lines were taken out of a saved log
            start += 1
        stop = n_rows if limit is None else min(start + limit, n_rows)
        if (n_rows - start) * 2 > n_rows:  # a deque is slow in its middle; a copy is fast
            return list(self._rows)[start:stop]
        return [self._rows[i] for i in range(start, stop)]

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
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    log._rows.append(_from_json(line.decode(), log.seq))
                except _OtherVersion as error:
                    said = "is not an event that this version of nbsglang knows; a later or an earlier one may have"
                    raise UsageError(f"{path}, line {number} {said} written it: {error}") from None
                except (ValueError, OverflowError, RecursionError) as error:
                    raise UsageError(f"{path}, line {number} is not an event of nbsglang: {error}") from None
        return log


def _to_json(event: Event, redact: bool) -> str:
    kind, fields = type(event.body).__name__, event.body._asdict()
    if redact:
        fields = {name: _redacted(fields[name], wanted) for name, wanted in _types(kind).items()}
    return json.dumps([event.seq, event.t_ns, event.source, kind, fields])


def _from_json(line: str, before: int) -> _Row:
    """The row of a line, whose seq must be above `before`. Raises ValueError when it is not an event."""
    row = json.loads(line)
    if not isinstance(row, list) or [type(part) for part in row] != [int, int, str, str, dict]:
        raise ValueError("it is not a list of seq, t_ns, source, kind and fields")
    seq, t_ns, source, kind, fields = row
    if seq <= before:
        raise ValueError(f"its seq {seq} is not above {before}")
    if kind not in KINDS:
        raise _OtherVersion(f"there is no kind {kind[:40]!r}")
    types = _types(kind)
    if fields.keys() != types.keys():
        raise _OtherVersion(f"the fields of {kind} are {', '.join(types)}")
    return seq, t_ns, source, kind, tuple(_checked(fields[name], wanted, name) for name, wanted in types.items())


def _body(kind: str, fields: tuple[Any, ...]) -> Body:
    return KINDS[kind]._make(fields)


# ------------------------------------------------------------------- fields by their types: redact, check


@functools.cache
def _types(kind: str) -> dict[str, Any]:
    """The types of a kind's fields, in order, with their marks."""
    return get_type_hints(KINDS[kind], include_extras=True)


def _redacted(value: Any, wanted: Any) -> Any:
    """The value in its shape with every text emptied and every token id zero; a Word stays."""
    if isinstance(value, str):
        return value if wanted == Word else ""
    if not isinstance(value, tuple | list):
        return value
    if wanted == TokenIds:
        return (0,) * len(value)
    return tuple(map(_redacted, value, _item_types(wanted, len(value))))


def _checked(value: Any, wanted: Any, name: str) -> Any:
    """The value called `name`, as JSON gives it, with lists made tuples. Raises ValueError for another type."""
    if get_origin(wanted) is Annotated:
        wanted = get_args(wanted)[0]
    if get_origin(wanted) is tuple and isinstance(value, list):
        types = _item_types(wanted, len(value))
        if len(types) == len(value):
            return tuple(_checked(item, inner, name) for item, inner in zip(value, types, strict=True))
    elif wanted is float and type(value) is int:
        return float(value)
    elif type(value) is wanted:  # so that True is no int
        return value
    raise ValueError(f"{name} has a wrong type")


def _item_types(wanted: Any, n: int) -> tuple[Any, ...]:
    """The types of the items of a tuple that has `n` of them."""
    types = get_args(wanted)
    return types[:1] * n if types[1:] == (Ellipsis,) else types
