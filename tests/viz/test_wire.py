"""Messages to the front end: what they hold, and that a reader has the same state from them as from the log."""

from __future__ import annotations

import base64
import json
import math
import zlib

from nbsglang import events as ev
from nbsglang.events import Event, EventLog
from nbsglang.viz import wire
from nbsglang.viz.dump import dump
from nbsglang.viz.fold import fold
from nbsglang.viz.marks import Marks


def small_log() -> EventLog:
    log = EventLog()
    log.emit("e", ev.Ready("e", "tiny", "cpu", "float32", 100))
    log.emit("e", ev.NodeAdded(1, 0, (1, 2, 3), 1, 1))
    log.emit("e", ev.NodeSplit(1, 2, 1, 2))
    log.emit("e", ev.TokenTexts((1, 2), ("a\ud800\x1b</script>", "日本")))
    log.emit("run", ev.StreamBegan("run.1", "", 0, "cell"))
    return log


def test_a_delta_is_the_events_as_a_saved_log_has_them(tmp_path: object) -> None:
    log = small_log()
    events = log.since(1)
    message = wire.delta(7, [wire.event_line(event) for event in events])
    assert message.content == {"v": 1, "kind": "delta", "n": 7, "from": 2, "to": 5}
    (buffer,) = message.buffers
    log.save(f"{tmp_path}/log.jsonl")
    with open(f"{tmp_path}/log.jsonl", encoding="utf-8") as file:
        saved = [json.loads(line) for line in file]
    assert json.loads(zlib.decompress(buffer).decode("utf-8")) == saved[1:]
    assert buffer[0] == 0x78, "zlib's header, which browsers call deflate"


def test_a_keyframe_is_the_state() -> None:
    view = fold(small_log().since(0))
    marks = Marks()
    marks.hit(1)
    message = wire.keyframe(8, 3, view, {"run": marks})
    assert message.content == {"v": 1, "kind": "key", "n": 8, "from": 3, "to": 5}
    state = wire.unpacked(message.buffers[0])
    assert state == json.loads(json.dumps(dump(view, {"run": marks})))
    assert state["tree"]["watched"]["run"]["hits"] == [[1, 1]]


def test_words_have_no_buffer() -> None:
    assert wire.word(9, "pong", id="x") == ({"v": 1, "kind": "pong", "n": 9, "id": "x"}, ())


def test_numbers_that_json_lacks_are_null() -> None:
    step = ev.Step(1, 1, 1, 1, 0, 9, 0, 0, math.nan, math.inf, 0.5, -math.inf)
    line = wire.event_line(Event(1, 2, "e", step))
    fields = wire.unpacked(wire.packed([line]))[0][4]
    assert [fields[name] for name in ("plan_s", "pack_s", "run_s", "commit_s")] == [None, None, 0.5, None]


def test_a_snapshot_is_text() -> None:
    log = small_log()
    lines = [wire.event_line(event) for event in log.since(2)]
    base = dump(fold(log.since(0)[:2]))
    text = wire.snapshot(base, lines)
    assert text.isascii()
    plain = wire.unpacked(base64.b64decode(text))
    assert plain["events"] == json.loads(json.dumps(lines))
    assert plain["base"] == json.loads(json.dumps(base))
