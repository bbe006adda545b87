"""The driver and its streams from below: who owns an op around the stop and the end, and what a stream keeps."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

import nbsglang as sgl
from nbsglang.errors import Cancelled, UsageError
from nbsglang.events import EventLog
from nbsglang.lang import ops
from nbsglang.lang.driver import Driver
from nbsglang.lang.options import run_options
from nbsglang.lang.run import Run, cancelled
from nbsglang.lang.slots import Slot, Where
from nbsglang.lang.stream import Stream


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class SlowOps(deque[ops.Op]):
    """Leaves time for another thread between looking at the ops and changing them."""

    def popleft(self) -> ops.Op:
        time.sleep(0)
        return super().popleft()

    def appendleft(self, op: ops.Op) -> None:
        time.sleep(0.0002)
        super().appendleft(op)


def a_stream(driver: Driver, todo: deque[ops.Op] | None = None) -> tuple[Stream, Callable[[], Slot]]:
    """A stream whose calls are never answered, and a function that feeds it a gen."""
    run = Run(driver, sgl.MockBackend("t", delay=30), EventLog(), run_options({}))
    stream = Stream("s", run)
    stream.todo = deque() if todo is None else todo

    def feed() -> Slot:
        slot = Slot("x", stream.signal)
        driver.feed(stream, ops.Op(sgl.gen("x").parts[0], (slot,), Where("file.py", 1, "f")))
        return slot

    return stream, feed


@pytest.mark.usefixtures("hasty_threads")
def test_feeding_a_driver_that_stops_fails_every_op_once() -> None:
    for _ in range(30):
        driver = Driver()
        stream, feed = a_stream(driver, SlowOps())
        slots = [feed() for _ in range(10)]
        stopper = threading.Thread(target=driver.abort, args=(cancelled("stop"),))
        stopper.start()
        with suppress(UsageError):  # the stream has ended
            while not slots[0].done:
                slots.append(feed())
            for _ in range(10):
                slots.append(feed())
        stopper.join()
        driver.close()
        assert stream.n_done == stream.n_submitted
        assert {slot.fault.message for slot in slots if slot.fault} == {"stop"}
        assert all(slot.done for slot in slots)
        assert stream.fault is not None
        assert isinstance(backend := stream.run.backend, sgl.MockBackend)
        assert backend.cancelled == [call.call_id for call in backend.calls]


def test_an_op_after_the_stop_fails_alone_and_at_once() -> None:
    driver = Driver()
    known, feed = a_stream(driver)
    feed()
    driver.abort(cancelled("stop"))
    driver.close()
    late, feed_late = a_stream(driver)  # the thread has never heard of it
    slot = feed_late()
    with pytest.raises(Cancelled, match="stop"):
        slot.read()
    assert late.idle
    assert late.fault is known.fault


def test_ops_of_a_stream_that_is_ended_fail_and_hang_nobody() -> None:
    driver = Driver()
    stream, feed = a_stream(driver)
    slots = [feed(), feed()]
    driver.end(stream, "done")
    driver.close()
    for slot in slots:
        with pytest.raises(Cancelled):
            slot.read()
    assert stream.idle
    with pytest.raises(UsageError, match="run is over"):
        feed()


def test_a_finished_program_keeps_few_objects() -> None:
    """Three calls: the state, its run, stream and signal, 3 variables, 6 pieces of text, and what holds them."""

    @sgl.function
    def program(s, question):
        for name in "abc":
            s += question
            s += sgl.gen(name)

    def run(n: int) -> list[sgl.ProgramState]:
        items = [(str(i),) for i in range(n)]
        return list(program.run_batch(items, backend=mock, log=EventLog()))

    def count() -> Counter[str]:
        mock._calls.clear()
        for _ in range(3):  # tuples and dicts of plain values are no longer looked at after the first
            gc.collect()
        return Counter(type(thing).__qualname__ for thing in gc.get_objects())

    mock = sgl.MockBackend("t")
    run(10)  # what is imported and cached at first
    before = count()
    states = run(500)
    grown = count() - before
    each = {kind: n / 500 for kind, n in grown.items() if n >= 250}
    assert len(states) == 500
    assert sum(each.values()) < 20, each
    assert states[0].get_meta_info("a")["finish_reason"] == {"type": "stop"}
