"""The one thread that turns ops into calls and replies into values.

It owns the streams: everything comes to it through one queue, answers of backends included. It starts with the first
op and ends with `close`; nothing depends on the thread that runs the cell. Submitting to it never blocks.

Not here: what a stream does (`execute.py`), the user's Python, which runs on its own thread (`hub.py`).
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

from nbsglang.calls import Chunk, Failure, GenCall, Reply, ScoreCall
from nbsglang.errors import Cancelled, UsageError
from nbsglang.events import CallBegan, CallEnded, StreamEnded
from nbsglang.lang.execute import Ask, Hint, Inherited, execute
from nbsglang.lang.ops import Op
from nbsglang.lang.run import Run, cancelled
from nbsglang.lang.slots import Fault, Slot
from nbsglang.lang.stream import Stream, drop_ops, fault_of, refuse_op


class _Fail(NamedTuple):
    streams: list[Stream]
    fault: Fault


class _End(NamedTuple):
    stream: Stream


class _Watch(NamedTuple):
    run: Run
    until: float


class _Resume(NamedTuple):
    """The slot that the stream waited for is done."""

    stream: Stream


class _Wake(NamedTuple):
    """Look again whether to stop."""


class _Open(NamedTuple):
    """A call that has not been answered; `submitted_s` counts from the begin of its run."""

    stream: Stream
    is_hint: bool
    submitted_s: float


_Item = Chunk | Reply | Failure | Stream | _Fail | _End | _Watch | _Resume | _Wake


class Driver:
    """Feeds the streams of the runs that belong together. `id` is the source of their events."""

    def __init__(self) -> None:
        self.id = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)
        self._inbox: SimpleQueue[_Item] = SimpleQueue()
        self._lock = threading.Lock()  # for the start of the thread, and for handing ops over or not
        self._thread: threading.Thread | None = None
        self._closing: Fault | None = None  # stop when the inbox is empty
        self._aborting = False  # do not even wait for that
        self._stopped: Fault | None = None
        # Only the thread touches these:
        self._open: dict[str, _Open] = {}
        self._live: dict[str, Stream] = {}
        self._awaiting: dict[Slot, list[Stream]] = {}
        self._watched: list[_Watch] = []

    # ------------------------------------------------------------------------------- from any thread

    def new_stream_id(self) -> str:
        """An id that is unique in the process."""
        return f"{self.id}.{next(self._numbers)}"

    @property
    def first_stream_id(self) -> str:
        """The id that the first stream gets, or has got."""
        return f"{self.id}.1"

    def feed(self, stream: Stream, op: Op) -> None:
        """Hand an op to a stream. Raises UsageError if the stream has ended.

        After the stop the op fails, and nothing else is touched: ops that were handed over are the thread's.
        """
        with self._lock:  # the op comes before the stop, whose thread then sees it, or after it
            if stream.ended:
                why = "its run is over" if stream.ended == "done" else "this branch has been joined"
                raise UsageError(f"nothing can be appended to this state: {why}")
            stopped = self._stopped
            if stopped is None:
                stream.n_submitted += 1
                stream.todo.append(op)
                if not stream.scheduled:
                    stream.scheduled = True
                    self._inbox.put(stream)
        if stopped is not None:
            refuse_op(stream, op, stopped)
        elif self._thread is None:
            self._start()

    def fail(self, streams: list[Stream], fault: Fault) -> None:
        """Let streams fail; their calls are cancelled, who waits for their values is told."""
        if streams:
            self._put(_Fail(streams, fault))

    def end(self, stream: Stream, how: str) -> None:
        """Nothing more happens on the stream: it is "done" or "joined"."""
        with self._lock:
            if stream.ended:
                return
            stream.ended = how
        self._put(_End(stream))

    def watch(self, run: Run, until: float) -> None:
        """Let the run time out at this monotonic time."""
        self._put(_Watch(run, until))

    def close(self) -> None:
        """End the thread when it has handled what it was given."""
        self._closing = self._closing or cancelled("the run is over")
        self._inbox.put(_Wake())
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.05)

    def abort(self, fault: Fault) -> None:
        """Cancel everything before anything else is done; returns at once. `close` it afterwards all the same."""
        self._closing = self._closing or fault
        self._aborting = True
        self._inbox.put(_Wake())

    def _put(self, item: _Item) -> None:
        self._inbox.put(item)
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name=f"nbsglang-driver-{self.id}", daemon=True)
                self._thread.start()

    # ----------------------------------------------------------------------------------- the thread

    def _loop(self) -> None:
        try:
            while not self._aborting and (self._closing is None or not self._inbox.empty()):
                item = self._next()
                if item is not None:
                    self._handle(item)
        finally:
            self._stop(self._closing or cancelled("the driver's thread ended by a fault of nbsglang"))

    def _next(self) -> _Item | None:
        if not self._watched:
            return self._inbox.get()
        now = time.monotonic()
        until = min(watch.until for watch in self._watched)
        if until > now:
            with suppress(Empty):
                return self._inbox.get(timeout=min(until - now, threading.TIMEOUT_MAX))
        for watch in self._watched:
            if watch.until <= time.monotonic():
                watch.run.time_out()
        self._watched = [watch for watch in self._watched if watch.run.fault is None and not watch.run.over]
        return None

    def _handle(self, item: _Item) -> None:
        if isinstance(item, Stream):
            self._live[item.id] = item
            item.scheduled = False
            if item.fault is not None:
                self._fail(item, item.fault)
            elif item.doing is None and item.todo:
                self._begin_op(item)
        elif isinstance(item, (Reply, Failure, Chunk)):
            self._answer(item)
        elif isinstance(item, _End):
            self._forget(item.stream)
        elif isinstance(item, _Resume):
            self._advance(item.stream, None)
        elif isinstance(item, _Fail):
            for stream in item.streams:
                self._fail(stream, item.fault)
        elif isinstance(item, _Watch):
            self._watched.append(item)

    def _begin_op(self, stream: Stream) -> None:
        if stream.execution is None:  # its first op
            stream.execution = execute(stream)
            next(stream.execution)  # up to its NEXT_OP
        stream.doing = stream.todo.popleft()
        self._advance(stream, stream.doing)

    def _advance(self, stream: Stream, value: object) -> None:
        """Let the stream do what it can before it has to wait."""
        try:
            while stream.execution is not None:
                want = stream.execution.send(value)
                value = None
                if want is Ask.NEXT_OP:
                    self._op_done(stream)
                    if not stream.todo:
                        return
                    stream.doing = value = stream.todo.popleft()
                elif want is Ask.MORE:
                    return
                elif isinstance(want, Slot):
                    if not want.done:
                        self._awaiting.setdefault(want, []).append(stream)
                        return
                elif isinstance(want, Hint):
                    with suppress(Exception):  # the branches' own calls will tell
                        self._submit(stream, want.call, is_hint=True)
                elif isinstance(want, (GenCall, ScoreCall)):
                    self._submit(stream, want, is_hint=False)
                    return
        except Inherited as error:
            self._fail(stream, error.fault)
        except Exception as error:  # whatever a backend or a user's method raises belongs to the stream
            self._fail(stream, fault_of(stream, error, ""))

    def _op_done(self, stream: Stream) -> None:
        op = stream.doing
        stream.doing = None
        stream.n_done += 1
        if op is not None and self._awaiting:
            self._wake_streams(op)
        if stream.idle:
            stream.signal.notify()

    def _wake_streams(self, op: Op) -> None:
        for slot in op.slots:
            for waiting in self._awaiting.pop(slot, ()):
                self._inbox.put(_Resume(waiting))

    def _submit(self, stream: Stream, call: GenCall | ScoreCall, *, is_hint: bool) -> None:
        kind = "prefix" if is_hint else "score" if isinstance(call, ScoreCall) else "gen"
        stream.run.emit(CallBegan(stream.id, call.call_id, kind, call.name))
        now = time.monotonic() - stream.run.began
        self._open[call.call_id] = _Open(stream, is_hint, now)
        stream.calls = (*stream.calls, call.call_id)
        try:
            stream.run.backend.submit(call, self._inbox)
        except Exception as error:
            self._close_call(stream, call.call_id, error)
            raise

    def _close_call(self, stream: Stream, call_id: str, error: BaseException | None) -> None:
        del self._open[call_id]
        stream.calls = tuple(other for other in stream.calls if other != call_id)
        stream.run.emit(CallEnded(stream.id, call_id, "" if error is None else f"{type(error).__name__}: {error}"))

    def _answer(self, item: Chunk | Reply | Failure) -> None:
        waiting = self._open.get(item.call_id)
        if waiting is None:  # cancelled meanwhile
            return
        stream = waiting.stream
        if isinstance(item, Chunk):
            self._advance(stream, item)
            return
        self._close_call(stream, item.call_id, item.error if isinstance(item, Failure) else None)
        if isinstance(item, Reply):
            stream.run.tally.add(item.usage, waiting.is_hint, waiting.submitted_s)
        if waiting.is_hint:  # if it failed, so will the branches' own calls, and they tell
            return
        if isinstance(item, Failure):
            self._fail(stream, fault_of(stream, item.error, item.call_id))
        else:
            self._advance(stream, item)

    def _fail(self, stream: Stream, fault: Fault) -> None:
        """The stream does nothing more; the first fault stands."""
        if stream.fault is None:
            stream.whole = stream.idle
        stream.fault = stream.fault or fault
        stream.stop()
        self._cancel_calls(stream)
        for op in drop_ops(stream, stream.fault):
            self._wake_streams(op)

    def _cancel_calls(self, stream: Stream) -> None:
        for call_id in stream.calls:
            with suppress(Exception):  # the call is over for us, whatever the backend makes of it
                stream.run.backend.cancel(call_id)
            self._close_call(stream, call_id, Cancelled("the call was cancelled"))

    def _forget(self, stream: Stream) -> None:
        if not stream.idle:  # ended by one thread while another still appended
            self._fail(stream, cancelled("the state has ended"))
        how = stream.raised or stream.ended
        if stream.fault is not None and not stream.whole and not stream.raised:
            how = "cancelled" if issubclass(stream.fault.kind, Cancelled) else "failed"
        stream.stop()
        self._cancel_calls(stream)  # prefix hints, if any
        stream.release()
        self._live.pop(stream.id, None)
        stream.run.emit(StreamEnded(stream.id, how))

    def _stop(self, fault: Fault) -> None:
        with self._lock:
            self._stopped = fault
        while True:  # ops and ends that came before the stop; answers do not matter any more
            try:
                item = self._inbox.get_nowait()
            except Empty:
                break
            if isinstance(item, (Stream, _End)):
                stream = item if isinstance(item, Stream) else item.stream
                self._live[stream.id] = stream
        for stream in list(self._live.values()):
            self._fail(stream, fault)
            stream.ended = stream.ended or "done"
            self._forget(stream)
        self._open.clear()
        self._watched.clear()
