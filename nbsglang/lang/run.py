"""What the streams of one run share: backend, log, options, what has been used, and how to stop all of it.

A run is one program on one set of arguments, or a batch (then the runs of its items are its children). Runs that a
program starts inside itself are children too: cancelling a run cancels them.

Not here: waiting (`hub.py`), submitting (`feeder.py`).
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from nbsglang.calls import Backend, Usage
from nbsglang.errors import Cancelled, NbsglangError, TimedOut
from nbsglang.events import Body, EventLog
from nbsglang.lang.options import Options
from nbsglang.lang.slots import Fault, Where

if TYPE_CHECKING:
    from nbsglang.lang.driver import Driver
    from nbsglang.lang.ops import Part
    from nbsglang.lang.stream import Stream


class Tally:
    """Counters of one run, written by the driver only. Prefix hints count in the tokens, not in `calls`."""

    __slots__ = ("cached", "calls", "computed", "first_token_s", "generated", "jumped", "prompt")

    def __init__(self) -> None:
        self.calls = self.prompt = self.cached = self.computed = self.generated = self.jumped = 0
        self.first_token_s: float | None = None

    def add(self, usage: Usage, is_hint: bool, submitted_s: float) -> None:
        """Count a reply, whose call was submitted so many seconds after the run began."""
        self.calls += not is_hint
        self.prompt += usage.prompt_tokens
        self.cached += usage.cached_tokens
        self.computed += usage.computed_tokens
        self.generated += usage.generated_tokens
        self.jumped += usage.jumped_tokens
        if usage.first_token_s is not None and not is_hint:
            at = submitted_s + usage.first_token_s
            self.first_token_s = at if self.first_token_s is None else min(at, self.first_token_s)


NO_STATS: dict[str, float | None] = {
    "calls": 0,
    "prompt_tokens": 0,
    "cached_tokens": 0,
    "computed_tokens": 0,
    "generated_tokens": 0,
    "jumped_tokens": 0,
    "hit_rate": 0.0,
    "seconds": 0.0,
    "first_token_seconds": None,
}


class Run:
    """See the module. `fault` is set once, when the run is cancelled; `failure` is what its Python raised."""

    def __init__(
        self,
        driver: Driver,
        backend: Backend,
        log: EventLog,
        options: Options,
        *,
        parent: Run | None = None,
        path: tuple[int, ...] = (),
        streaming: bool = False,
    ) -> None:
        self.driver = driver
        self.backend = backend
        self.log = log
        self.options = options
        self.path = path
        self.streaming = streaming
        self.thread = threading.get_ident()  # on which the program's Python runs
        self.streams: list[Stream] = []
        self.children: dict[Run, None] = {}  # in order; a list would be slow to leave
        self.parent = parent
        self.tally = Tally()
        self.began = time.monotonic()
        self.seconds: float | None = None  # set when it is over
        self.failure: BaseException | None = None
        self.failure_traceback: TracebackType | None = None
        self.fault: Fault | None = None
        self.made: dict[int, tuple[Part, Where]] = {}  # generations that a cell made and has not appended, by id()
        if parent is not None:
            parent.children[self] = None
            if parent.fault is not None:  # looked at after joining the list: a cancel sees the one or the other
                self.cancel(parent.fault)
        if options.timeout is not None:
            driver.watch(self, self.began + options.timeout)

    @property
    def over(self) -> bool:
        """Whether the program's Python has ended and nothing more can be appended."""
        return self.seconds is not None

    @property
    def whole(self) -> Run:
        """The run that this one is a part of, whoever started it."""
        return self if self.parent is None else self.parent.whole

    def emit(self, body: Body) -> None:
        """Write to the log."""
        self.log.emit(self.driver.id, body)

    def take(self, parts: tuple[Part, ...]) -> None:
        """These are being appended."""
        if self.made:
            for part in parts:
                self.made.pop(id(part), None)

    def cancel(self, fault: Fault | None = None) -> None:
        """Stop every call of this run and of the runs inside it; reads of what was not there yet raise Cancelled."""
        if self.fault is None:
            self.fault = fault or cancelled("the run was cancelled")
        self.driver.fail(list(self.streams), self.fault)
        for child in list(self.children):
            child.cancel(self.fault)

    def cancel_stream(self, stream_id: str, fault: Fault) -> bool:
        """Stop a stream of this run, or of a run inside it, with its branches. Returns whether there is such a one."""
        for stream in list(self.streams):
            if stream.id == stream_id:
                if stream.path == self.path:
                    self.cancel(fault)
                else:
                    n = len(stream.path)
                    self.driver.fail([s for s in list(self.streams) if s.path[:n] == stream.path], fault)
                return True
        return any(child.cancel_stream(stream_id, fault) for child in list(self.children))

    def time_out(self) -> None:
        """Cancel, because the time is over."""
        if not self.over:
            self.cancel(Fault(TimedOut, f"the run took longer than its timeout of {self.options.timeout:g} s"))

    def end(self) -> None:
        """The program's Python has ended, and everything that was worth waiting for has been waited for."""
        if self.over:
            return
        self.seconds = time.monotonic() - self.began
        if self.parent is not None:
            self.parent.children.pop(self, None)
        for stream in self.streams:
            self.driver.end(stream, "done")
        for stream in self.streams:
            stream.signal.notify()

    def undelivered(self) -> list[tuple[Stream, NbsglangError]]:
        """The failed streams with fresh errors of theirs that nobody has seen; they count as seen now."""
        errors = []
        for stream in self.streams:
            if stream.fault is not None and not stream.fault.delivered:
                errors.append((stream, stream.fault.error()))
        return errors

    def stats(self) -> dict[str, float | None]:
        """The counters of the run so far; `seconds` is wall time, `first_token_seconds` None without tokens."""
        tally = self.tally
        return {
            "calls": tally.calls,
            "prompt_tokens": tally.prompt,
            "cached_tokens": tally.cached,
            "computed_tokens": tally.computed,
            "generated_tokens": tally.generated,
            "jumped_tokens": tally.jumped,
            "hit_rate": tally.cached / tally.prompt if tally.prompt else 0.0,
            "seconds": time.monotonic() - self.began if self.seconds is None else self.seconds,
            "first_token_seconds": tally.first_token_s,
        }


def cancelled(message: str) -> Fault:
    """The fault of something that was stopped on purpose."""
    return Fault(Cancelled, message)
