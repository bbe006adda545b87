"""The engine's thread: takes commands from a mailbox, steps the core while there is work, delivers outputs.

A daemon thread, so that it never keeps a kernel from ending. It also clears up at its end: a finalizer must not
take locks or wait, as it may run anywhere.

Not here: what a step does (`core.py`) and what an output means to a call (`backend.py`).
"""

from __future__ import annotations

import atexit
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch

from nbsglang import current
from nbsglang.engine.commit import Output
from nbsglang.engine.core import Core

_LONG_S = 0.5  # who waits so long is likely to go on waiting

Command = Callable[[Core], object]


class Delivery(Protocol):
    """Who receives what the loop has to say, on the loop's thread."""

    def deliver(self, outputs: list[Output], /) -> None:
        """What a step or a command brought."""
        ...

    def ended(self, crash: str | None, /) -> None:
        """The loop has ended; `crash` is the traceback of an error that nobody handled."""
        ...


class Loop:
    """One thread around one core; only that thread touches the core while the loop runs."""

    def __init__(self, core: Core, delivery: Delivery, name: str) -> None:
        self._core = core
        self._delivery = delivery
        self._mail: deque[Command] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._main, name=f"nbsglang-engine-{name}", daemon=True)
        # At the interpreter's end the thread must be gone: torch aborts the process under one that still computes.
        atexit.register(self._at_exit)
        self._thread.start()

    def _at_exit(self) -> None:
        self.stop()
        self.join()

    @property
    def runs(self) -> bool:
        """The thread takes commands."""
        return not self._closing

    def post(self, command: Command) -> bool:
        """Let the thread run a command before its next step; False when it runs no more."""
        with self._wake:
            if self._closing:
                return False
            self._mail.append(command)
            self._wake.notify()
            return True

    def stop(self) -> None:
        """Let the thread end after the current step. Only signals: a finalizer may call it on any thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()

    def join(self) -> None:
        """Wait for the thread's end, unless called from the thread itself."""
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _main(self) -> None:
        crash: str | None = None
        try:
            if (device := self._core.model.device).type == "cuda":
                torch.cuda.set_device(device)  # of this thread: kernels are launched on the current device
            self._work()
        except BaseException:  # a bug of ours: nobody may wait for ever because of it
            crash = traceback.format_exc()
        self.stop()
        self._delivery.ended(crash)
        atexit.unregister(self._at_exit)

    def _work(self) -> None:
        while (commands := self._take(wait=True)) is not None:
            self._run(commands)
            if self._core.has_work:
                self._core.wake()
                with self._hurrying():
                    if not self._work_on():
                        return

    def _work_on(self) -> bool:
        """Step until all is done. False where the loop is to end."""
        core = self._core
        while core.has_work:
            self._delivery.deliver(core.step())
            core.model.between_steps()
            commands = self._take(wait=False)
            if commands is None:
                return False
            self._run(commands)
        return True

    def _run(self, commands: list[Command]) -> None:
        for command in commands:
            command(self._core)

    @contextmanager
    def _hurrying(self) -> Iterator[None]:
        """On a device that works by itself, launches must not wait for other threads."""
        if self._core.model.device.type == "cpu":
            yield
            return
        current.hurry()
        try:
            yield
        finally:
            current.relax()

    def _take(self, wait: bool) -> list[Command] | None:
        """The mail that has come; None when the loop is to end. In a long wait the model gets ready for later steps."""
        with self._wake:
            while wait and not self._mail and not self._closing:
                if not self._wake.wait(_LONG_S if self._core.model.has_chores else None):
                    self._wake.release()
                    try:
                        self._core.model.do_chore()
                    finally:
                        self._wake.acquire()
            if self._closing:
                return None
            commands = list(self._mail)
            self._mail.clear()
            return commands
