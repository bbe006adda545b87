"""Files of what has happened, the replay of a log, what-if, and runs as values of cells."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang import current
from nbsglang.errors import Cancelled
from nbsglang.events import EventLog
from nbsglang.notebook.handles import run_html
from nbsglang.notebook.reckoning import busiest
from tests.notebook.conftest import Notebook
from tests.tiny import byte_tokenizer, tiny_model
from tests.viz.test_history import assert_is_a_trace

SECRET = "the password is tulip"


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with sgl.Engine(
        tiny_model(), tokenizer=byte_tokenizer(), kv_tokens=300, verify=False, name="tiny", log=EventLog()
    ) as made:
        yield made


@pytest.fixture
def tiny(notebook: Notebook, engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """The notebook on a tiny engine, with two runs, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    current.set_default_backend(engine)
    for name in ("r", "q"):
        notebook.good(f"%%sgl {name} -t 0\n'{SECRET}'\nfor k in fork(2):\n    f' {{k}}'\n    a = gen(max_tokens=3)")
    return notebook


@pytest.mark.parametrize("suffix", ["html", "jsonl", "json", "svg", "dot"])
def test_each_kind_is_private_and_told_about(tiny: Notebook, tmp_path: Path, suffix: str) -> None:
    out = tiny.good(f"%sgl export x.{suffix}").out
    path = tmp_path / f"x.{suffix}"
    assert out.startswith(f"x.{suffix} is written: ")
    assert out.endswith("; it holds prompts and answers, and is readable by you alone\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    match suffix:
        case "html":
            assert text.startswith("<!DOCTYPE html>")
        case "jsonl":
            assert SECRET in text
            assert EventLog.load(path).seq == json.loads(text.splitlines()[-1])[0]
        case "json":
            assert_is_a_trace(json.loads(text))
        case "svg":
            assert text.startswith("<svg")
        case "dot":
            assert text.startswith("digraph")
    assert not list(tmp_path.glob("*.part"))


def test_a_log_without_texts(tiny: Notebook, tmp_path: Path) -> None:
    assert "the texts are left out" in tiny.good("%sgl export x.jsonl --redact").out
    assert "tulip" not in (tmp_path / "x.jsonl").read_text()
    assert "--redact is for logs" in tiny.usage_error("%sgl export x.html --redact")


def test_one_run_alone(tiny: Notebook, tmp_path: Path) -> None:
    tiny.good("%sgl export x.json r")
    found = json.loads((tmp_path / "x.json").read_text())
    assert_is_a_trace(found)
    runs = [e["args"]["name"] for e in found["traceEvents"] if e["name"] == "process_name"]
    assert runs[0] == "run r"
    assert "run q" not in runs
    tiny.good("%sgl export x.html r")
    assert "not of one run" in tiny.usage_error("%sgl export x.svg r")
    assert "did you mean q?" in tiny.usage_error("%sgl export x.json qq")


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("export x.htm", "did you mean .html?"),
        ("export x", "files that end in nothing; there are .html, .jsonl, .json, .svg, .dot"),
        ("export none/x.svg", "there is no folder none for x.svg"),
        ("export", "arguments are required: FILE"),
        ("export x.json --redacted", "did you mean --redact?"),
        ("replay none.jsonl", "none.jsonl cannot be read: No such file"),
        ("replay x.txt", "line 1 is not an event of nbsglang"),
        ("replay empty.jsonl", "holds no events"),
        ("whatif none.jsonl", "cannot be read"),
        ("whatif --kv-tokens 1", "at least 2, not 1"),
        ("whatif --kv-tokens x", "invalid int value"),
        ("whatif --policy lfu", "invalid choice: 'lfu'"),
        ("whatif --kv-token 5", "did you mean --kv-tokens?"),
        ("whatf", "did you mean whatif?"),
        ("exprot x.svg", "did you mean export?"),
    ],
)
def test_lines_that_cannot_be_done(tiny: Notebook, tmp_path: Path, line: str, part: str) -> None:
    (tmp_path / "x.txt").write_text("hello\n")
    (tmp_path / "empty.jsonl").write_text("")
    assert part in tiny.usage_error(f"%sgl {line}")


def test_without_a_model_there_is_no_tree_and_nothing_to_reckon(notebook: Notebook, tmp_path: Path) -> None:
    notebook.good(f"%%sgl r\n'{SECRET}'\na = gen()")
    notebook.good(f"%sgl export {tmp_path}/x.jsonl")
    assert "no model is loaded in this process" in notebook.usage_error(f"%sgl export {tmp_path}/x.dot")
    assert "%sgl whatif needs a model in this process" in notebook.usage_error("%sgl whatif")
    bare = tmp_path / "bare.jsonl"
    log = EventLog()
    sgl.program("'a'\nb = gen()").run(backend=sgl.MockBackend("x"), log=log)
    log.save(bare)
    assert "it has no cache" in notebook.usage_error(f"%sgl whatif {bare}")


def test_a_saved_log_is_shown_again(tiny: Notebook) -> None:
    tiny.good("%sgl export x.jsonl")
    out = tiny.good("%sgl replay x.jsonl").out
    assert "✓ r done" in out
    assert "✓ q done" in out
    assert SECRET in out
    assert "radix tree:" in out
    assert "timeline:" in out


def test_a_replay_needs_no_torch(tiny: Notebook, tmp_path: Path) -> None:
    tiny.good("%sgl export x.jsonl")
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from IPython.core.interactiveshell import InteractiveShell as Shell\n"
        "shell = Shell.instance(); shell.history_manager.enabled = False\n"
        "for line in ('%load_ext nbsglang', '%sgl replay x.jsonl', '%sgl whatif x.jsonl --policy lru'):\n"
        "    assert shell.run_cell(line).success, line\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "radix tree:" in done.stdout
    assert "as recorded" in done.stdout


def test_what_if(tiny: Notebook, engine: Any) -> None:
    out = tiny.good("%sgl whatif --kv-tokens 30 200 --policy all").out
    stats = engine.stats()
    assert f"{stats['hit_rate']:.1%}" in next(line for line in out.splitlines() if "as recorded" in line)
    for words in ("lru: least recently used first", "fifo: oldest first", "optimal: wanted last of all first"):
        assert words in out
    tiny.good("%sgl export x.jsonl")
    saved = tiny.good("%sgl whatif x.jsonl --kv-tokens 30 --policy lru").out
    row = next(line.split() for line in saved.splitlines() if "lru" in line)
    assert row in [line.split() for line in out.splitlines()]


def test_a_log_of_several_engines_is_that_of_the_busiest() -> None:
    from nbsglang.events import Event, Queued

    events = [Event(n, n, source, Queued(n, "c", 4)) for n, source in enumerate("abbcc", 1)]
    assert busiest(events) == "c"
    assert busiest([]) == ""


def test_completion(tiny: Notebook) -> None:
    assert {"export", "replay", "whatif"} <= set(tiny.complete("%sgl "))
    assert set(tiny.complete("%sgl export x.json ")) == {"r", "q", "--redact"}
    assert {"--kv-tokens", "--policy"} <= set(tiny.complete("%sgl whatif "))
    assert {"lru", "fifo", "optimal", "all"} <= set(tiny.complete("%sgl whatif --policy "))
    assert {"--compare", "--dry-run", "--trace"} <= set(tiny.complete("%%sgl --"))
    assert "timeline,fsm" in tiny.complete("%%sgl --show timeline,")


def test_help_lists_the_verbs(notebook: Notebook) -> None:
    out = notebook.good("%sgl help").out
    assert "%sgl export FILE [RUN]" in out
    assert "%sgl whatif [FILE] [--kv-tokens N ...] [--policy P]" in out
    assert "%sgl replay FILE" in out


# --------------------------------------------------------------------------------------------------- handles


def test_a_handle_tells_and_waits(notebook: Notebook) -> None:
    notebook.names["slow"] = sgl.MockBackend("late", delay=0.3)
    ran = notebook.good("%%sgl -b --backend slow\n'q'\na = gen()")
    run = ran.value
    assert "running" in repr(run)
    page = notebook.shell.display_formatter.format(run)[0]["text/html"]
    assert "run, running" in page
    assert "cancel() ends it" in page
    with pytest.raises(TimeoutError, match="goes on"):
        run.result(0.01)
    assert run.result()["a"] == "late"
    assert run.result(1) is run
    page = run_html(run)
    assert "run, done" in page
    assert "&#x27;late&#x27;" in page


def test_a_handle_of_a_run_that_was_cancelled_or_has_failed(notebook: Notebook) -> None:
    notebook.names["slow"] = sgl.MockBackend("late", delay=30)
    run = notebook.good("%%sgl -b --backend slow\na = gen()").value
    run.cancel()
    with pytest.raises(Cancelled):
        run.result(5)
    assert "run, cancelled" in run_html(run)
    run = notebook.good("%%sgl -b\na = gen()\nraise ValueError('<b>no</b>')").value
    until = time.monotonic() + 5
    while not run.done and time.monotonic() < until:
        time.sleep(0.01)
    page = run_html(run)
    assert "run, failed" in page
    assert "&lt;b&gt;no&lt;/b&gt;" in page


def test_unloading_takes_the_look_of_runs_away(notebook: Notebook) -> None:
    run = notebook.good("%%sgl\na = gen()").value
    formats = notebook.shell.display_formatter.format
    assert "text/html" in formats(run)[0]
    notebook.good("%unload_ext nbsglang")
    assert "text/html" not in formats(run)[0]
