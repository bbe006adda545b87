"""A log as one HTML file: it holds what is needed, lets nothing else run, and fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
from typing import Any

from nbsglang import events as ev
from nbsglang.events import EventLog
from nbsglang.viz import wire
from nbsglang.viz.export import html_page, last_engine, lines_of


class Page(html.parser.HTMLParser):
    """The scripts of a page with their attributes, its policy, and all attributes that name something to fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.policy = ""
        self.fetched: list[str | None] = []
        self.title = ""
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given, self._tag = dict(attrs), tag
        if tag == "script":
            self.scripts.append((given, ""))
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        self.fetched += [value for name, value in attrs if name in {"src", "href", "srcset", "data", "action"}]

    def handle_data(self, data: str) -> None:
        if self._tag == "script":
            given, before = self.scripts[-1]
            self.scripts[-1] = (given, before + data)
        elif self._tag == "title":
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""


def hostile_log() -> EventLog:
    log = EventLog()
    log.emit("other", ev.Ready("other", "tiny", "cpu", "float32", 10))
    log.emit("e", ev.Ready("e", "</script><script>alert(1)</script>", "cpu", "float32", 100))
    log.emit("other", ev.NodeAdded(1, 0, (1,), 1, 1))
    log.emit("e", ev.NodeAdded(1, 0, (1, 2), 1, 1))
    log.emit("run", ev.StreamBegan("run.1", "", 0, "<img src=x onerror=alert(2)>"))
    log.emit("run", ev.StreamText("run.1", "<!-- <script> \u202e \x00"))
    return log


def test_the_page_holds_the_log_and_its_script_alone_may_run() -> None:
    log = hostile_log()
    page = Page(html_page(log, title="</title><script>alert(3)</script>"))
    (data, held), (_, script) = page.scripts
    assert data == {"type": "application/json", "id": "nbsglang-log"}
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none'")
    assert page.fetched == []
    assert page.title.startswith("</title>")
    assert len(script) > 10_000
    kept = wire.unpacked(base64.b64decode(json.loads(held)))
    assert (kept["engine"], kept["source"]) == ("e", "")
    assert kept["events"] == json.loads(json.dumps(lines_of(log.since(0), "e")))


def _held(text: str) -> Any:
    (_, held), _ = Page(text).scripts
    return wire.unpacked(base64.b64decode(json.loads(held)))


def test_one_run_begins_with_the_state_before_it_and_ends_where_another_asks() -> None:
    log = hostile_log()
    for n, run in enumerate(("first", "second")):
        log.emit(run, ev.StreamBegan(f"{run}.1", "", 0, run))
        log.emit(run, ev.CallBegan(f"{run}.1", f"{run}.1.1", "gen", "a"))
        log.emit(f"engine {run}", ev.Queued(n, f"{run}.1.1", 1))
        log.emit(run, ev.StreamEnded(f"{run}.1", "done"))
        log.emit(f"engine {run}", ev.NodeAdded(7, 0, (1,), 1, n))
    held = _held(html_page(log, source="second"))
    assert held["engine"] == "engine second"
    assert [line[3] for line in held["events"]] == ["StreamBegan", "CallBegan", "Queued", "StreamEnded", "NodeAdded"]
    assert held["base"] is None, "nothing was before it: what others say is left out"
    log.emit("engine first", ev.Queued(9, "third.1.1", 1))
    log.emit("engine first", ev.NodeAdded(8, 0, (2,), 1, 9))
    held = _held(html_page(log, source="first", engine="engine first"))
    assert [line[3] for line in held["events"]] == ["StreamBegan", "CallBegan", "Queued", "StreamEnded", "NodeAdded"]
    held = _held(html_page(log, source="second", engine="engine first"))
    assert held["base"]["seq"] == held["events"][0][0] - 1 == 2
    assert held["base"]["tree"]["nodes"]
    assert _held(html_page(log, source="none", engine="e"))["events"] == [
        line for line in json.loads(json.dumps(lines_of(log.since(0), "e"))) if line[2] == "e"
    ], "a run of which the log has nothing"


def test_a_log_that_has_lost_its_beginning_says_so() -> None:
    events = hostile_log().since(0)
    assert _held(html_page(events))["base"] is None
    held = _held(html_page(events[2:]))
    assert (held["base"]["seq"], held["base"]["n_lost"], held["base"]["tree"]["complete"]) == (2, 2, False)
    assert held["events"][0][0] == 3
    assert _held(html_page([]))["base"] is None


def test_other_engines_are_left_out_and_what_is_lost_is_a_gap() -> None:
    log = hostile_log()
    events = log.since(0)
    lines = lines_of(events, "e")
    assert [(line[0], line[2]) for line in lines] == [(1, "e"), (2, "e"), (3, "run"), (4, "run")]
    assert last_engine(events) == "e"
    assert last_engine([]) == ""
    torn = [*events[:3], *(event._replace(seq=event.seq + 10) for event in events[3:])]
    assert [line[0] for line in lines_of(torn, "e")] == [1, 12, 13, 14]
