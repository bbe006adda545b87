"""Odd lines, and verbs in odd moments: each has gone wrong once."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang import current
from nbsglang.errors import BackendClosed
from nbsglang.events import EventLog, Queued
from nbsglang.viz import wire
from tests.notebook.conftest import Notebook
from tests.tiny import byte_tokenizer, tiny_model

_CELL = "'a shared start '\nfor k in fork(2):\n    f' {k}'\n    a = gen(max_tokens=3)"


def _engine(**options: Any) -> Any:
    return sgl.Engine(
        tiny_model(), tokenizer=byte_tokenizer(), kv_tokens=300, verify=False, name="tiny", log=EventLog(), **options
    )


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with _engine() as made:
        yield made


@pytest.fixture
def tiny(notebook: Notebook, engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """The notebook on a tiny engine, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    current.set_default_backend(engine)
    engine.flush_cache()
    return notebook


def _page(path: Path) -> Any:
    """What a page replays."""
    text = path.read_text(encoding="utf-8")
    held = text.partition('id="nbsglang-log">')[2].partition("</script>")[0]
    return wire.unpacked(base64.b64decode(json.loads(held)))


# ----------------------------------------------------------------------------------------------------- lines


@pytest.mark.parametrize(("line", "words"), [("%%sgl -h\n'x'", "%%sgl?"), ("%sgl tree --help", "%sgl help")])
def test_who_asks_for_help_is_told_where_it_is(notebook: Notebook, line: str, words: str) -> None:
    assert notebook.usage_error(line).endswith(f"is explained by {words}")


@pytest.mark.parametrize("seconds", ["inf", "1e30"])
def test_a_timeout_that_never_comes(notebook: Notebook, seconds: str) -> None:
    notebook.good(f"%%sgl r --timeout {seconds}\n'x'\na = gen()")
    assert notebook.names["r"]["a"] == "one"


def test_a_budget_beyond_the_memory_is_a_usage_error(tiny: Notebook) -> None:
    assert "does not fit in memory" in tiny.usage_error(f"%%sgl --budget {10**15}\n'x'")


def test_a_fresh_engine_leaves_the_cache_of_the_loaded_one(tiny: Notebook, engine: Any) -> None:
    tiny.good(f"%%sgl\n{_CELL}")
    held = engine.stats()["kv_cached"]
    assert held
    tiny.good(f"%%sgl --cache fresh --budget 100\n{_CELL}")
    assert engine.stats()["kv_cached"] == held
    tiny.good("%%sgl --cache fresh\n'x'")
    assert engine.stats()["kv_cached"] == 0


def test_a_backend_without_a_tree_shows_its_numbers_in_its_place(notebook: Notebook) -> None:
    out = notebook.good("%%sgl --show tree\n'x'\na = gen()").out
    assert "done" in out
    assert "generated 3" in out


def test_a_dry_run_of_a_loop_that_waits_for_an_answer_ends(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbsglang.notebook.rehearsal._MAX_S", 0.3)
    out = notebook.good("%%sgl --dry-run\na = ''\nwhile 'stop' not in str(a):\n    'x'\n    a = gen(max_tokens=3)").out
    assert "- stopped after 0.3 s: with these answers the cell may never end" in out


# ----------------------------------------------------------------------------------------------------- verbs


def test_freeing_tells_what_was_closed(notebook: Notebook) -> None:
    current.set_default_backend(made := _engine())
    assert notebook.good("%sgl free").out.startswith("tiny closed; ")
    assert notebook.good("%sgl free").out.startswith("no model is loaded; ")
    notebook.names["mine"] = made = _engine()
    assert notebook.good("%sgl free mine").out.startswith("mine closed; ")
    with pytest.raises(BackendClosed):
        made.stats()


def test_without_torch_loading_says_so(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_torch(*_: object, **__: object) -> Any:
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr("nbsglang.notebook.models.load_backend", without_torch)
    error = notebook.usage_error("%sgl load smollm2")
    assert error == "smollm2 cannot be loaded: No module named 'torch'; `%sgl doctor` tells what is missing"
    monkeypatch.setitem(sys.modules, "nbsglang.engine.load", None)
    assert "! device     torch does not load" in notebook.good("%sgl doctor").out


def test_the_figures_of_the_pool_follow_a_reset(tiny: Notebook) -> None:
    tiny.good(f"%%sgl\n{_CELL}")
    assert "pool 0 locked, 0 evictable" not in tiny.good("%sgl tree").out
    tiny.good("%sgl reset")
    assert "pool 0 locked, 0 evictable, 300 free" in tiny.good("%sgl tree").out


# ---------------------------------------------------------------------------------------------------- export


def test_nothing_to_be_written(notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "event_log", EventLog)
    assert "nothing has run yet" in notebook.usage_error(f"%sgl export {tmp_path}/x.html")
    assert not (tmp_path / "x.html").exists()


def test_the_page_of_one_run_has_its_time_and_its_texts_only(tiny: Notebook, tmp_path: Path) -> None:
    tiny.good("%%sgl before\n'one secret'\na = gen(max_tokens=3)")
    tiny.good(f"%%sgl r\n{_CELL}")
    tiny.good("%%sgl after\n'another secret'\na = gen(max_tokens=3)")
    tiny.good("%sgl export x.html r")
    held = _page(tmp_path / "x.html")
    assert held["events"][0][3] == "StreamBegan"
    assert held["base"]["seq"] == held["events"][0][0] - 1
    assert held["base"]["streams"] == []
    assert held["base"]["tree"]["nodes"], "what the cache held"
    assert {line[2] for line in held["events"]} == {held["source"], held["engine"]}
    assert held["source"] == tiny.names["r"].source
    assert "secret" not in json.dumps(held["events"])


def test_the_page_of_a_run_shows_the_engine_that_it_asked(tiny: Notebook, engine: Any, tmp_path: Path) -> None:
    tiny.good(f"%%sgl small --budget 60\n{_CELL}")
    tiny.good(f"%%sgl r\n{_CELL}")
    tiny.good("%sgl export x.html small")
    held = _page(tmp_path / "x.html")
    assert held["engine"] not in ("", engine.source)
    assert any(line[3] == Queued.__name__ for line in held["events"])


def test_a_log_that_has_lost_its_beginning_is_made_up_for(notebook: Notebook, tmp_path: Path) -> None:
    with _engine() as engine:
        engine.log._rows = deque(engine.log._rows, maxlen=40)
        current.set_default_backend(engine)
        for n in range(6):
            engine.generate(f"prompt number {n}", max_tokens=2)
        assert engine.log.since(0)[0].seq > 1
        assert "prompt number" in notebook.good("%sgl tree").out
        assert "it has lost its beginning" in notebook.usage_error("%sgl whatif")
        notebook.good(f"%sgl export {tmp_path}/x.html")
        lines = _page(tmp_path / "x.html")["events"]
        assert (lines[0][3], lines[-1][3]) == ("TokenTexts", "Snapshot")
        assert "p" in lines[0][4]["texts"]
    current.set_default_backend(None)


# ---------------------------------------------------------------------------------------- replay and what-if


def test_a_replay_tells_runs_in_their_order(tiny: Notebook) -> None:
    names = [f"run_{n}" for n in range(8)]
    for name in names:
        tiny.good(f"%%sgl {name}\n'x'")
    tiny.good("%sgl export x.jsonl")
    out = tiny.good("%sgl replay x.jsonl").out
    places = [out.index(f"✓ {name} done") for name in names]
    assert places == sorted(places)


def test_what_if_refuses_a_log_without_texts(tiny: Notebook) -> None:
    tiny.good(f"%%sgl\n{_CELL}")
    tiny.good("%sgl whatif")
    assert "whatif" not in tiny.good("%sgl export x.jsonl --redact").out
    assert "were left out" in tiny.usage_error("%sgl whatif x.jsonl")


# ----------------------------------------------------------------------------------------------- background


def test_a_run_in_the_background_has_its_automata_logged(
    tiny: Notebook, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nbsglang.notebook.live.is_kernel", lambda shell: True)
    monkeypatch.setenv("NBSGLANG_WIDGETS", "0")
    seq = engine.log.seq
    tiny.good("%%sgl -b -o run --show fsm\n'x'\na = gen(regex='[ab]{3}')")
    assert tiny.names["run"].wait(20)
    until = time.monotonic() + 10
    while not any(type(event.body).__name__ == "ConstraintGraph" for event in engine.log.since(seq)):
        assert time.monotonic() < until
        time.sleep(0.02)
