"""Stopping: interrupts, timeouts, cancels. What was running is cancelled, and nothing is left of it."""

from __future__ import annotations

import _thread
import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang.errors import Cancelled, ProgramError, TimedOut

pytestmark = pytest.mark.usefixtures("no_greenlets_left")


SOON = 3  # seconds: what is cut short here would take 30, so a busy machine has room


@contextmanager
def ends_within(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """An interrupt, as from a Ctrl-C, after a while; it must be over soon after that."""
    at: list[float] = []

    def strike() -> None:
        at.append(time.monotonic())
        _thread.interrupt_main()

    timer = threading.Timer(seconds, strike)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
        assert time.monotonic() - at[0] < SOON
    finally:
        timer.cancel()


@sgl.function
def slow(s, n=1):
    s += "p" + sgl.gen("a")
    forks = s.fork(n)
    forks += sgl.gen("b")
    forks.join()
    return forks[0]["b"]


def test_an_interrupt_while_a_program_waits() -> None:
    mock = sgl.MockBackend("t", delay=30)
    with interrupted_after(0.1):
        slow.run(backend=mock)
    assert mock.cancelled == [call.call_id for call in mock.calls]
    assert len(mock.calls) == 1


def test_an_interrupt_of_a_batch_cancels_every_call_and_unwinds_every_program() -> None:
    mock = sgl.MockBackend("t", delay=30)
    unwound: list[str] = []

    @sgl.function
    def program(s, i):
        s += sgl.gen("a")
        try:
            s["a"]
        except Cancelled:
            unwound.append("cancelled")
            raise
        finally:
            unwound.append("finally")

    with interrupted_after(0.2):
        program.run_batch([(i,) for i in range(300)], backend=mock)
    assert len(mock.cancelled) == len(mock.calls) == 300
    assert unwound.count("finally") == 300
    assert unwound.count("cancelled") == 300


def test_an_interrupt_of_a_batch_that_has_more_to_start() -> None:
    @sgl.function
    def program(s, i):
        began.append(i)
        s += sgl.gen("a")
        try:
            s["a"]
        finally:
            raise LookupError("from a finally block")

    began: list[int] = []
    mock = sgl.MockBackend("t", delay=30)
    with interrupted_after(0.2):
        program.run_batch([(i,) for i in range(50)], backend=mock, num_threads=10)
    assert began == list(range(10))
    assert len(mock.cancelled) == len(mock.calls) == 10


def test_an_interrupt_in_the_programs_own_python() -> None:
    @sgl.function
    def program(s):
        s += sgl.gen("a")
        while True:
            time.sleep(0.001)

    mock = sgl.MockBackend("t", delay=30)
    with interrupted_after(0.1):
        program.run_batch([()] * 5, backend=mock)
    assert len(mock.cancelled) == len(mock.calls) >= 1


def test_an_interrupt_that_a_program_swallows_ends_all_the_same() -> None:
    @sgl.function
    def stubborn(s):
        s += sgl.gen("a")
        while True:
            try:
                return s["a"]
            except Exception:
                continue

    with interrupted_after(0.1):
        stubborn.run_batch([()] * 5, backend=sgl.MockBackend("t", delay=30))


def test_an_interrupt_inside_nested_runs() -> None:
    @sgl.function
    def outer(s):
        return slow.run_batch([{"n": 2}] * 3)

    mock = sgl.MockBackend("t", delay=30)
    with interrupted_after(0.1):
        outer.run_batch([()] * 3, backend=mock)
    assert sorted(mock.cancelled) == sorted(call.call_id for call in mock.calls)
    assert len(mock.calls) == 9


def test_a_real_sigint_in_a_process_of_its_own() -> None:
    code = """
import nbsglang as sgl, threading, time
mock = sgl.MockBackend("t", delay=30)
@sgl.function
def program(s):
    s += sgl.gen("a")
    s["a"]
print("ready", flush=True)
try:
    program.run_batch([()] * 20, backend=mock)
except KeyboardInterrupt:
    time.sleep(0.05)
    print(len(mock.cancelled), [t.name for t in threading.enumerate()], flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    with ends_within(2 * SOON):  # the interpreter's own exit included
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=10)
    assert out == "20 ['MainThread']\n"
    assert process.returncode == 0


def test_a_timeout_cancels_and_raises() -> None:
    mock = sgl.MockBackend("t", delay=30)
    with ends_within(SOON), pytest.raises(TimedOut, match=r"timeout of 0.1 s"):
        slow.run(backend=mock, timeout=0.1)
    assert len(mock.cancelled) == 1
    assert slow.run(backend=sgl.MockBackend("t", delay=0.01), timeout=30)["a"] == "t"


def test_a_timeout_of_a_batch_leaves_what_was_done() -> None:
    class Stuck(sgl.MockBackend):
        """Never answers after its third call."""

        def submit(self, call: Any, inbox: Any) -> None:
            if len(self.calls) < 3:
                super().submit(call, inbox)

    with ends_within(SOON):
        states = slow.run_batch([()] * 3, backend=Stuck("t"), timeout=0.2, num_threads=1, on_error="return")
    assert [type(s.error()) for s in states] == [type(None), TimedOut, TimedOut]
    assert [s.ret_value for s in states] == ["t", None, None]
    assert states[1]["a"] == "t"
    with pytest.raises(TimedOut):
        states[2].text()


def test_a_timeout_is_raised_though_the_program_never_reads() -> None:
    @sgl.function
    def program(s):
        s += sgl.gen("a")

    with ends_within(SOON), pytest.raises(TimedOut):
        program.run(backend=sgl.MockBackend("t", delay=30), timeout=0.1)


def test_a_timeout_reaches_nested_runs() -> None:
    @sgl.function
    def outer(s):
        return slow.run_batch([()] * 3)

    mock = sgl.MockBackend("t", delay=30)
    with ends_within(SOON), pytest.raises(TimedOut):
        outer.run(backend=mock, timeout=0.1)
    assert len(mock.cancelled) == 3


def test_a_branch_can_be_cancelled_alone() -> None:
    mock = sgl.MockBackend("t", delay=0.5)

    @sgl.function
    def program(s):
        forks = s.fork(3)
        forks += "b" + sgl.gen("x")
        while len(mock.calls) < 3:
            time.sleep(0.001)
        inner = forks[1].fork(2)
        inner += sgl.gen("y")
        forks[1].cancel()
        for state in (forks[1], inner[0], inner[1]):
            with pytest.raises(Cancelled):
                state["x" if state is forks[1] else "y"]
        assert len(mock.cancelled) >= 1  # at once, not when the run ends
        forks.join(strict=False)
        return s["x"], type(forks.errors[1]), forks[1].error()

    values, kind, error = program.run(backend=mock).ret_value
    assert values == ["t", None, "t"]
    assert kind is Cancelled
    assert isinstance(error, Cancelled)


def test_a_program_can_cancel_itself_from_another_thread() -> None:
    mock = sgl.MockBackend("t", delay=30)

    @sgl.function
    def program(s):
        s += sgl.gen("a")
        threading.Timer(0.05, s.cancel).start()
        s["a"]

    with ends_within(SOON), pytest.raises(Cancelled):
        program.run(backend=mock)
    assert len(mock.cancelled) == 1


def test_cancel_of_a_streaming_run() -> None:
    mock = sgl.MockBackend("t" * 100, delay=30)
    state = slow.run(backend=mock, stream=True)
    while not mock.calls:
        time.sleep(0.001)
    state.cancel()
    with ends_within(SOON), pytest.raises(Cancelled):
        list(state.text_iter("a"))
    with pytest.raises(Cancelled):
        state.text()
    assert isinstance(state.error(), Cancelled)
    assert len(mock.cancelled) == 1


def test_after_an_interrupt_everything_works_again() -> None:
    mock = sgl.MockBackend("t", delay=30)
    with interrupted_after(0.05):
        slow.run(backend=mock)
    assert slow.run(backend=sgl.MockBackend("t"))["a"] == "t"


def test_cancelling_arun_cancels_the_run() -> None:
    mock = sgl.MockBackend("t", delay=30)

    async def main() -> None:
        task = asyncio.create_task(slow.arun(backend=mock))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ends_within(SOON):
        asyncio.run(main())
    assert len(mock.cancelled) == 1


def test_an_interrupt_of_arun() -> None:
    mock = sgl.MockBackend("t", delay=30)
    with interrupted_after(0.1):
        asyncio.run(slow.arun(backend=mock))
    assert len(mock.cancelled) == 1


def test_a_hundred_runs_leave_nothing() -> None:
    before = threading.active_count()
    for i in range(100):
        if i % 2:
            slow.run(backend=sgl.MockBackend("t"), n=3)
        else:
            with pytest.raises(ProgramError):
                slow.run(backend=sgl.MockBackend(RuntimeError("x")))
    assert threading.active_count() == before
