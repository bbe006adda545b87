"""Times: phases of requests, the timeline that shows them, and the trace for Perfetto."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import pytest

from nbsglang.events import (
    Admitted,
    CallBegan,
    CallEnded,
    ConstraintGraph,
    Event,
    Finished,
    Jumped,
    NodeEvicted,
    Preempted,
    Queued,
    Ready,
    Step,
    StreamBegan,
    StreamEnded,
    Tokens,
)
from nbsglang.viz.fold import View, fold
from nbsglang.viz.gallery import SECTIONS, Gallery
from nbsglang.viz.history import history
from nbsglang.viz.perfetto import trace
from nbsglang.viz.scene import Scene
from nbsglang.viz.timeline import timeline
from nbsglang.viz.timeline_page import timeline_svg
from tests.viz.scenes import HOSTILE, scene_of

MS = 1_000_000


def step(number: int, running: int, waiting: int = 0) -> Step:
    return Step(number, 0, running, running, waiting, 10, 5, 5, 0.0005, 0.0005, 0.008, 0.001)


def a_run() -> list[Event]:
    """Two branches: the first is preempted and jumps, the second scores two choices side by side."""
    timed: list[tuple[int, str, Any]] = [
        (0, "e", Ready("tiny", "tiny", "cpu", "float32", 20)),
        (1, "r", StreamBegan("r", "", 0, "judge")),
        (2, "r", StreamBegan("r.1", "r", 0, "a")),
        (2, "r", StreamBegan("r.2", "r", 1, "b")),
        (3, "r", CallBegan("r.1", "r.1.1", "gen", "verdict")),
        (3, "e", Queued(1, "r.1.1", 8)),
        (10, "e", Admitted(1, "r.1.1", 3, 5, 0)),
        (11, "r", CallBegan("r.2", "r.2.1", "score", "best")),
        (11, "e", Queued(2, "r.2.1", 6)),
        (11, "e", Queued(3, "r.2.1", 6)),
        (20, "e", Tokens((1,), ((7,),))),
        (20, "e", step(1, 1, 2)),
        (22, "e", Preempted(1, "r.1.1", 8)),
        (23, "e", NodeEvicted(4, 3)),
        (24, "e", Admitted(2, "r.2.1", 0, 5, 0)),
        (25, "e", Admitted(3, "r.2.1", 4, 1, 0)),
        (35, "e", step(2, 2, 1)),
        (36, "e", Finished(2, "r.2.1", "prefix", 6, 0, 0)),
        (36, "e", Finished(3, "r.2.1", "prefix", 6, 4, 0)),
        (37, "r", CallEnded("r.2", "r.2.1", "")),
        (38, "r", StreamEnded("r.2", "done")),
        (40, "e", Admitted(1, "r.1.1", 8, 1, 0)),
        (45, "e", Tokens((1,), ((8,),))),
        (46, "e", Jumped(1, "r.1.1", (9, 9, 9))),
        (50, "e", step(3, 1)),
        (51, "e", Finished(1, "r.1.1", "stop", 8, 3, 5)),
        (52, "r", CallEnded("r.1", "r.1.1", "")),
        (53, "r", StreamEnded("r.1", "done")),
        (54, "r", StreamEnded("r", "done")),
    ]
    return [Event(n, t * MS, source, body) for n, (t, source, body) in enumerate(timed, 1)]


def a_scene(events: list[Event]) -> Scene:
    view = fold(events)
    return Scene(view, tuple(view.streams_of("r")), title="judge", state="done")


def test_the_phases_of_a_request_that_was_preempted() -> None:
    request = history(a_run()).requests["e", 1]
    spans = [(p.name, p.begin_ns // MS, p.end_ns // MS) for p in request.phases if p.end_ns]
    assert spans == [("queued", 3, 10), ("prefill", 10, 20), ("decode", 20, 22), ("queued", 22, 40),
                     ("prefill", 40, 45), ("decode", 45, 51)]  # fmt: skip
    assert (request.reason, request.n_preempted, request.n_cached) == ("stop", 1, 3)
    assert [(jump.t_ns // MS, jump.n_tokens) for jump in request.jumps] == [(46, 3)]


def test_what_goes_on_has_no_end() -> None:
    request = history(a_run()[:12]).requests["e", 1]
    assert (request.now, request.phases[-1].end_ns, request.reason) == ("decode", None, "")


def test_requests_of_two_engines_may_have_one_number() -> None:
    events = [Event(n, n, source, Queued(1, f"{source}c", 4)) for n, source in enumerate(("e", "f"), 1)]
    assert history(events).requests.keys() == {("e", 1), ("f", 1)}


def test_the_rows_of_a_timeline() -> None:
    drawn = timeline(a_scene(a_run()))
    assert [(row.label, row.depth) for row in drawn.rows] == [("judge", 0), ("branch a", 1), ("branch b", 1)]
    assert drawn.seconds == pytest.approx(0.053)
    branch = drawn.rows[1]
    assert sum(bar.end - bar.begin for bar in branch.bars if bar.phase == "decode") == pytest.approx(0.008)
    assert branch.jumps == (pytest.approx(0.045),)
    assert (drawn.n_running, len(drawn.batch)) == (2, 3)


def test_a_timeline_as_text_reads_from_left_to_right() -> None:
    text = SECTIONS["timeline"].text(a_scene(a_run()))
    lines = text.splitlines()
    branch = next(line for line in lines if "branch a" in line)
    signs = "".join(dict.fromkeys(branch.split("branch a")[1].replace(" ", "").replace("·", "")))
    assert signs.startswith("░▒█")
    assert "◆" in branch
    assert lines[-1].strip().startswith("batch, at most 2")


def test_a_backend_without_requests_has_a_timeline_of_its_calls() -> None:
    events = [event for event in a_run() if event.source == "r"]
    rows = timeline(a_scene([e._replace(seq=n) for n, e in enumerate(events, 1)])).rows
    assert [[bar.phase for bar in row.bars] for row in rows] == [[], ["decode"], ["decode"]]


def test_the_svg_is_whole_and_bounded() -> None:
    svg = timeline_svg(timeline(a_scene(a_run())))
    root = ET.fromstring(svg)
    height = float(root.attrib["height"])
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        if "x" in rect.attrib:
            assert 0 <= float(rect.attrib["x"]) <= float(rect.attrib["x"]) + float(rect.attrib["width"]) <= 960
            assert 0 <= float(rect.attrib["y"]) < height


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["timeline", "fsm"])
def test_hostile_labels_stay_text(text: str, name: str) -> None:
    scene = scene_of(text)
    graph = ConstraintGraph("regex", text, 0, (0, 1), ((0, 1, text, 1),), (1,), True)
    scene.view.graphs["regex", text] = graph
    for stream in scene.streams:
        for call in stream.calls.values():
            call.under = f"regex {text}"
    gallery = Gallery([name])
    page = gallery.html(scene)
    plain = gallery.text(scene)
    gallery.rich(scene, 100)
    assert gallery.failures == {}
    assert "<script" not in page
    assert "\x1b" not in plain + page
    assert "\u202e" not in plain + page
    if name == "timeline":
        ET.fromstring(timeline_svg(timeline(scene)).encode("utf-8", "replace"))


def test_an_automaton_is_shown_with_the_names_of_the_generations_under_it() -> None:
    scene = scene_of("x")
    scene.view.graphs["regex", "a+"] = ConstraintGraph("regex", "a+", 0, (0, 1), ((0, 1, "a", 1),), (1,), True)
    scene.view.graphs["regex", "b"] = ConstraintGraph("regex", "b", 0, (0, 1), ((0, 1, "b", 1),), (1,), True)
    assert Gallery(["fsm"]).text(scene).count("automaton") == 0
    for stream in scene.streams[1:]:
        for call in stream.calls.values():
            call.under = "regex a+"
            call.name = "score"
    text = Gallery(["fsm"]).text(scene)
    assert text.count("compressed automaton") == 1
    assert "score: compressed automaton of regex a+" in text
    assert "<b>score</b>" in Gallery(["fsm"]).html(scene)


# ----------------------------------------------------------------------------------------------------- Perfetto


def assert_is_a_trace(found: dict[str, Any]) -> None:
    """What the Trace Event format and ui.perfetto.dev ask of a file.

    It is an object with `traceEvents`; each has a phase that we use, numbers for process, thread and time, from 0 on;
    every process and thread has a name; on one thread slices lie inside each other or apart; counters are numbers.
    """
    entries = json.loads(json.dumps(found))["traceEvents"]
    assert entries
    named: dict[str, set[Any]] = {"process_name": set(), "thread_name": set()}
    used: set[tuple[int, int]] = set()
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for entry in entries:
        assert entry["ph"] in {"M", "X", "C", "i"}
        assert isinstance(entry["pid"], int)
        assert isinstance(entry["tid"], int)
        assert isinstance(entry["name"], str)
        assert entry["ts"] >= 0
        key = (entry["pid"], entry["tid"])
        match entry["ph"]:
            case "M":
                assert entry["name"] in {"process_name", "thread_name", "process_sort_index", "thread_sort_index"}
                if entry["name"] in named:
                    assert key not in named[entry["name"]]
                    named[entry["name"]].add(key)
            case "X":
                assert entry["dur"] >= 0
                slices.setdefault(key, []).append((entry["ts"], entry["ts"] + entry["dur"]))
                used.add(key)
            case "i":
                assert entry["s"] == "t"
                used.add(key)
            case "C":
                assert all(isinstance(value, int) for value in entry["args"].values())
    assert used <= named["thread_name"]
    assert {pid for pid, _ in used} <= {pid for pid, _ in named["process_name"]}
    for spans in slices.values():
        open_: list[float] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ and open_[-1] <= begin + 1e-6:
                open_.pop()
            assert not open_ or end <= open_[-1] + 1e-6, "slices of one thread cross"
            open_.append(end)


def test_a_trace_is_one_that_perfetto_opens() -> None:
    found = trace(a_run())
    assert_is_a_trace(found)
    entries = found["traceEvents"]
    names = {entry["args"]["name"] for entry in entries if entry["name"] in ("process_name", "thread_name")}
    assert names >= {"run judge", "engine tiny (tiny)", "judge", "branch a", "branch b", "steps"}
    slices = [entry for entry in entries if entry["ph"] == "X"]
    assert {entry["name"] for entry in slices} >= {"gen verdict", "score best", "queued", "prefill", "decode", "step 2"}
    assert next(e["args"] for e in entries if e["ph"] == "C" and e["name"] == "batch") == {"running": 1, "waiting": 2}
    moments = {entry["name"] for entry in entries if entry["ph"] == "i"}
    assert moments == {"jump", "evicted", "preempted"}


def test_requests_side_by_side_get_threads_of_their_own() -> None:
    entries = trace(a_run())["traceEvents"]
    rows = {e["tid"] for e in entries if e["ph"] == "X" and e["name"] in ("request 2", "request 3")}
    assert len(rows) == 2
    assert "branch b, row 2" in {e["args"].get("name") for e in entries if e["ph"] == "M"}


def test_any_part_of_a_run_is_a_trace() -> None:
    events = a_run()
    for begin in range(0, len(events), 3):
        for end in range(begin + 1, len(events) + 1, 4):
            assert_is_a_trace_or_empty(trace(events[begin:end]))


def assert_is_a_trace_or_empty(found: dict[str, Any]) -> None:
    if found["traceEvents"]:
        assert_is_a_trace(found)


def test_steps_do_not_overlap_where_one_was_launched_before_the_last_had_landed() -> None:
    long = Step(1, 0, 1, 1, 0, 1, 1, 1, 0.0, 0.0, 0.5, 0.0)
    events = [Event(n, n * 100 * MS, "e", long._replace(step=n)) for n in (1, 2, 3)]
    entries = [e for e in trace(events)["traceEvents"] if e["ph"] == "X" and e["cat"] == "step"]
    for one, other in pairwise(entries):
        assert one["ts"] + one["dur"] <= other["ts"] + 1e-6


def test_a_request_that_no_program_has_asked_for_is_on_the_engines_process() -> None:
    bodies = [Ready("e", "m", "cpu", "f", 9), Queued(1, "d1", 3), Admitted(1, "d1", 0, 3, 0), Tokens((1,), ((1,),)),
              Finished(1, "d1", "length", 3, 0, 1)]  # fmt: skip
    found = trace([Event(n, n * MS, "e", body) for n, body in enumerate(bodies, 1)])
    assert_is_a_trace(found)
    request = next(e for e in found["traceEvents"] if e["name"] == "request 1")
    assert request["tid"] == 2
    assert isinstance(View().history.requests, dict)
