"""Waiting: on a thread that runs programs a hub lets another greenlet run meanwhile, elsewhere one waits in place.

The hub's home is the greenlet that made it; a program of its own runs there, those of a batch in greenlets below it.
All of them run on one thread, so prints, plots and interrupts behave. Whoever waits in the home pumps the others.
A wait looks at the clock every 50 ms, so that an interrupt is never late.

Not here: what is waited for (`slots.py`), who brings it about (`driver.py`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple

import greenlet  # type: ignore[import-untyped]  # it ships no types

from nbsglang.errors import Cancelled
from nbsglang.lang.driver import Driver
from nbsglang.lang.run import Run, cancelled
from nbsglang.lang.slots import Signal

_SLICE_S = 0.05
Ready = Callable[[], bool]


class Hub:
    """Greenlets of one thread that wait for signals, and the driver that the programs on it use."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._home = greenlet.getcurrent()
        self._thread = threading.get_ident()
        self._loop = asyncio._get_running_loop()
        self._woken: SimpleQueue[greenlet.greenlet] = SimpleQueue()
        self._waiting: set[greenlet.greenlet] = set()  # may be switched to
        self._children: set[greenlet.greenlet] = set()
        self._closed = False

    def is_here(self) -> bool:
        """Whether the caller runs on this hub, and may switch.

        Not inside an event loop that was started below (`asyncio.run` in a program): its tasks share a greenlet.
        """
        if threading.get_ident() != self._thread or asyncio._get_running_loop() is not self._loop:
            return False
        me = greenlet.getcurrent()
        return me in self._children or (me is self._home and not self._closed)

    def spawn(self, body: Callable[[], None], context: Context) -> None:
        """Run `body` in a greenlet, in a context that is its own, as soon as the home waits. It must not raise.

        A hub that is closed runs nothing more.
        """
        if self._closed:  # the run is being stopped
            return
        child = greenlet.greenlet(partial(self._run_child, body), self._home)
        child.gr_context = context
        self._waiting.add(child)
        self._woken.put(child)

    def wait(self, signal: Signal, ready: Ready) -> None:
        """Let others run until `ready()`, which is asked again after each notify of the signal."""
        me = greenlet.getcurrent()
        wake = partial(self._woken.put, me)
        registered = False
        while not ready():
            if not registered:
                signal.add(wake)
                registered = True  # and ask once more: it may have happened in between
            elif me is self._home:
                registered = self._turn() is not me
            else:
                self._suspend(me)
                registered = False

    def close(self) -> None:
        """Throw Cancelled into every suspended greenlet, on this thread; afterwards none is left."""
        self._closed = True
        while self._waiting:
            child = self._waiting.pop()
            if child.dead or not child:  # not started yet: there is nothing to unwind
                self._children.discard(child)
            else:
                with suppress(Exception):  # of its own finally blocks; the others must unwind too
                    child.throw(Cancelled("the run was closed while the program waited"))

    def _run_child(self, body: Callable[[], None]) -> None:
        me = greenlet.getcurrent()
        self._children.add(me)
        try:
            body()
        finally:
            self._children.discard(me)

    def _suspend(self, me: greenlet.greenlet) -> None:
        if self._closed:  # it has had its Cancelled and goes on all the same
            raise greenlet.GreenletExit
        self._waiting.add(me)
        self._home.switch()

    def _turn(self) -> greenlet.greenlet | None:
        """Let the next woken greenlet run; the one that was woken, or None if there was none for a while."""
        try:
            woken = self._woken.get(timeout=_SLICE_S)
        except Empty:
            return None
        if woken in self._waiting:
            self._waiting.discard(woken)
            woken.switch()
        return woken


class Place(NamedTuple):
    """Where a program runs: on which hub, and as a part of which run."""

    hub: Hub
    run: Run | None


_place: ContextVar[Place | None] = ContextVar("nbsglang_place", default=None)


def current_place() -> Place | None:
    """The hub and run of the program that calls this; None outside of programs and where one cannot switch."""
    place = _place.get()
    return place if place is not None and place.hub.is_here() else None


@contextmanager
def on_hub(driver: Driver | None = None) -> Iterator[Place]:
    """The hub of the calling program; outside of programs a fresh one (of `driver`), which is closed at the end."""
    outer = current_place()
    if outer is not None:
        yield outer
        return
    hub = Hub(driver or Driver())
    try:
        yield Place(hub, None)
    except BaseException:
        hub.driver.abort(cancelled("the run was interrupted"))  # first: it stops the calls
        raise
    finally:
        try:
            hub.close()
        finally:
            hub.driver.close()


@contextmanager
def inside(run: Run, hub: Hub) -> Iterator[None]:
    """The caller is the program of `run` now."""
    token = _place.set(Place(hub, run))
    try:
        yield
    finally:
        _place.reset(token)


def wait(signal: Signal, ready: Ready) -> None:
    """Wait until `ready()`; the signal is notified when it may have become so."""
    if ready():
        return
    place = current_place()
    if place is None:
        _wait_in_place(signal, ready)
        return
    try:
        place.hub.wait(signal, ready)
    except KeyboardInterrupt:  # the program may catch it, and must be stopped all the same
        if place.run is not None:
            place.run.whole.cancel(cancelled("the run was interrupted"))
        raise


async def wait_async(signal: Signal, ready: Ready) -> None:
    """The same in a coroutine, with a tick, since an event loop that only waits for a thread may miss an interrupt."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(event.set)

    for _ in _pauses(signal, ready, wake, event):
        # not wait_for: Python 3.11's may swallow a cancellation that comes just as the time is over
        with suppress(TimeoutError):
            async with asyncio.timeout(_SLICE_S):
                await event.wait()


def _wait_in_place(signal: Signal, ready: Ready) -> None:
    event = threading.Event()
    for _ in _pauses(signal, ready, event.set, event):
        event.wait(_SLICE_S)


def _pauses(
    signal: Signal, ready: Ready, wake: Callable[[], None], woken: threading.Event | asyncio.Event
) -> Iterator[None]:
    """Yields whenever the waiter has to pause until `wake` has set `woken`, or for a slice of time."""
    while not ready():
        signal.add(wake)
        while not ready():  # asked once more after adding: it may have happened in between
            yield
            if woken.is_set():  # `wake` has been used up
                woken.clear()
                break
