"""Events as a trace that ui.perfetto.dev and chrome://tracing open: the JSON format of the Trace Event documents.

A process is a run, its threads are streams: on each lie its calls, in a call its requests, in a request its phases.
An engine is a process as well: its steps with their parts, and counters of the batch and the pool. Slices of one thread
lie inside each other or apart, as the format demands; requests side by side get threads of their own.

Not here: files (`notebook/traces.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nbsglang import events as ev
from nbsglang.viz.history import CallSpan, History, RequestSpan, StepAt
from nbsglang.viz.text import name_of, shown

Entry = dict[str, Any]
_STEPS = 1  # the thread of an engine's steps; those of requests that no stream has asked for follow


class Slice(NamedTuple):
    """A named span of time on a thread."""

    name: str
    kind: str
    begin_ns: int
    end_ns: int
    args: Entry


def trace(events: Iterable[ev.Event]) -> Entry:
    """The trace as a JSON object. Times are microseconds from the first event on."""
    events = list(events)
    history = History()
    for event in events:
        history.apply(event)
    writer = _Writer(history.begin_ns)
    engines = list(dict.fromkeys(e.source for e in events if isinstance(e.body, _OF_ENGINES)))
    names = {e.source: f"{e.body.name} ({e.body.model})" for e in events if isinstance(e.body, ev.Ready)}
    runs = list(dict.fromkeys(stream.source for stream in history.streams.values()))
    for source in runs:
        _write_run(writer, source, history)
    for source in engines:
        _write_engine(writer, source, names.get(source, source), history)
    _write_moments(writer, events)
    return {"traceEvents": writer.entries, "displayTimeUnit": "ms", "otherData": {"written by": "nbsglang"}}


_OF_ENGINES = (ev.Ready, ev.Queued, ev.Step)


@dataclass(slots=True)
class _Writer:
    """The entries, and which processes and threads have a name."""

    begin_ns: int
    entries: list[Entry] = field(default_factory=list)
    pids: dict[str, int] = field(default_factory=dict)

    def process(self, source: str, name: str) -> int:
        """The number of a process, which is named when it is new."""
        if source not in self.pids:
            pid = self.pids[source] = len(self.pids) + 1
            self.entries.append(_meta("process_name", pid, 0, {"name": shown(name, 80)}))
            self.entries.append(_meta("process_sort_index", pid, 0, {"sort_index": pid}))
        return self.pids[source]

    def thread(self, pid: int, tid: int, name: str) -> None:
        """Give a thread its name and place."""
        self.entries.append(_meta("thread_name", pid, tid, {"name": shown(name, 80)}))
        self.entries.append(_meta("thread_sort_index", pid, tid, {"sort_index": tid}))

    def slice(self, pid: int, tid: int, one: Slice) -> None:
        """A complete slice."""
        self.entries.append(
            {
                "ph": "X",
                "pid": pid,
                "tid": tid,
                "ts": self._us(one.begin_ns),
                "dur": (one.end_ns - one.begin_ns) / 1000,
                "name": shown(one.name, 80),
                "cat": one.kind,
                "args": one.args,
            }
        )

    def moment(self, pid: int, tid: int, name: str, kind: str, t_ns: int, args: Entry) -> None:
        """Something without duration, on a thread."""
        base = {"ph": "i", "s": "t", "pid": pid, "tid": tid, "ts": self._us(t_ns)}
        self.entries.append({**base, "name": name, "cat": kind, "args": args})

    def counter(self, pid: int, name: str, t_ns: int, values: dict[str, int]) -> None:
        """Values that are drawn as areas on each other."""
        self.entries.append({"ph": "C", "pid": pid, "tid": 0, "ts": self._us(t_ns), "name": name, "args": values})

    def _us(self, t_ns: int) -> float:
        return max(t_ns - self.begin_ns, 0) / 1000


def _meta(name: str, pid: int, tid: int, args: Entry) -> Entry:
    return {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": name, "args": args}


# -------------------------------------------------------------------------------------------------------- runs


def _write_run(writer: _Writer, source: str, history: History) -> None:
    streams = [stream for stream in history.streams.values() if stream.source == source]
    pid = writer.process(source, f"run {streams[0].label or source}")
    tid = 1
    for stream in streams:
        name = name_of(stream.label, stream.id, stream.parent, stream.branch)
        end = max(stream.end_ns or history.end_ns, stream.begin_ns)
        lanes = _lanes(history.calls_of(stream.id), history.end_ns)
        end = max([end, *(one.end_ns for lane in lanes[:1] for one, _ in lane)])
        whole = Slice(name, "stream", stream.begin_ns, end, {"stream": stream.id, "ended": stream.how})
        for n, lane in enumerate(lanes or [[]]):
            writer.thread(pid, tid, name if n == 0 else f"{name}, row {n + 1}")
            if n == 0:
                writer.slice(pid, tid, whole)
            for one, request in lane:
                _write_slice(writer, pid, tid, one, request, history.end_ns)
            tid += 1


def _write_slice(writer: _Writer, pid: int, tid: int, one: Slice, request: RequestSpan | None, now: int) -> None:
    """A call or a request; of a request its phases too."""
    writer.slice(pid, tid, one)
    if request is None:
        return
    for phase in request.phases:
        end = max(phase.end_ns or now, phase.begin_ns)
        writer.slice(pid, tid, Slice(phase.name, "phase", phase.begin_ns, end, {}))
    for jump in request.jumps:
        writer.moment(pid, tid, "jump", "jump", jump.t_ns, {"tokens": jump.n_tokens})


Lane = list[tuple[Slice, RequestSpan | None]]


def _lanes(calls: list[CallSpan], now: int) -> list[Lane]:
    """Calls and their requests on as few threads as it takes for none to cross another."""
    lanes: list[Lane] = []
    for call in calls:
        requests = [(_of_request(request, now), request) for request in call.requests if request.phases]
        begin = min([call.begin_ns, *(one.begin_ns for one, _ in requests)])
        end = max([call.end_ns or now, begin, *(one.end_ns for one, _ in requests)])
        args = {"call": call.id, "kind": call.kind, **({"error": call.error.partition(":")[0]} if call.error else {})}
        whole = Slice(f"{call.kind} {call.name}".strip(), "call", begin, end, args)
        lane = _free(lanes, begin)
        lane.append((whole, None))
        inner: dict[int, int] = {}  # where the latest request of the call ends, by lane
        for one, request in requests:
            if inner.get(id(lane), begin) <= one.begin_ns:  # inside of the call's own slice
                lane.append((one, request))
                inner[id(lane)] = one.end_ns
            else:
                _free(lanes, one.begin_ns).append((one, request))
    return lanes


def _free(lanes: list[Lane], begin_ns: int) -> Lane:
    """The first lane on which nothing goes on at this time or later, or a new one."""
    for lane in lanes:
        if all(one.end_ns <= begin_ns for one, _ in lane):
            return lane
    lanes.append([])
    return lanes[-1]


def _of_request(request: RequestSpan, now: int) -> Slice:
    begin, end = request.phases[0].begin_ns, request.phases[-1].end_ns or now
    args = {
        "prompt tokens": request.n_prompt,
        "cached": request.n_cached,
        "generated": request.n_generated,
        "preempted": request.n_preempted,
        "ended": request.reason,
    }
    return Slice(f"request {request.id}", "request", begin, max(end, begin), args)


# ----------------------------------------------------------------------------------------------------- engines


def _write_engine(writer: _Writer, source: str, name: str, history: History) -> None:
    pid = writer.process(source, f"engine {name}")
    writer.thread(pid, _STEPS, "steps")
    steps = [at for at in history.steps if at.source == source]
    before = writer.begin_ns
    for at in steps:
        for one in _of_step(at, before):
            writer.slice(pid, _STEPS, one)
        before = at.t_ns
        step = at.step
        writer.counter(pid, "batch", at.t_ns, {"running": step.n_running, "waiting": step.n_waiting})
        pool = {"locked": step.n_locked, "evictable": step.n_evictable, "free": step.n_free}
        writer.counter(pid, "pool (tokens)", at.t_ns, pool)
    direct = [call for call in history.calls_of("") if _engine_of(call, history) == source]
    for n, lane in enumerate(_lanes(direct, history.end_ns), _STEPS + 1):
        writer.thread(pid, n, f"requests {n - _STEPS}")
        for one, request in lane:
            _write_slice(writer, pid, n, one, request, history.end_ns)


def _engine_of(call: CallSpan, history: History) -> str:
    wanted = {id(request) for request in call.requests}
    return next((source for (source, _), request in history.requests.items() if id(request) in wanted), "")


def _of_step(at: StepAt, before: int) -> Iterator[Slice]:
    """The step and its four parts, after the end of the one before."""
    step = at.step
    parts = {"plan": step.plan_s, "pack": step.pack_s, "run": step.run_s, "commit": step.commit_s}
    begin = max(at.t_ns - int(sum(parts.values()) * 1e9), before)
    args = {"prompt tokens": step.n_prefill, "decodes": step.n_decode, "running": step.n_running}
    yield Slice(f"step {step.step}", "step", begin, at.t_ns, args)
    for name, seconds in parts.items():
        end = min(begin + int(seconds * 1e9), at.t_ns)
        if end > begin:
            yield Slice(name, "part", begin, end, {})
        begin = end


def _write_moments(writer: _Writer, events: Iterable[ev.Event]) -> None:
    """What happens to the cache and from outside, on the engine's first thread."""
    for event in events:
        body = event.body
        pid = writer.pids.get(event.source)
        if pid is None:
            continue
        match body:
            case ev.NodeEvicted():
                args: Entry = {"node": body.node, "tokens": body.n_tokens}
                writer.moment(pid, _STEPS, "evicted", "cache", event.t_ns, args)
            case ev.Preempted():
                args = {"request": body.request, "tokens": body.n_tokens}
                writer.moment(pid, _STEPS, "preempted", "cache", event.t_ns, args)
            case ev.Control():
                writer.moment(pid, _STEPS, body.what, "control", event.t_ns, {})
            case ev.Failed():
                writer.moment(pid, _STEPS, "failed", "control", event.t_ns, {"call": body.call_id})
