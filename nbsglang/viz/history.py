"""When things happened: the phases of requests, calls and streams from beginning to end, and the steps between them.

A request is queued, then its prompt is computed (prefill), then it writes (decode); a preempted one is queued again.
What a constraint forced is a moment of its own, since it takes no time.

Not here: what is in the cache (`tree.py`), texts and counts (`streams.py`), pictures (`timeline.py`, `perfetto.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from nbsglang import events as ev

MAX_KEPT = 4000  # requests, calls and streams that are remembered, of each the latest
MAX_STEPS = 20_000

PhaseName = Literal["queued", "prefill", "decode"]

_K = TypeVar("_K")
_V = TypeVar("_V")


class Phase(NamedTuple):
    """A part of a request's life; `end_ns` is None while it goes on."""

    name: PhaseName
    begin_ns: int
    end_ns: int | None


class Jump(NamedTuple):
    """So many tokens were forced at this moment."""

    t_ns: int
    n_tokens: int


@dataclass(slots=True)
class RequestSpan:
    """The life of a request; `reason` is "" while it goes on."""

    id: int
    call_id: str
    phases: list[Phase] = field(default_factory=list)
    jumps: list[Jump] = field(default_factory=list)
    reason: str = ""
    n_prompt: int = 0
    n_cached: int = 0
    n_generated: int = 0
    n_preempted: int = 0

    def enter(self, name: PhaseName, t_ns: int) -> None:
        """A phase begins, and with it the one before ends."""
        self.leave(t_ns)
        self.phases.append(Phase(name, t_ns, None))

    def leave(self, t_ns: int) -> None:
        """The phase that goes on ends."""
        if self.phases and self.phases[-1].end_ns is None:
            self.phases[-1] = self.phases[-1]._replace(end_ns=t_ns)

    @property
    def now(self) -> str:
        """The name of the phase that goes on, "" if none does."""
        return self.phases[-1].name if self.phases and self.phases[-1].end_ns is None else ""


@dataclass(slots=True)
class CallSpan:
    """A call of a stream; `stream` is "" where a caller asked the engine directly."""

    id: str
    stream: str
    kind: str
    name: str
    begin_ns: int
    end_ns: int | None = None
    error: str = ""
    requests: list[RequestSpan] = field(default_factory=list)


@dataclass(slots=True)
class StreamSpan:
    """A stream of the run `source`, from its beginning to its end."""

    id: str
    parent: str
    branch: int
    label: str
    source: str
    begin_ns: int
    end_ns: int | None = None
    how: str = ""


class StepAt(NamedTuple):
    """A step, and when it was over."""

    t_ns: int
    source: str
    step: ev.Step


class History:
    """See the module; `apply` takes the events in their order."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], RequestSpan] = {}  # by engine and number
        self.calls: dict[str, CallSpan] = {}
        self.streams: dict[str, StreamSpan] = {}
        self.steps: deque[StepAt] = deque(maxlen=MAX_STEPS)
        self.begin_ns = self.end_ns = 0

    def apply(self, event: ev.Event) -> None:
        """Take an event; those that say nothing of time but their own are no matter."""
        body, now = event.body, event.t_ns
        self.begin_ns, self.end_ns = self.begin_ns or now, now
        match body:
            case ev.Tokens():
                for number in body.requests:
                    self._writes((event.source, number), now)
            case ev.Step():
                self.steps.append(StepAt(now, event.source, body))
            case ev.Queued() | ev.Admitted() | ev.Jumped() | ev.Preempted() | ev.Finished():
                self._of_request(body, event.source, now)
            case ev.CallBegan():
                self.calls[body.call_id] = CallSpan(body.call_id, body.stream, body.kind, body.name, now)
                _forget(self.calls)
            case ev.CallEnded():
                if (call := self.calls.get(body.call_id)) is not None:
                    call.end_ns, call.error = now, body.error
            case ev.StreamBegan():
                self.streams[body.stream] = StreamSpan(
                    body.stream, body.parent, body.branch, body.label, event.source, now
                )
                _forget(self.streams)
            case ev.StreamEnded():
                if (stream := self.streams.get(body.stream)) is not None:
                    stream.end_ns, stream.how = now, body.how

    def calls_of(self, stream: str) -> list[CallSpan]:
        """The calls of a stream, in their order."""
        return [call for call in self.calls.values() if call.stream == stream]

    def _of_request(
        self, body: ev.Queued | ev.Admitted | ev.Jumped | ev.Preempted | ev.Finished, engine: str, now: int
    ) -> None:
        request = self._request((engine, body.request), body.call_id, now)
        match body:
            case ev.Queued():
                request.n_prompt = body.n_prompt
                request.enter("queued", now)
            case ev.Admitted():
                request.enter("prefill", now)
            case ev.Jumped():
                request.jumps.append(Jump(now, len(body.ids)))
                self._writes((engine, body.request), now)
            case ev.Preempted():
                request.n_preempted += 1
                request.enter("queued", now)
            case ev.Finished():
                request.leave(now)
                request.reason = body.reason
                request.n_prompt, request.n_cached = body.n_prompt, body.n_cached
                request.n_generated = body.n_generated

    def _writes(self, key: tuple[str, int], now: int) -> None:
        """The first token after the prompt begins the decode."""
        request = self.requests.get(key)
        if request is not None and request.now == "prefill":
            request.enter("decode", now)

    def _request(self, key: tuple[str, int], call_id: str, now: int) -> RequestSpan:
        request = self.requests.get(key)
        if request is None:
            request = self.requests[key] = RequestSpan(key[1], call_id)
            _forget(self.requests)
            if call_id not in self.calls:  # asked for without a program
                self.calls[call_id] = CallSpan(call_id, "", "gen", "", now)
            self.calls[call_id].requests.append(request)
        return request


def history(events: Iterable[ev.Event]) -> History:
    """When what happened in these events; they should be of one engine, and of any number of runs."""
    found = History()
    for event in events:
        found.apply(event)
    return found


def _forget(kept: dict[_K, _V]) -> None:
    """Drop the oldest, once there are twice as many as are kept."""
    if len(kept) > 2 * MAX_KEPT:
        for key in list(kept)[: len(kept) - MAX_KEPT]:
            del kept[key]
