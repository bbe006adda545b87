"""Live views: when they take the place of the HTML, what they are told, cancelling, and that a run never notices."""

from __future__ import annotations

import base64
import gc
import sys
import threading
import time
import types
import warnings
from collections.abc import Iterator
from typing import Any

import comm
import pytest

import nbsglang as sgl
from nbsglang.errors import Cancelled, ProgramError
from nbsglang.events import EventLog, Tokens
from nbsglang.lang.cell import compile_cell
from nbsglang.notebook import desk, fronts, widget, widget_front
from nbsglang.notebook.channel import Channel
from nbsglang.notebook.desk import Desk, clear_desk, desk_of
from nbsglang.notebook.greeting import greet
from nbsglang.notebook.live import watch_in_background, watching
from nbsglang.notebook.shown import show_engine, show_log
from nbsglang.viz import wire
from nbsglang.viz.picture import Picture
from tests.notebook.front_end import FrontEnd, read, wait_until
from tests.notebook.test_live import Publisher
from tests.notebook.watched import judge, mock, single


class ZMQInteractiveShell:
    """A kernel's shell by its name; it has a kernel."""

    def __init__(self) -> None:
        self.display_pub = Publisher()
        self.kernel = object()

    @property
    def pictures(self) -> list[str]:
        return [data["text/html"] for data, *_ in self.display_pub.sent]


@pytest.fixture
def front_end(monkeypatch: pytest.MonkeyPatch) -> FrontEnd:
    front_end = FrontEnd()
    monkeypatch.setattr(comm, "create_comm", front_end.create_comm)
    return front_end


@pytest.fixture
def shell(front_end: FrontEnd) -> Iterator[Any]:
    shell = ZMQInteractiveShell()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield shell
    clear_desk(shell)  # type: ignore[arg-type]
    assert not [t.name for t in threading.enumerate() if t.name == "nbsglang-pump"]


@pytest.fixture
def log() -> EventLog:
    return EventLog()


def run_watched(run: Any, shell: Any, log: EventLog, source: str | None = None, **options: Any) -> Any:
    with watching(run, shell=shell, log=log, engine_source=source, **options):
        return run.execute()


def in_thread(run: Any, shell: Any, log: EventLog, errors: list[BaseException]) -> threading.Thread:
    """The run, watched on another thread than the test's, which plays the front end."""

    def body() -> None:
        try:
            run_watched(run, shell, log)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    return thread


# ----------------------------------------------------------------------------------------------------- becoming live


def test_without_an_answer_it_is_html_with_a_mark(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    run_watched(judge(backend=mock(0.3), log=log), shell, log)
    (view,) = front_end.of("RunView")
    assert front_end.of("Session") == [], "the large script is sent to nobody who has not asked"
    assert all(f'data-nbsglang-view="{view.state["place"]}"' in html for html in shell.pictures)
    assert len(shell.pictures) >= 3, "updated as ever"
    assert all(set(data) == {"text/html", "text/plain"} for data, *_ in shell.display_pub.sent)
    assert "✓ judge" in shell.pictures[-1]
    assert "view+json" not in str(shell.display_pub.sent)
    assert view.state["final"] == ""
    assert len(view.state["_esm"]) < 4000


@pytest.mark.parametrize("features", [[], ["kernel subshells"]])
def test_a_kernel_that_hears_nothing_while_a_cell_runs_greets_before(
    shell: Any, front_end: FrontEnd, log: EventLog, features: list[str]
) -> None:
    shell.kernel = types.SimpleNamespace(kernel_info={"supported_features": features})
    greet(shell)
    greet(shell)
    greeters = front_end.of("RunView")
    assert len(greeters) == (0 if features else 1)
    if features:
        return
    greeters[0].say(do="hello")
    assert greeters[0].is_closed, "it has done its work"
    assert not front_end.of("Session"), "there is nothing to be told yet"
    run_watched(judge(backend=mock(0.1), log=log), shell, log)
    _, view = front_end.of("RunView")
    assert view.state["live"], "though nothing was said while the cell ran"
    assert len(front_end.of("Session")) == 1


def test_a_front_end_that_says_hello_gets_the_events(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    errors: list[BaseException] = []
    run = judge(backend=mock(0.8), log=log)
    thread = in_thread(run, shell, log, errors)
    wait_until(lambda: front_end.of("RunView"))
    session = front_end.greet()
    (view,) = front_end.of("RunView")
    wait_until(lambda: view.state["live"])
    time.sleep(0.3)
    n_pictures = len(shell.pictures)
    thread.join(20)
    assert errors == []
    wait_until(lambda: any(content["kind"] == "over" for content, _ in session.sent))
    assert len(shell.pictures) <= n_pictures + 1, "once it is live, nothing but the last picture"
    assert (view.state["session"], view.state["source"]) == (session.comm_id, run.source)
    assert view.state["show"] == ["numbers", "streams"]
    wait_until(lambda: any(line[4].get("how") == "done" for line in read(session).lines))
    reader = read(session)
    kinds = [message.content["kind"] for message in reader.messages]
    assert kinds[0] == "key"
    assert reader.messages[0].content["to"] == 0, "from the beginning of the run"
    assert next(iter(reader.view.streams.values())).ended == "done"
    kept = wire.unpacked(base64.b64decode(view.state["final"]))
    assert kept["events"] == [line for line in reader.lines if line[0] <= len(kept["events"])]
    assert kept["events"][-1][3] == "StreamEnded"
    second = judge(backend=mock(), log=log)
    run_watched(second, shell, log)
    assert len(front_end.of("Session")) == 1
    assert front_end.of("RunView")[1].state["live"] is True
    assert front_end.of("RunView")[1].state["final"] != ""


def test_a_session_whose_question_does_not_arrive_is_told_all_the_same(
    shell: Any, front_end: FrontEnd, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a kernel without subshells, while a cell runs."""
    monkeypatch.setattr(desk, "_DEAF_S", 0.2)
    desk_of(shell).is_seen.set()
    run_watched(judge(backend=mock(0.4), log=log), shell, log)
    (session,) = front_end.of("Session")
    wait_until(lambda: any(line[4].get("how") == "done" for line in read(session).lines))
    assert read(session).messages[0].content["to"] == 0


def test_hello_after_the_end_is_early_enough(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    run = judge(backend=mock(), log=log)
    run_watched(run, shell, log)
    session = front_end.greet()
    wait_until(lambda: any(line[3] == "StreamEnded" for line in read(session).lines))
    assert front_end.of("RunView")[0].state["live"] is True
    assert any(line[3] == "StreamBegan" for line in read(session).lines), "the run can be played from its beginning"


def test_each_engine_has_a_session_and_old_ones_go(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    run_watched(judge(backend=mock(), log=log), shell, log)
    front_end.greet()
    for n in range(5):
        run_watched(judge(backend=mock(), log=log), shell, log, f"engine{n}")
    sessions = front_end.of("Session")
    assert [session.is_closed for session in sessions] == [True, True, False, False, False, False]
    assert [view.state["live"] for view in front_end.of("RunView")] == [False, False, True, True, True, True]


def test_a_ping_is_answered_and_nonsense_is_not(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    run_watched(judge(backend=mock(), log=log), shell, log)
    session = front_end.greet()
    session.say(do="ping", id=7)
    pongs = [content for content, _ in session.sent if content["kind"] == "pong"]
    assert [content["id"] for content in pongs] == [7]
    session.say(do="cancel", stream=3, source=None)
    session.say(do="format the disk")
    session.say()
    for each in (*front_end.of("Session"), *front_end.of("RunView")):
        route: object = each._reply_subshell_for
        assert route is None, "messages come on the thread that the front end has asked for"


# ----------------------------------------------------------------------------------------------------------- cancel


def test_cancel_ends_a_run_that_blocks_its_cell(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    errors: list[BaseException] = []
    run = single(backend=sgl.MockBackend("late", delay=30), log=log)
    thread = in_thread(run, shell, log, errors)
    wait_until(lambda: front_end.of("RunView"))
    session = front_end.greet()
    wait_until(lambda: any(event.source == run.source for event in log.since(0)))
    began = time.monotonic()
    session.say(do="cancel", source=run.source)
    thread.join(5)
    assert time.monotonic() - began < 0.5
    assert isinstance(errors[0], Cancelled)
    assert "■ single" in shell.pictures[-1]


def test_cancel_of_a_branch_leaves_the_others(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    body = 'for n in fork(3):\n    f"Branch {n}"\n    a = gen()'
    slow = sgl.MockBackend("late", delay=30)
    run = compile_cell(body, name="forks").prepare({}, backend=slow, log=log)
    errors: list[BaseException] = []
    thread = in_thread(run, shell, log, errors)
    wait_until(lambda: front_end.of("RunView"))
    session = front_end.greet()
    wait_until(lambda: len(slow._pending) == 3)
    session.say(do="cancel", stream=f"{run.source}.3")
    wait_until(lambda: len(slow._pending) == 2)
    time.sleep(0.1)
    assert thread.is_alive()
    session.say(do="cancel", stream=f"{run.source}.1")  # the program's own: all of it
    thread.join(5)
    assert not thread.is_alive()
    assert len(errors) == 1
    assert len(slow._pending) == 0


# --------------------------------------------------------------------------------------------- elsewhere, and failing


def test_where_the_packages_are_missing_it_is_html(
    shell: Any, front_end: FrontEnd, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    for name in ("widget", "desk", "widget_front"):
        monkeypatch.delitem(sys.modules, f"nbsglang.notebook.{name}", raising=False)
    assert run_watched(judge(backend=mock(0.2), log=log), shell, log)["decision"] == "yes"
    assert front_end.comms == []
    assert "✓ judge" in shell.pictures[-1]
    assert "data-nbsglang" not in shell.pictures[-1]


@pytest.mark.parametrize("how", ["environment", "plain"])
def test_widgets_can_be_switched_off(
    how: str, shell: Any, front_end: FrontEnd, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "environment":
        monkeypatch.setenv("NBSGLANG_WIDGETS", "0")
    run_watched(judge(backend=mock(), log=log), shell, log, plain=how == "plain")
    assert front_end.comms == []


def _broken(*_: object, **__: object) -> Any:
    raise RuntimeError("no")


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (desk, "new_view"),
        (desk, "new_session"),
        (desk, "Channel"),
        (Desk, "show_run"),
        (Desk, "end_run"),
        (Channel, "tick"),
        (Channel, "finish"),
        (Channel, "watch"),
        (widget_front, "marked"),
        (fronts.KernelFront, "end"),
        (fronts.KernelFront, "begin"),
    ],
    ids=lambda at: getattr(at, "__name__", at),
)
def test_whatever_fails_the_result_is_the_same_and_there_is_one_warning(
    owner: Any, name: str, shell: Any, front_end: FrontEnd, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk_of(shell).is_seen.set()  # as if an earlier output had said hello
    monkeypatch.setattr(owner, name, _broken)
    run = judge(backend=mock(0.4), log=log)

    def ask() -> None:
        wait_until(lambda: front_end.of("Session"))
        front_end.of("Session")[-1].say(do="resync")

    if name == "tick":
        threading.Thread(target=ask).start()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = run_watched(run, shell, log)
    assert (result["decision"], result["verdict"]) == ("yes", ["good", "bad"])
    assert len(warned) == 1, [str(w.message) for w in warned]
    assert "RuntimeError: no" in str(warned[0].message)
    if owner is not fronts.KernelFront and name != "marked":
        assert "✓ judge" in shell.pictures[-1], "the HTML is there all the same"


def test_the_users_own_error_is_what_is_raised(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    with pytest.raises(ProgramError):
        run_watched(single(backend=sgl.MockBackend(RuntimeError("mine")), log=log), shell, log)
    assert "✗ single" in shell.pictures[-1]


# ------------------------------------------------------------------------------------------------ what is left behind


def _reachable(*roots: object) -> Iterator[object]:
    """What hangs on the objects; not through modules, classes and the globals of functions, which lead everywhere."""
    seen = {id(root) for root in roots}
    todo = list(roots)
    while todo:
        at = todo.pop()
        yield at
        if isinstance(at, types.FunctionType):
            nexts: list[object] = [at.__closure__, at.__defaults__, at.__dict__]
        elif isinstance(at, type | types.ModuleType | types.FrameType | threading.Thread):
            continue
        else:
            nexts = gc.get_referents(at)
        for one in nexts:
            if id(one) not in seen:
                seen.add(id(one))
                todo.append(one)


def test_no_tensor_is_reachable_from_widgets(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    import torch

    from nbsglang.engine.engine import Engine
    from tests.tiny import byte_tokenizer, tiny_model

    with Engine(tiny_model(), tokenizer=byte_tokenizer(), kv_tokens=2000, log=log) as engine:
        for _ in range(2):
            run = judge(backend=engine, log=log)
            run_watched(run, shell, log, engine.source)
            front_end.greet()
        session = front_end.of("Session")[0]
        wait_until(lambda: any(line[3] == "Tokens" for line in read(session).lines))
        found = list(_reachable(shell.__dict__["nbsglang_desk"], *front_end.comms))
        assert any(isinstance(at, widget.Session) for at in found)
        assert any(isinstance(at, Channel) for at in found)
        assert not [type(at) for at in found if isinstance(at, torch.Tensor | torch.nn.Module | Engine)]


def test_clearing_closes_everything(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    for _ in range(2):
        run_watched(judge(backend=mock(), log=log), shell, log)
    front_end.greet()
    assert [t.name for t in threading.enumerate()].count("nbsglang-pump") == 1
    clear_desk(shell)
    assert [t.name for t in threading.enumerate()].count("nbsglang-pump") == 0
    assert all(each.is_closed for each in front_end.comms)
    clear_desk(shell)  # twice is once


def test_a_run_whose_widgets_are_cleared_goes_on_as_html(shell: Any, front_end: FrontEnd, log: EventLog) -> None:
    errors: list[BaseException] = []
    thread = in_thread(judge(backend=mock(2.0), log=log), shell, log, errors)
    wait_until(lambda: front_end.of("RunView"))
    front_end.greet()
    clear_desk(shell)  # as `%reload_ext` does
    n_pictures = len(shell.pictures)
    wait_until(lambda: len(shell.pictures) > n_pictures and thread.is_alive())
    thread.join(20)
    assert errors == []


def test_old_views_are_closed(shell: Any, front_end: FrontEnd, log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "_MAX_VIEWS", 3)
    for _ in range(5):
        run_watched(judge(backend=mock(), log=log), shell, log)
    assert [view.is_closed for view in front_end.of("RunView")] == [True, True, False, False, False]


# ---------------------------------------------------------------------------------- in the background, trees, replays


def test_a_run_in_the_background_is_shown(shell: Any, front_end: FrontEnd, log: EventLog, capfd: Any) -> None:
    run = judge(backend=mock(0.4), log=log)
    watch_in_background(run, shell=shell, log=log, engine_source=None)
    run.start_thread()
    assert run.wait(20)
    wait_until(lambda: "✓ judge" in shell.pictures[-1])
    assert len({display_id for _, _, display_id, _ in shell.display_pub.sent}) == 1
    wait_until(lambda: not [t for t in threading.enumerate() if t.name.startswith("nbsglang-wait")])
    assert capfd.readouterr() == ("", "")


def test_in_the_background_nothing_is_printed_elsewhere(log: EventLog, capfd: Any) -> None:
    run = judge(backend=mock(), log=log)
    watch_in_background(run, shell=types.SimpleNamespace(), log=log, engine_source=None)
    run.start_thread()
    assert run.wait(20)
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[Picture]:
    found: list[Picture] = []
    monkeypatch.setattr("nbsglang.notebook.shown.display", found.append)
    return found


def test_an_engine_is_shown_from_now_on(
    shell: Any, front_end: FrontEnd, log: EventLog, displayed: list[Picture]
) -> None:
    show_engine(shell, log, "engine", Picture("<p>tree</p>", "tree"), title="smollm2")
    (view,) = front_end.of("RunView")
    assert displayed[0].html == f'<div data-nbsglang-view="{view.state["place"]}"><p>tree</p></div>'
    assert displayed[0].text == "tree"
    session = front_end.greet()
    assert (view.state["live"], view.state["source"], view.state["engine"]) == (True, "", "engine")
    run_watched(judge(backend=mock(), log=log), shell, log, "engine")
    wait_until(lambda: any(line[3] == "StreamEnded" for line in read(session).lines))
    assert len(front_end.of("Session")) == 1


def test_a_log_is_replayed(shell: Any, front_end: FrontEnd, log: EventLog, displayed: list[Picture]) -> None:
    judge(backend=mock(), log=log).execute()
    show_log(shell, log, title="saved")
    show_log(shell, log, title="again")
    assert "judge" in displayed[0].text
    session = front_end.greet()
    for view in front_end.of("RunView"):
        kept = wire.unpacked(base64.b64decode(view.state["final"]))
        assert [line[0] for line in kept["events"]] == list(range(1, log.seq + 1))
        assert view.state["session"] == session.comm_id
    assert len(front_end.of("Session")) == 1
    plain = types.SimpleNamespace()
    show_log(plain, log)
    assert "data-nbsglang-view" not in displayed[-1].html
    assert "good" in displayed[-1].html


def test_a_long_log_is_replayed_and_not_kept(shell: Any, front_end: FrontEnd, displayed: list[Picture]) -> None:
    log = EventLog()
    for n in range(12_000):  # more than may wait to be sent of a run that goes on
        log.emit("engine", Tokens((n,), ((n * 7919 % 49_000,),)))
    show_log(shell, log, engine="engine", title="long")
    session = front_end.greet()
    (view,) = front_end.of("RunView")
    assert view.state["final"] == "", "the state of widgets is saved in notebooks"
    assert "too long to be kept" in displayed[0].html
    wait_until(lambda: read(session).lines and read(session).lines[-1][0] == log.seq, 20)
    assert [line[0] for line in read(session).lines] == list(range(1, log.seq + 1))
