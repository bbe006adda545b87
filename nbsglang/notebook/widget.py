"""The widgets: one `Session` holds the state in the front end, a `RunView` for each output shows a part of it.

Each widget keeps its whole script in a notebook that is saved with widget state; so the bundle is the session's, and a
view's is a few lines that find the session. A view says "hello" as soon as a front end has made it: that is the probe.

A click has to reach Python while a cell runs. ipykernel 7.4 sends a comm's messages to the shell that has last used it,
which the cell blocks; our comms say that they have no such shell.

Not here: what a session is told (`channel.py`), which views there are (`desk.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
from ipywidgets import Layout
from traitlets import Bool, List, Unicode

from nbsglang.viz import wire

Heard = Callable[[dict[str, Any]], None]


class Session(anywidget.AnyWidget):
    """The model that holds the state of one engine and its runs in the front end. It is never displayed."""

    _esm = Unicode().tag(sync=True)
    engine = Unicode(help="The source of the engine, '' where there is none.").tag(sync=True)


class RunView(anywidget.AnyWidget):
    """What one output shows. While `live` is set, it stands where HTML has the mark of its `place` (see `marked`).

    `session` is the model id of its session, `source` the run's ("" for the whole engine), `state` how the run ended
    ("" while it goes on), `final` what is shown from then on (see `wire.snapshot`; "": what the session has).
    """

    _esm = Unicode().tag(sync=True)
    place = Unicode().tag(sync=True)
    session = Unicode().tag(sync=True)
    source = Unicode().tag(sync=True)
    engine = Unicode().tag(sync=True)
    title = Unicode().tag(sync=True)
    show = List(Unicode()).tag(sync=True)
    state = Unicode().tag(sync=True)
    final = Unicode().tag(sync=True)
    live = Bool(False).tag(sync=True)


def new_session(heard: Heard, layout: Layout, engine: str) -> Session:
    """A session; `heard` gets each message of the front end, on a thread of the kernel's."""
    session: Session = _ready(Session(_esm=_script("widget.js"), layout=layout, engine=engine), heard)
    return session


def new_view(heard: Heard, layout: Layout, **traits: Any) -> RunView:
    """A view with these traits; `heard` as for a session. The layout may be shared."""
    view: RunView = _ready(RunView(_esm=_script("view.js"), layout=layout, place=uuid.uuid4().hex, **traits), heard)
    return view


def marked(html: str, view: RunView) -> str:
    """The HTML with a mark by which the view finds its place (`web/src/anchor.js`)."""
    return f'<div data-nbsglang-view="{view.place}">{html}</div>'


def post(widget: Session, message: wire.Message) -> None:
    """Send a message. Safe from any thread, one at a time."""
    if widget.comm is not None:  # else it was closed meanwhile
        widget.send(message.content, list(message.buffers))


def _ready(widget: Any, heard: Heard) -> Any:
    if hasattr(widget.comm, "_reply_subshell_for"):
        widget.comm._reply_subshell_for = None

    def tell(_: object, content: object, buffers: object) -> None:
        if isinstance(content, dict):
            heard(content)

    widget.on_msg(tell)
    return widget


@cache
def _script(name: str) -> str:
    return files("nbsglang.viz").joinpath("static", name).read_text(encoding="utf-8")
