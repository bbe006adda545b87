"""Dumps of views: the saved ones are what Python makes of the saved logs, and a dump is plain and complete.

That the front end makes the same of them is tested there (`web/test/fold.test.js`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbsglang.events import EventLog
from nbsglang.viz.dump import dump
from nbsglang.viz.fold import View, fold
from nbsglang.viz.marks import Marks
from tests.viz.fixtures import as_text, dumps_of, logs
from tests.viz.scenes import HOSTILE, scene_of

LOGS = logs()


def test_there_are_logs() -> None:
    assert {"crowd", "hostile", "judge", "mock"} <= {path.stem for path in LOGS}


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_the_saved_dumps_follow_from_the_saved_logs(path: Path) -> None:
    saved = path.with_suffix(".dump.json").read_text(encoding="utf-8")
    assert saved == as_text(dumps_of(path)), "run python -m tests.viz.fixtures dump"


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_dump_is_what_json_gives_back(path: Path) -> None:
    view = fold(EventLog.load(path).since(0))
    assert json.loads(json.dumps(dump(view), allow_nan=False)) == dump(view)


def test_a_dump_is_a_copy() -> None:
    path = next(path for path in LOGS if path.stem == "crowd")
    events = EventLog.load(path).since(0)
    view, marks = View(), Marks()
    view.tree.watched.append(marks)
    for event in events[:1500]:
        view.apply(event)
    before = dump(view, {"run": marks})
    text = json.dumps(before)
    for event in events[1500:]:
        view.apply(event)
    assert json.dumps(before) == text
    assert before["tree"]["watched"]["run"]["new"]


def test_requests_that_only_a_call_remembers_are_in_it() -> None:
    view = scene_of("text").view
    forgotten = view.requests.pop(1)
    plain = dump(view)
    assert plain["n_kept"] == len(view.requests) == len(plain["requests"]) - 1
    assert plain["requests"][-1][:2] == [forgotten.id, forgotten.call_id]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_come_through(text: str) -> None:
    plain = json.loads(json.dumps(dump(scene_of(text).view)))
    assert text in [part[2] for stream in plain["streams"] for part in stream["parts"]]
    assert [1, text] in plain["texts"]
