"""The other side of widgets in tests: comms that keep what is sent, and what a front end answers."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from nbsglang.viz.wire import Message
from tests.notebook.reader import Reader


class Comm:
    """A comm whose other end is the test."""

    def __init__(self, target_name: str, data: dict[str, Any], **_: object) -> None:
        self.comm_id = uuid.uuid4().hex
        self.state = dict(data["state"])
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []
        self.is_closed = False
        self._heard: Callable[[dict[str, Any]], None] = lambda message: None

    def _reply_subshell_for(self, data: object, default: str | None) -> str | None:
        return default  # as of ipykernel 7.4

    def on_msg(self, heard: Callable[[dict[str, Any]], None]) -> None:
        self._heard = heard

    def send(self, data: dict[str, Any], buffers: list[bytes] | None = None, **_: object) -> None:
        if data["method"] == "update":
            self.state.update(data["state"])
        elif data["method"] == "custom":
            self.sent.append((data["content"], list(buffers or [])))

    def close(self, *_: object, **__: object) -> None:
        self.is_closed = True

    def say(self, **content: Any) -> None:
        """A custom message to the kernel, on a thread of its own as in a kernel with subshells."""
        message = {"content": {"data": {"method": "custom", "content": content}}, "buffers": []}
        thread = threading.Thread(target=self._heard, args=(message,))
        thread.start()
        thread.join(10)
        assert not thread.is_alive(), "who hears a message must not wait for a run"


class FrontEnd:
    """All comms of a kernel, by the kind of their widget."""

    def __init__(self) -> None:
        self.comms: list[Comm] = []

    def create_comm(self, *args: Any, **kwargs: Any) -> Comm:
        self.comms.append(Comm(*args, **kwargs))
        return self.comms[-1]

    def of(self, kind: str) -> list[Comm]:
        """The comms of Session or RunView widgets."""
        return [comm for comm in self.comms if comm.state.get("_anywidget_id", "").endswith(f".{kind}")]

    def greet(self) -> Comm:
        """What a front end does that makes our widgets: the first view says hello; then there is a session."""
        self.of("RunView")[-1].say(do="hello")
        wait_until(lambda: self.of("Session"))
        session = self.of("Session")[-1]
        session.say(do="resync")
        return session


def read(session: Comm) -> Reader:
    """What a session has been told so far."""
    reader = Reader()
    for content, buffers in list(session.sent):
        reader.take(Message(content, tuple(buffers)))
    return reader


def wait_until(true: Callable[[], object], timeout_s: float = 5.0) -> None:
    until = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)
