"""Streams out of a log: text while it is written, tokens by kind, times, states; all as the run itself counts them."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import pytest

import nbsglang as sgl
from nbsglang.events import (
    Admitted,
    CallBegan,
    CallEnded,
    EventLog,
    Finished,
    Preempted,
    Queued,
    StreamBegan,
    StreamEnded,
    StreamRole,
    StreamText,
    Tokens,
    TokenTexts,
    VariableSet,
)
from nbsglang.lang.state import ProgramState
from nbsglang.viz.fold import View, fold
from nbsglang.viz.lines import streams_text
from nbsglang.viz.page import streams_html
from nbsglang.viz.scene import Scene, lanes, merged
from nbsglang.viz.state import Part, StreamView
from tests.viz.scenes import events_of, scene_of

BEGIN = [
    TokenTexts((1, 2, 3), ("one ", "two ", "END")),
    StreamBegan("r", "", 0, "main"),
    StreamBegan("r.2", "r", 0, "0"),
    StreamText("r.2", "Q: "),
    CallBegan("r.2", "c1", "gen", "a"),
]


def test_a_call_is_seen_from_the_queue_to_its_end() -> None:
    view, n = View(), 1

    def then(*bodies: object) -> StreamView:
        nonlocal n
        for event in events_of(*bodies, start=n):  # type: ignore[arg-type]
            view.apply(event)
        n += len(bodies)
        return view.streams["r.2"]

    stream = then(*BEGIN)
    assert (stream.state, stream.depth, view.streams["r"].state) == ("running", 1, "waiting")  # a backend of any kind
    assert then(Queued(1, "c1", 10)).state == "waiting"
    stream = then(Admitted(1, "c1", 6, 4, 0))
    assert (stream.state, stream.n_cached, stream.n_computed, view.live_text(stream)) == ("running", 6, 4, "")
    stream = then(Tokens((1,), ((1,),)), Tokens((1,), ((2,),)))
    assert (view.live_text(stream), stream.text, stream.n_generated) == ("one two ", "Q: ", 2)
    assert stream.first_token_s == pytest.approx(0.3)
    assert stream.tokens_per_s == pytest.approx(10)
    assert then(Preempted(1, "c1", 12)).state == "waiting"
    stream = then(Admitted(1, "c1", 0, 12, 0))
    assert (stream.state, stream.n_cached, stream.n_computed) == ("running", 6, 4)  # counted once
    stream = then(Tokens((1,), ((3,),)), Finished(1, "c1", "stop", 10, 5, 2), CallEnded("r.2", "c1", ""))
    assert (stream.n_cached, stream.n_computed, stream.n_generated) == (5, 5, 2)  # the end token is no text
    stream = then(VariableSet("r.2", "a", "one two"), VariableSet("r.2", "a", "again"), StreamEnded("r.2", "done"))
    assert stream.parts == [Part("literal", "", "Q: "), Part("gen", "a", "one two"), Part("value", "a", "again")]
    assert (stream.text, stream.state, view.live_text(stream)) == ("Q: one two", "done", "")


def _scene(*bodies: object) -> Scene:
    view = fold(events_of(StreamBegan("r", "", 0, "main"), *bodies))
    return Scene(view, tuple(view.streams.values()))


def test_roles_name_the_text_that_begins_their_messages() -> None:
    roles = [StreamRole("r", "user"), StreamText("r", "Hi"), StreamText("r", ", you"), StreamRole("r", "assistant")]
    rest = [CallBegan("r", "c", "gen", "a"), CallEnded("r", "c", ""), VariableSet("r", "a", "Ho"), StreamText("r", ".")]
    scene = _scene(*roles, *rest)
    assert scene.view.streams["r"].text == "Hi, youHo."
    (lane,), _ = lanes(scene, 9)
    gen = Part("gen", "a", "Ho")
    assert list(lane.pieces) == [
        Part("literal", "user", "Hi"),
        Part("literal", "", ", you"),
        gen,
        Part("literal", "", "."),
    ]
    assert [*merged(lane.pieces)] == [Part("literal", "user", "Hi, you"), gen, Part("literal", "", ".")]
    for text in (streams_text(scene), streams_html(scene)):
        assert "user:" in text
        assert "assistant:" not in text
    turns = [StreamRole("r", "system"), StreamText("r", "One"), StreamRole("r", "user"), StreamText("r", "Two")]
    (lane,), _ = lanes(_scene(*turns), 9)
    assert [*merged(lane.pieces)] == [Part("literal", "system", "One"), Part("literal", "user", "Two")]


def test_what_a_call_wrote_before_it_broke_off_stays() -> None:
    bodies = [*BEGIN, Queued(1, "c1", 10), Tokens((1,), ((1,),)), CallEnded("r.2", "c1", "Cancelled: stop")]
    stream = fold(events_of(*bodies)).streams["r.2"]
    assert (stream.parts[-1], stream.state) == (Part("partial", "a", "one "), "cancelled")


def test_a_hint_is_no_text_and_its_failure_no_failure() -> None:
    bodies = [
        *BEGIN[:3],
        CallBegan("r", "p", "prefix", ""),
        Admitted(1, "p", 2, 8, 0),
        CallEnded("r", "p", "BackendError: no room"),
        VariableSet("r", "", "x"),
    ]
    stream = fold(events_of(*bodies)).streams["r"]
    assert (stream.state, stream.n_cached, stream.n_computed) == ("waiting", 2, 8)
    assert stream.parts == [Part("value", "", "x")]


def test_beginnings_that_were_not_seen() -> None:
    bodies = [Tokens((1,), ((1,),)), StreamText("s", "x"), CallEnded("s", "c", ""), Finished(1, "c", "stop", 9, 3, 1)]
    view = fold(events_of(*bodies, StreamEnded("t", "done"), StreamBegan("t", "s", 1, "late")))
    assert (view.streams["s"].text, view.streams["s"].label) == ("x", "")
    assert (view.streams["t"].parent, view.streams["t"].state, view.streams["t"].depth) == ("s", "done", 1)
    assert [stream.id for stream in view.streams_of("e")] == ["s", "t"]


def test_streams_in_a_circle_are_not_followed() -> None:
    view = fold(events_of(StreamBegan("a", "b", 0, ""), StreamBegan("b", "a", 0, ""), StreamBegan("c", "c", 0, "")))
    assert view.streams_of("e") == []


def test_lanes_that_do_not_fit_are_counted() -> None:
    shown, more = lanes(scene_of("x"), 3)
    assert [lane.state for lane in shown] == ["waiting", "running", "failed"]
    assert more == "1 more streams: 1 done"


@sgl.function
def _branching(s: ProgramState) -> None:
    s += "You are terse. "
    branches = s.fork(3)
    for n, branch in enumerate(branches):
        branch += f"Say {n}: "
        branch += sgl.gen("a", max_tokens=12, temperature=0)
    branches.join()
    s += "Then: " + sgl.select("b", ["yes", "no"])


def _counts(streams: list[StreamView]) -> tuple[int, int, int]:
    sums = (sum(getattr(s, f"n_{what}") for s in streams) for what in ("cached", "computed", "generated"))
    return next(sums), next(sums), next(sums)


def test_a_real_engine_and_its_log_agree() -> None:
    from nbsglang.engine.engine import Engine
    from tests.tiny import byte_tokenizer, tiny_model

    log = EventLog()
    with Engine(tiny_model(), tokenizer=byte_tokenizer(), kv_tokens=2000, log=log) as engine:
        done: list[ProgramState] = []
        thread = threading.Thread(target=lambda: done.append(_branching.run(backend=engine, log=log)))
        thread.start()
        live: dict[str, list[str]] = {}
        while thread.is_alive():  # as a view does
            view = fold(log.since())
            for stream in view.streams.values():
                if text := view.live_text(stream):
                    live.setdefault(stream.id, []).append(text)
            time.sleep(0.002)
        thread.join()
        state, view = done[0], fold(log.since())
    source = state._run.driver.id
    streams, stats = view.streams_of(source), state.stats
    assert _counts(streams) == (stats["cached_tokens"], stats["computed_tokens"], stats["generated_tokens"])
    assert [s.label for s in streams] == ["_branching", "0", "1", "2"]
    assert [s.state for s in streams] == ["done", "joined", "joined", "joined"]
    for n, stream in enumerate(streams[1:]):
        assert stream.parts == [Part("literal", "", f"Say {n}: "), Part("gen", "a", state["a"][n])]
        texts = live.get(stream.id, [])
        assert all(later.startswith(sooner) for sooner, later in pairwise(texts))  # it only grows
    choice = streams[0].parts[-1]
    assert choice[:4] == Part("choice", "b", state["b"])[:4]
    assert {each.choice: each.share for each in choice.scores} == dict(
        zip(*map(state.get_meta_info("b").get, ("choices", "probabilities")), strict=True)
    )
    assert view.complete


def test_a_mock_logs_streams_alone() -> None:
    log = EventLog()
    state = _branching.run(backend=sgl.MockBackend(["p", "q", "r", "yes"]), log=log)
    streams = fold(log.since()).streams_of(state._run.driver.id)
    assert [s.text for s in streams] == ["You are terse. Then: yes", "Say 0: p", "Say 1: q", "Say 2: r"]
    assert _counts(streams) == (0, 0, 0)
