"""What any thread may do with the engine's own: start a call, cancel it, put a question between two steps.

Not here: the thread (`loop.py`), calls in flight (`backend.py`), what goes back from the thread (`outlet.py`).
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from nbsglang.calls import Call, Inbox
from nbsglang.engine.backend import Desk
from nbsglang.engine.core import Core
from nbsglang.engine.intake import Intake
from nbsglang.engine.loop import Loop
from nbsglang.engine.request import Request
from nbsglang.errors import BackendClosed

_SLICE_S = 0.05  # a question to the engine's thread looks this often whether the thread still runs
Answer = TypeVar("Answer")


class Access:
    """The way to the thread of the engine `name`."""

    def __init__(self, intake: Intake, desk: Desk, loop: Loop, name: str) -> None:
        self._intake = intake
        self._desk = desk
        self._loop = loop
        self._name = name

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Start a call; see `nbsglang.calls.Backend`."""
        requests = self._intake.requests(call)
        self._desk.open(call, inbox, requests)
        if not self._loop.post(partial(_submit, requests)):
            self._desk.forget(call.call_id)
            raise BackendClosed(f"the engine {self._name!r} is closed")

    def cancel(self, call_id: str) -> None:
        """Stop a call: its inbox gets a Failure now, its memory comes back after the current step."""
        requests = self._desk.requests(call_id)
        self._desk.cancelled(call_id)
        self._loop.post(partial(_abort, requests))

    def ask(self, question: Callable[[Core], Answer]) -> Answer:
        """Let the engine's thread answer between two steps, and wait. Raises BackendClosed."""
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        if not self._loop.post(lambda core: answers.put(question(core))):
            raise BackendClosed(f"the engine {self._name!r} is closed")
        while True:
            try:
                return answers.get(timeout=_SLICE_S)
            except queue.Empty:
                if not self._loop.runs:
                    raise BackendClosed(f"the engine {self._name!r} was closed") from None


def _submit(requests: Sequence[Request], core: Core) -> None:
    for request in requests:
        core.submit(request)


def _abort(requests: Sequence[Request], core: Core) -> None:
    for request in requests:
        core.abort(request)
