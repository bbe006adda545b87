"""The one thread that turns ops into calls and replies into values.

It owns the streams: everything comes to it through one queue, answers of backends included. It starts with the first
op and ends with `close`; nothing depends on the thread that runs the cell. Submitting to it never blocks.

Not here: what it does with them (`feeder.py`), what a stream does (`execute.py`), the user's Python, which runs on its
own thread (`hub.py`).
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

from nbsglang.calls import Chunk, Failure, Reply
from nbsglang.errors import UsageError
from nbsglang.lang.feeder import Feeder, Resume
from nbsglang.lang.ops import Op
from nbsglang.lang.run import Run, cancelled
from nbsglang.lang.slots import Fault
from nbsglang.lang.stream import Stream, refuse_op


class _Fail(NamedTuple):
    streams: list[Stream]
    fault: Fault


class _End(NamedTuple):
    stream: Stream


class _Watch(NamedTuple):
    run: Run
    until: float


class _Wake(NamedTuple):
    """Look again whether to stop."""


_Item = Chunk | Reply | Failure | Stream | _Fail | _End | _Watch | Resume | _Wake


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
        self._feeder = Feeder(self._inbox)
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
            self._feeder.take(item)
        elif isinstance(item, (Reply, Failure, Chunk)):
            self._feeder.answer(item)
        elif isinstance(item, _End):
            self._feeder.end(item.stream)
        elif isinstance(item, Resume):
            self._feeder.resume(item.stream)
        elif isinstance(item, _Fail):
            for stream in item.streams:
                self._feeder.fail(stream, item.fault)
        elif isinstance(item, _Watch):
            self._watched.append(item)

    def _stop(self, fault: Fault) -> None:
        with self._lock:
            self._stopped = fault
        late = []
        while True:  # ops and ends that came before the stop; answers do not matter any more
            try:
                item = self._inbox.get_nowait()
            except Empty:
                break
            if isinstance(item, (Stream, _End)):
                late.append(item if isinstance(item, Stream) else item.stream)
        self._feeder.stop(late, fault)
        self._watched.clear()
