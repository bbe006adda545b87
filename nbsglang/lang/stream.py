"""The record of one stream: its prompt, the ops that wait, how it ended; and what a failure means for it.

Not here: what an op does (`execute.py`), who feeds it (`feeder.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

from nbsglang.calls import Prompt
from nbsglang.errors import Cancelled, NbsglangError, ProgramError
from nbsglang.lang import ops, prompts
from nbsglang.lang.ops import Op
from nbsglang.lang.run import Run
from nbsglang.lang.slots import Fault, Signal

_NO_OPS: deque[Op] = deque(maxlen=0)  # shared by all streams that are over; nothing can get into it


class Stream:
    """One prompt that grows. The Python side appends to `todo` and counts `n_submitted`; the rest is the driver's.

    `path` says where in its run the stream is (branch numbers), whatever the timing. `shown` is the prompt and the
    text of the call that is streaming right now, as one value, for readers on any thread.
    """

    __slots__ = (
        "calls",
        "doing",
        "ended",
        "execution",
        "fault",
        "forked_at",
        "id",
        "n_calls",
        "n_done",
        "n_hints",
        "n_submitted",
        "path",
        "raised",
        "run",
        "scheduled",
        "scopes",
        "shown",
        "signal",
        "todo",
        "warm",
        "whole",
    )

    def __init__(self, stream_id: str, run: Run, path: tuple[int, ...] = ()) -> None:
        self.id = stream_id
        self.run = run
        self.path = path
        self.signal = Signal()
        self.todo: deque[Op] = deque()
        self.n_submitted = 0
        self.n_done = 0
        self.scheduled = False  # the driver has been told of new ops
        self.ended = ""  # how, once nothing more may be appended
        self.whole = False  # everything was done when it was stopped
        self.raised = ""  # "cancelled" or "failed" where the Python of its program or branch ended with an error
        self.doing: Op | None = None
        self.fault: Fault | None = None
        self.shown: tuple[Prompt, str] = ((), "")
        self.forked_at = prompts.START
        self.scopes: dict[str, prompts.Mark] = {}
        self.n_calls = 0
        self.n_hints = 0
        self.warm: Prompt = ()  # the prompt when the last call ended: what the backend has computed already
        self.calls: tuple[str, ...] = ()  # open ones
        self.execution: Generator[object, Any, None] | None = None  # the driver starts it

    @property
    def prompt(self) -> Prompt:
        """The prompt so far, without the text of a call that still runs."""
        return self.shown[0]

    @property
    def idle(self) -> bool:
        """Whether every op that was submitted is done."""
        return self.n_done >= self.n_submitted

    def append(self, segments: Prompt) -> None:
        """Put these at the prompt's end, and tell readers."""
        self.shown = (prompts.extended(self.shown[0], segments), "")
        if self.run.streaming:
            self.signal.notify()

    def stop(self) -> None:
        """Go no further with the op that is being done."""
        if self.execution is not None:
            self.execution.close()
            self.execution = None

    def release(self) -> None:
        """The stream is over and idle: let go of what only its ops needed. Many programs stay around after their end,
        and Python's garbage collector visits each object of theirs again and again."""
        self.todo = _NO_OPS
        self.warm = ()


def drop_ops(stream: Stream, fault: Fault) -> list[Op]:
    """Fail the ops that the stream has not done, and return them. For the driver's thread alone."""
    dropped: list[Op] = [] if stream.doing is None else [stream.doing]
    stream.doing = None
    while stream.todo:  # the Python side may still append
        dropped.append(stream.todo.popleft())
    for op in dropped:
        for slot in op.slots:
            slot.fail(fault)
    stream.n_done += len(dropped)
    stream.signal.notify()
    return dropped


def refuse_op(stream: Stream, op: Op, fault: Fault) -> None:
    """Fail an op that the stream has not taken; what it has taken is the driver's."""
    stream.fault = stream.fault or fault
    for slot in op.slots:
        slot.fail(fault)


def how_raised(error: BaseException) -> str:
    """How a stream ended whose Python raised this: an interrupt is a cancel, whatever else is no part of the plan."""
    return "cancelled" if isinstance(error, Cancelled | KeyboardInterrupt) else "failed"


def fault_of(stream: Stream, error: Exception, call_id: str) -> Fault:
    """The fault that an error means for its stream: it names the line, the part, the stream and the call."""
    if isinstance(error, Cancelled):
        return Fault(type(error), str(error))
    op = stream.doing
    place = f"{op.where}: {ops.describe(op.part)} failed" if op is not None else "failed"
    call = f", call {call_id}" if call_id else ""
    if isinstance(error, NbsglangError):
        error = error.with_traceback(None)  # our own frames say nothing to the user
    return Fault(ProgramError, f"{place} (stream {stream.id}{call}): {type(error).__name__}: {error}", error)
