"""A log as one HTML file that replays it: the views' script and the events are in it, and it fetches nothing.

Its policy lets only that script run, known by its hash, so nothing that a model or a prompt says can.

Not here: the views (`web/`), files of other kinds (`notebook/`).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

from nbsglang.events import Event, EventLog
from nbsglang.viz.streams import STREAMS
from nbsglang.viz.text import shown
from nbsglang.viz.wire import Line, event_line, packed

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{hash}'; \
style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body>
<div id="nbsglang"></div>
<noscript>This page replays a log with its own script, which this browser does not run.</noscript>
<script type="application/json" id="nbsglang-log">"{log}"</script>
<script>{script}</script>
</body>
</html>
"""


def html_page(
    log: EventLog | Iterable[Event],
    *,
    engine: str | None = None,
    source: str = "",
    title: str = "",
    show: Iterable[str] = (),
) -> str:
    """The file's text. `engine` and `source` name the engine and the run to be shown (by default the last engine, and
    all of its runs), `show` the views (by default all). The file holds every prompt and output of the log."""
    events = list(log.since(0) if isinstance(log, EventLog) else log)
    engine = last_engine(events) if engine is None else engine
    held: dict[str, Any] = {"events": lines_of(events, engine), "source": source, "engine": engine, "title": title}
    if names := list(show):
        held["show"] = names
    script = files("nbsglang.viz").joinpath("static", "page.js").read_text(encoding="utf-8")
    script = re.sub(r"<(?=/script|!--|script)", r"\\x3c", script, flags=re.IGNORECASE)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _PAGE.format(
        hash=f"sha256-{digest}",
        title=escape(shown(title or "nbsglang", 100)),
        log=base64.b64encode(packed(held)).decode(),
        script=script,
    )


def last_engine(events: Iterable[Event]) -> str:
    """The source of the engine that said something last; "" if there is none."""
    return next((e.source for e in reversed(list(events)) if not isinstance(e.body, STREAMS)), "")


def lines_of(events: Iterable[Event], engine: str) -> list[Line]:
    """The events of the engine and of all programs as plain values, numbered anew: what is left out is no gap."""
    lines: list[Line] = []
    before: int | None = None
    number = 0
    for event in events:
        number += 0 if before is None else event.seq - before - 1  # what the log has lost is one
        before = event.seq
        if event.source == engine or isinstance(event.body, STREAMS):
            number += 1
            lines.append(event_line(Event(number, event.t_ns, event.source, event.body)))
    return lines
