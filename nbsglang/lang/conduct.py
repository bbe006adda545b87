"""Running prepared programs: on the caller's thread, or on a thread of their own for streaming and for `arun`.

A program's run ends when its Python has ended and every stream of it is idle. Then an error that nobody has read is
raised. Whatever way it ends, no call, no greenlet and no thread of it is left.

Not here: preparing arguments (`program.py`), many programs (`batch.py`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from nbsglang import current
from nbsglang.lang.cell_errors import one_error, warn_unused
from nbsglang.lang.driver import Driver
from nbsglang.lang.hub import Hub, current_place, inside, on_hub, wait, wait_async
from nbsglang.lang.options import Options
from nbsglang.lang.run import Run, cancelled
from nbsglang.lang.state import ProgramState
from nbsglang.lang.stream import how_raised

Call = Callable[[ProgramState], Any]
_JOIN_S = 0.5  # how long to wait for a cancelled thread, whose Python may be busy


def run_here(label: str, call: Call, options: Options) -> ProgramState:
    """Run on this thread and wait; inside another program as a part of its run."""
    with on_hub() as place:
        run = new_run(place.hub.driver, place.run, options)
        state = ProgramState.begin(run, label)
        conduct(state, call, place.hub)
    return state


def start_thread(
    label: str, call: Call, options: Options, *, streaming: bool = True
) -> tuple[ProgramState, threading.Thread]:
    """Run on a thread that owns a hub, since a reader elsewhere would wait for a hub that nobody pumps."""
    place = current_place()
    run = new_run(Driver(), place.run if place is not None else None, options, streaming=streaming)
    run.thread = 0  # not the caller's
    state = ProgramState.begin(run, label)
    return state, start_hub_thread(run, lambda hub: conduct(state, call, hub))


def start_hub_thread(
    run: Run, body: Callable[[Hub], None], at_end: Callable[[], None] | None = None
) -> threading.Thread:
    """A thread with a hub for `body`, which leaves its errors in the run; `at_end` is called when all of it is over."""

    def main() -> None:
        run.thread = threading.get_ident()
        with suppress(BaseException), on_hub(run.driver) as place:
            body(place.hub)
        if at_end is not None:
            at_end()

    # The caller's context variables hold in the program too.
    thread = threading.Thread(target=copy_context().run, args=(main,), name=f"nbsglang-{run.driver.id}", daemon=True)
    thread.start()
    return thread


def new_run(
    driver: Driver, parent: Run | None, options: Options, *, path: tuple[int, ...] = (), streaming: bool = False
) -> Run:
    """A run; backend and log are those of the options, else the parent's, else the defaults."""
    backend = options.backend or (parent.backend if parent is not None else current.default_backend())
    log = options.log or (parent.log if parent is not None else current.event_log())
    return Run(driver, backend, log, options, parent=parent, path=path, streaming=streaming)


def conduct(state: ProgramState, call: Call, hub: Hub) -> None:
    """Call the program, wait for its streams, raise the first error that nobody has seen."""
    run = state._run
    try:
        with inside(run, hub):
            state.ret_value = call(state)
            for stream in run.streams:
                wait(stream.signal, lambda: stream.idle)  # noqa: B023 (waits at once)
        unseen = run.undelivered()
        if unseen:
            raise one_error(unseen) if state._cell is None else state._cell.one_error(unseen)
        if run.made:
            warn_unused(run)
    except BaseException as error:
        run.failure, run.failure_traceback = error, error.__traceback__
        state._stream.raised = how_raised(error)
        run.cancel(cancelled("its program ended with an error"))
        raise
    finally:
        run.end()
    if current.verbosity() >= 2:
        print(state.text())


async def wait_until_over(state: ProgramState, thread: threading.Thread) -> None:
    """Wait for a run on a thread, in a coroutine; cancelling that cancels the run. Raises what the run raised."""
    run = state._run
    try:
        await wait_async(state._stream.signal, lambda: run.over)
    except BaseException as error:
        run.cancel(cancelled("the coroutine that waited for the run was cancelled"))
        if isinstance(error, asyncio.CancelledError):  # else the event loop may be gone
            await _end_of(thread)
        raise
    await _end_of(thread)
    if run.failure is not None:
        raise run.failure.with_traceback(run.failure_traceback)


async def _end_of(thread: threading.Thread) -> None:
    """Wait for a thread that is about to end, without holding up the other coroutines."""
    until = time.monotonic() + _JOIN_S
    while thread.is_alive() and time.monotonic() < until:
        await asyncio.sleep(0.002)
