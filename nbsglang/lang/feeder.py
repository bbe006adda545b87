"""What the driver's thread does with streams: feeds their generators ops and answers, and submits their calls.

Not here: the thread and its queue (`driver.py`), what a stream does (`execute.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

from nbsglang.calls import Chunk, Failure, GenCall, Reply, ScoreCall
from nbsglang.errors import Cancelled
from nbsglang.events import CallBegan, CallEnded, StreamEnded
from nbsglang.lang.execute import Ask, Hint, Inherited, execute
from nbsglang.lang.ops import Op
from nbsglang.lang.run import cancelled
from nbsglang.lang.slots import Fault, Slot
from nbsglang.lang.stream import Stream, drop_ops, fault_of


class Resume(NamedTuple):
    """The slot that the stream waited for is done."""

    stream: Stream


class _Open(NamedTuple):
    """A call that has not been answered; `submitted_s` counts from the begin of its run."""

    stream: Stream
    is_hint: bool
    submitted_s: float


class Feeder:
    """Feeds the streams of a driver, whose thread alone may use it.

    Answers of backends go to `inbox`, and so does a Resume for each stream that can go on.
    """

    def __init__(self, inbox: SimpleQueue[Any]) -> None:
        self._inbox = inbox
        self._open: dict[str, _Open] = {}
        self._live: dict[str, Stream] = {}
        self._awaiting: dict[Slot, list[Stream]] = {}

    def take(self, stream: Stream) -> None:
        """Begin with the ops of a stream that has new ones, unless it is busy."""
        self._live[stream.id] = stream
        stream.scheduled = False
        if stream.fault is not None:
            self.fail(stream, stream.fault)
        elif stream.doing is None and stream.todo:
            self._begin_op(stream)

    def resume(self, stream: Stream) -> None:
        """Go on with a stream whose slot is done."""
        self._advance(stream, None)

    def answer(self, item: Chunk | Reply | Failure) -> None:
        """Pass on what a backend has answered; what it answers to a call that is over is dropped."""
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
            self.fail(stream, fault_of(stream, item.error, item.call_id))
        else:
            self._advance(stream, item)

    def fail(self, stream: Stream, fault: Fault) -> None:
        """The stream does nothing more; the first fault stands."""
        if stream.fault is None:
            stream.whole = stream.idle
        stream.fault = stream.fault or fault
        stream.stop()
        self._cancel_calls(stream)
        for op in drop_ops(stream, stream.fault):
            self._wake_streams(op)

    def end(self, stream: Stream) -> None:
        """Nothing more happens on the stream: cancel what it has left open, say how it ended."""
        if not stream.idle:  # ended by one thread while another still appended
            self.fail(stream, cancelled("the state has ended"))
        how = stream.raised or stream.ended
        if stream.fault is not None and not stream.whole and not stream.raised:
            how = "cancelled" if issubclass(stream.fault.kind, Cancelled) else "failed"
        stream.stop()
        self._cancel_calls(stream)  # prefix hints, if any
        stream.release()
        self._live.pop(stream.id, None)
        stream.run.emit(StreamEnded(stream.id, how))

    def stop(self, late: Iterable[Stream], fault: Fault) -> None:
        """End all streams, the `late` ones too, which nobody has taken. Nothing is fed any more."""
        self._live.update((stream.id, stream) for stream in late)
        for stream in list(self._live.values()):
            self.fail(stream, fault)
            stream.ended = stream.ended or "done"
            self.end(stream)
        self._open.clear()

    # ------------------------------------------------------------------------------------ inner parts

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
            self.fail(stream, error.fault)
        except Exception as error:  # whatever a backend or a user's method raises belongs to the stream
            self.fail(stream, fault_of(stream, error, ""))

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
                self._inbox.put(Resume(waiting))

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

    def _cancel_calls(self, stream: Stream) -> None:
        for call_id in stream.calls:
            with suppress(Exception):  # the call is over for us, whatever the backend makes of it
                stream.run.backend.cancel(call_id)
            self._close_call(stream, call_id, Cancelled("the call was cancelled"))
