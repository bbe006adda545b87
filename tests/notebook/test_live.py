"""Watching a run: the pictures that come, where they go, and that the run is none the wiser."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

import nbsglang as sgl
from nbsglang.errors import ProgramError
from nbsglang.events import EventLog
from nbsglang.lang.cell_run import CellRun
from nbsglang.notebook import fronts
from nbsglang.notebook.live import watching
from nbsglang.viz import gallery
from nbsglang.viz.gallery import Section
from tests.notebook.watched import judge, mock, single


class Publisher:
    """What a kernel's publisher is to a front: keeps what is published, and from which thread."""

    def __init__(self) -> None:
        self.sent: list[tuple[dict[str, str], bool, str, str]] = []
        self.times: list[float] = []

    def publish(self, data: dict[str, str], metadata: object, *, transient: dict[str, str], update: bool) -> None:
        self.times.append(time.monotonic())
        self.sent.append((data, update, transient["display_id"], threading.current_thread().name))


class ZMQInteractiveShell:
    """A kernel's shell by its name."""

    def __init__(self) -> None:
        self.display_pub = Publisher()


class InteractiveShell:
    """Any other shell."""


@pytest.fixture
def shell() -> ZMQInteractiveShell:  # not the one of the other tests
    return ZMQInteractiveShell()


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def log() -> EventLog:
    return EventLog()


def run_watched(run: Any, shell: Any, log: EventLog, source: str | None = None, **options: Any) -> CellRun:
    with watching(run, shell=shell, log=log, engine_source=source, **options):
        return run.execute()


# ------------------------------------------------------------------------------------------------- in a kernel


def test_one_output_is_updated_and_ends_with_the_whole_picture(shell: ZMQInteractiveShell, log: EventLog) -> None:
    state = run_watched(judge(backend=mock(0.4), log=log), shell, log)
    sent, times = shell.display_pub.sent, shell.display_pub.times
    assert state["verdict"] == ["good", "bad"]
    assert [update for _, update, _, _ in sent] == [False] + [True] * (len(sent) - 1)
    assert len({display_id for *_, display_id, _ in sent}) == 1
    assert 3 <= len(sent) <= 2 + 4 * (times[-1] - times[0])
    assert sent[0][3] == sent[-1][3] == threading.current_thread().name
    assert {name for *_, name in sent[1:-1]} <= {f"nbsglang-view-{state.source}"}
    assert all(set(data) == {"text/html", "text/plain"} for data, *_ in sent)
    last = sent[-1][0]
    assert "✓ judge done" in last["text/plain"]
    for words in ("▸ verdict: good", "▸ verdict: bad", "◆ decision: yes", "branch 1"):
        assert words in last["text/plain"]
        assert words.split()[-1] in last["text/html"]
    assert "radix tree" not in last["text/html"]  # a mock has none
    running = [data["text/html"] for data, *_ in sent[1:-1]]
    assert any("▶ judge" in html and "▌" in html for html in running)


def test_nothing_new_sends_nothing(shell: ZMQInteractiveShell, log: EventLog) -> None:
    run_watched(judge(backend=mock(0.9), log=log), shell, log)
    assert len(shell.display_pub.sent) <= 5  # the beginning, two changes, the end; about 1.8 s


def test_text_alone(shell: ZMQInteractiveShell, log: EventLog) -> None:
    run_watched(judge(backend=mock(), log=log), shell, log, plain=True)
    assert all(set(data) == {"text/plain"} for data, *_ in shell.display_pub.sent)


@pytest.mark.parametrize("options", [{"quiet": True}, {"show": ()}, {"show": ("none",)}])
def test_nothing_is_shown(shell: ZMQInteractiveShell, log: EventLog, options: dict[str, Any]) -> None:
    run_watched(judge(backend=mock(), log=log), shell, log, **options)
    assert shell.display_pub.sent == []
    assert not any(thread.name.startswith("nbsglang-view") for thread in threading.enumerate())


def test_the_end_is_shown_after_an_error(shell: ZMQInteractiveShell, log: EventLog) -> None:
    backend = sgl.MockBackend(RuntimeError("<b>no</b>"))
    with pytest.raises(ProgramError):
        run_watched(single(backend=backend, log=log), shell, log)
    assert "✗ single failed" in shell.display_pub.sent[-1][0]["text/plain"]


def test_the_end_is_shown_after_an_interrupt(shell: ZMQInteractiveShell, log: EventLog) -> None:
    run = single(backend=sgl.MockBackend("late", delay=30), log=log)
    began = time.monotonic()
    interrupter = threading.Timer(0.4, signal.raise_signal, [signal.SIGINT])
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        run_watched(run, shell, log)
    assert time.monotonic() - began < 1.5
    assert "■ single cancelled" in shell.display_pub.sent[-1][0]["text/plain"]


def test_a_real_engine_is_watched(shell: ZMQInteractiveShell, log: EventLog, capfd: pytest.CaptureFixture[str]) -> None:
    from nbsglang.engine.engine import Engine
    from tests.tiny import byte_tokenizer, tiny_model

    with Engine(tiny_model(), tokenizer=byte_tokenizer(), kv_tokens=2000, log=log) as engine:
        for _ in range(2):  # the second cell goes on with what the first has folded
            run = judge(backend=engine, log=log)
            state = run_watched(run, shell, log, engine.source)
            text = shell.display_pub.sent[-1][0]["text/plain"]
            stats = state.stats
            assert f"cached {stats['cached_tokens']} · prefilled {stats['computed_tokens']} · generated 40" in text
            assert "●" in text.partition("radix tree:")[2]
        assert len(shell.nbsglang_followers) == 1  # type: ignore[attr-defined]
        follower = next(iter(shell.nbsglang_followers.values()))  # type: ignore[attr-defined]
        assert follower.look(lambda view: view.tree_as_tuples()) == engine.tree().nodes
        assert follower.look(lambda view: (view.tree.watched, view.sources)) == ([], {engine.source})
    assert 'src="data:image/svg+xml;base64,' in shell.display_pub.sent[-1][0]["text/html"]
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------- views that fail


def _broken(*_: object) -> Any:
    raise RuntimeError("no")


@pytest.mark.parametrize("name", ["numbers", "streams", "tree"])
@pytest.mark.parametrize("kind", [ZMQInteractiveShell, InteractiveShell])
def test_a_view_that_fails_is_switched_off(
    name: str, kind: type, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "SECTIONS", {**gallery.SECTIONS, name: Section(_broken, _broken, _broken)})
    with pytest.warns(RuntimeWarning) as warned:
        state = run_watched(judge(backend=mock(0.3), log=log), kind(), log, "engine")
    assert state["decision"] == "yes"
    assert [str(w.message) for w in warned] == [f"the view {name!r} was switched off: RuntimeError: no"]


@pytest.mark.parametrize("method", ["begin", "draw", "send", "end"])
def test_a_front_that_fails(
    method: str, shell: ZMQInteractiveShell, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fronts.KernelFront, method, _broken)
    with pytest.warns(RuntimeWarning, match="RuntimeError: no") as warned:
        state = run_watched(judge(backend=mock(0.3), log=log), shell, log)
    assert state["decision"] == "yes"
    assert len(warned) == 1
    with pytest.warns(RuntimeWarning), pytest.raises(ProgramError):  # the user's own error is what is raised
        run_watched(single(backend=sgl.MockBackend(RuntimeError("mine"), delay=0.3), log=log), shell, log)


def test_warnings_made_errors_do_not_reach_the_run(shell: ZMQInteractiveShell, log: EventLog) -> None:
    shell.display_pub.publish = _broken  # type: ignore[method-assign]
    assert run_watched(judge(backend=mock(), log=log), shell, log)["decision"] == "yes"


# -------------------------------------------------------------------------------------------------- elsewhere


def test_plain_lines(log: EventLog, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "_LINE_EVERY_S", 0.2)
    run_watched(judge(backend=mock(0.5), log=log), InteractiveShell(), log)
    out, err = capsys.readouterr()
    assert out.startswith("✓ judge done")
    assert "▸ verdict: good" in out
    assert "\x1b" not in out + err
    assert re.match(r"judge: .*running · cached 0 · prefilled 0", err)
    assert len(err.splitlines()) <= 6


def test_a_stream_of_few_letters(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))
    run_watched(judge(backend=mock(), log=log), InteractiveShell(), log)
    assert b"? judge done" in raw.getvalue()


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Tty()
    monkeypatch.setattr(sys, "stdout", out)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "90", "LINES": "30"}.items():
        monkeypatch.setenv(name, value)
    run_watched(judge(backend=mock(0.5), log=log), InteractiveShell(), log)
    text = out.getvalue()
    assert "▶ judge running" in text
    assert "judge done" in text.rpartition("judge running")[2]
    assert "├── " in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is back
    monkeypatch.setenv("TERM", "dumb")
    out.truncate(0)
    run_watched(judge(backend=mock(), log=log), InteractiveShell(), log)
    assert "\x1b" not in out.getvalue()


def test_a_terminal_is_left_in_order_after_an_error(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Tty()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("TERM", "xterm-256color")
    with pytest.raises(ProgramError):
        run_watched(single(backend=sgl.MockBackend(RuntimeError("x")), log=log), InteractiveShell(), log)
    assert "single failed" in out.getvalue()
    assert out.getvalue().endswith("\x1b[?25h")


# ---------------------------------------------------------------------------------------------- a real kernel

_CELL = """
from IPython import get_ipython
from nbsglang import current
from nbsglang.notebook.live import watching
from tests.notebook.watched import judge, mock
run = judge(backend=mock(DELAY))
with watching(run, shell=get_ipython(), log=current.event_log(), engine_source=None):
    run.execute()
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[tuple[KernelManager, Any]]:
    root = str(Path(__file__).parents[2])
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env={**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONPATH": root}, cwd=str(tmp_path))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def _outputs(client: Any, message: str) -> list[dict[str, Any]]:
    found = []
    while True:
        at = client.get_iopub_msg(timeout=60)
        if at["parent_header"].get("msg_id") != message:
            continue
        if at["msg_type"] == "status" and at["content"]["execution_state"] == "idle":
            return found
        if at["msg_type"] in {"stream", "error", "execute_result", "display_data", "update_display_data"}:
            found.append(at)


def test_a_kernel_shows_one_output_and_prints_nothing(kernel: tuple[KernelManager, Any]) -> None:
    _, client = kernel
    outputs = _outputs(client, client.execute(_CELL.replace("DELAY", "0.5")))
    kinds = [at["msg_type"] for at in outputs]
    assert kinds == ["display_data"] + ["update_display_data"] * (len(outputs) - 1)
    assert 3 <= len(outputs) <= 9
    assert max(len(json.dumps(at["content"])) for at in outputs) < 20_000
    assert "✓ judge done" in outputs[-1]["content"]["data"]["text/plain"]


def test_an_interrupt_in_a_kernel_leaves_the_last_picture(kernel: tuple[KernelManager, Any]) -> None:
    manager, client = kernel
    message = client.execute(_CELL.replace("DELAY", "60"))
    while client.get_iopub_msg(timeout=60)["msg_type"] != "update_display_data":
        pass
    began = time.monotonic()
    manager.interrupt_kernel()
    outputs = _outputs(client, message)
    assert time.monotonic() - began < 1.5
    pictures = [at["content"]["data"]["text/plain"] for at in outputs if at["msg_type"] == "update_display_data"]
    assert "■ judge cancelled" in pictures[-1]
    assert outputs[-1]["content"].get("ename") == "KeyboardInterrupt"
