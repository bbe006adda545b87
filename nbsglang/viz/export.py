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

from nbsglang.events import CallBegan, Event, EventLog, Queued
from nbsglang.viz.fold import View
from nbsglang.viz.streams import STREAMS
from nbsglang.viz.text import shown
from nbsglang.viz.wire import Line, before_run, begun, event_line, packed

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
    """The file's text. `engine` and `source` name the engine and the run to be shown: by default the engine that the
    run asked, or the last one, and all runs. `show` names the views (by default all).

    The file holds every prompt and output of the log; of one run, its own and the texts in the cache at its time."""
    events = list(log.since(0) if isinstance(log, EventLog) else log)
    if engine is None:
        engine = _engine_of(events, source) if source else last_engine(events)
    told = _told(events, engine, source)
    base, told = _of_run(told, source)
    lines = [event_line(event) for event in told]
    held: dict[str, Any] = {"events": lines, "base": base, "source": source, "engine": engine, "title": title}
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


def _engine_of(events: Iterable[Event], source: str) -> str:
    """The source of the engine that the run of this source asked first; "" if the log knows of none."""
    calls: set[str] = set()
    for event in events:
        if isinstance(event.body, CallBegan) and event.source == source:
            calls.add(event.body.call_id)
        elif isinstance(event.body, Queued) and event.body.call_id in calls:
            return event.source
    return ""


def lines_of(events: Iterable[Event], engine: str) -> list[Line]:
    """The events of the engine and of all programs as plain values, numbered anew: what is left out is no gap."""
    return [event_line(event) for event in _told(events, engine, "")]


def _of_run(events: list[Event], source: str) -> tuple[dict[str, Any] | None, list[Event]]:
    """The state before the run of this source began (None: nothing), and the events from there until the engine was
    asked by somebody else. Without the run, all events: what is of a source "" is nobody's."""
    own = [n for n, event in enumerate(events) if event.source == source]
    if not own:
        return begun(events[0].seq if events else 1), events
    calls = {event.body.call_id for event in events if isinstance(event.body, CallBegan)}
    rest = range(own[-1] + 1, len(events))
    end = next((n for n in rest if isinstance(b := events[n].body, Queued) and b.call_id not in calls), len(events))
    if not own[0]:
        return begun(events[0].seq), events[:end]
    view = View()
    for event in events[: own[0]]:
        view.apply(event)
    return before_run(view), events[own[0] : end]


def _told(events: Iterable[Event], engine: str, source: str) -> list[Event]:
    """The events of the engine and of one program or (source "") all of them, numbered anew."""
    told: list[Event] = []
    before = number = 0
    for event in events:
        number += event.seq - before - 1  # what the log has lost is a gap
        before = event.seq
        is_program = isinstance(event.body, STREAMS) and source in ("", event.source)
        if event.source == engine or is_program:
            number += 1
            told.append(Event(number, event.t_ns, event.source, event.body))
    return told
