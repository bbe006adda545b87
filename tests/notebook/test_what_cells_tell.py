"""Flags that tell more of a cell: --compare, --dry-run, --trace, --show timeline,fsm; on a tiny engine and the mock."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang import current
from nbsglang.events import ConstraintGraph, EventLog, Finished, Queued
from nbsglang.lang.cell_run import CellRun
from nbsglang.notebook.compare import same_texts
from nbsglang.notebook.guesses import guesses
from tests.notebook.conftest import Notebook
from tests.tiny import byte_tokenizer, tiny_model
from tests.viz.test_history import assert_is_a_trace

ESSAY = "x" * 60
JUDGE = f"""
system("You are terse.")
user("Essay: {ESSAY}")
for k in fork(["a", "b"]):
    user(f"Judge {{k}}")
    verdict = gen(max_tokens=8)
    year = gen(regex=r"year: [1-5]{{2}}!")
user("Well?")
d = select(["yes", "no"])
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with sgl.Engine(
        tiny_model(), tokenizer=byte_tokenizer(), kv_tokens=1200, verify=False, name="tiny", log=EventLog()
    ) as made:
        yield made


@pytest.fixture
def tiny(notebook: Notebook, engine: Any) -> Notebook:
    """The notebook with the engine as its default backend; its cache is empty."""
    engine.flush_cache()
    current.set_default_backend(engine)
    notebook.names["tiny"] = engine
    return notebook


# --------------------------------------------------------------------------------------------------- --compare


def test_compare_runs_twice_and_keeps_the_cached_run(tiny: Notebook, engine: Any) -> None:
    before = engine.stats()["requests"]
    out = tiny.good(f"%%sgl r -t 0 --show numbers --plain --compare{JUDGE}").out
    run = tiny.names["r"]
    assert run.stats["cached_tokens"] > 0
    assert engine.stats()["requests"] == before, "the loaded engine's cache is not touched"
    head, table = out.split("with the cache  without\n")
    assert head.count("✓ r done") == 1, "one view, of the cached run"
    rows = dict(line.split("  ", 1) for line in table.splitlines()[:7])
    assert rows["of them cached"].split()[1] == "0"
    computed = [int(n.replace(",", "")) for n in rows["of them computed"].split()]
    assert computed[0] < computed[1]
    assert "the texts are the same, token for token (greedy decoding; 3 streams)" in out
    assert "the cached one came first, so what only a first run pays counts against the cache" in out


def test_compare_gives_both_runs_one_seed(tiny: Notebook) -> None:
    out = tiny.good("%%sgl r --show none --compare\n'hello'\nb = gen(max_tokens=6)").out
    assert "the texts are the same, token for token (sampled, both with seed 0; 1 stream)" in out


def test_compare_tells_of_texts_that_differ(tiny: Notebook) -> None:
    cell = "%%sgl r -t 0 --show none --compare\nf'{n.append(1) or len(n)}'\nb = gen(max_tokens=4)"
    tiny.names["n"] = []
    out = tiny.good(cell).out
    assert tiny.names["n"] == [1, 1]
    assert "1 of 1 texts differ, first that of the cell (greedy decoding)" in out
    assert tiny.names["r"].text.startswith("1")


def test_compare_with_a_cell_that_fails(tiny: Notebook) -> None:
    assert isinstance(tiny.run("%%sgl r -q --compare\n'a'\n1 / 0").error, ZeroDivisionError)
    tiny.names["n"] = []
    out = tiny.good("%%sgl r -t 0 --show none --compare\n'a'\nn.append(1)\nb = gen(max_tokens=2)\n[0][len(n) - 1]").out
    assert "the run without the cache failed: IndexError: list index out of range" in out
    assert "b" in tiny.names["r"]


def test_compare_in_a_small_pool_and_quietly(tiny: Notebook) -> None:
    out = tiny.good("%%sgl r -t 0 -q --compare --budget 40\n'hello'\nb = gen(max_tokens=2)").out
    assert out == ""
    assert len(tiny.names["r"].tokens) == 2


def test_compare_needs_an_engine(notebook: Notebook) -> None:
    assert "--compare makes an engine for this cell, so it needs" in notebook.usage_error("%%sgl --compare\na = gen()")


def test_texts_are_compared_stream_by_stream(notebook: Notebook) -> None:
    notebook.names["mock"] = sgl.MockBackend(
        lambda call: "x" if "b" in notebook.names["mock"].render(call.prompt) else "y"
    )
    sgl.set_default_backend(notebook.names["mock"])
    cell = "%%sgl {}\n'q'\nfor k in fork(keys):\n    f'{{k}}'\n    v = gen()"
    notebook.names["keys"] = ["a", "b"]
    notebook.good(cell.format("one"))
    notebook.names["keys"] = ["a", "c"]
    notebook.good(cell.format("other"))
    one, other = notebook.names["one"], notebook.names["other"]
    assert same_texts(one, one) == (3, 0, "")
    assert same_texts(one, other) == (3, 1, "branch 1")


# --------------------------------------------------------------------------------------------------- --dry-run


def test_a_dry_run_predicts_what_a_run_shares(tiny: Notebook, engine: Any) -> None:
    before = engine.log.seq
    out = tiny.good(f"%%sgl r --dry-run --plain{JUDGE}").out
    assert engine.log.seq == before, "no call of the engine, nothing in its log"
    assert "r" not in tiny.names
    tiny.good(f"%%sgl r -t 0 --cache fresh{JUDGE}")
    events = [e.body for e in engine.log.since(before) if e.source == engine.source]
    n_prompt = sum(b.n_prompt for b in events if isinstance(b, Finished))
    n_cached = sum(b.n_cached for b in events if isinstance(b, Finished))
    assert f"prompt tokens {n_prompt:,} · shared {n_cached:,} · to compute {n_prompt - n_cached:,}" in out
    assert f"hit rate {n_cached / n_prompt:.0%}" in out
    assert "pool 1,200" in out


def test_a_dry_run_says_what_it_assumed(tiny: Notebook) -> None:
    out = tiny.good(f"%%sgl --dry-run --plain --show streams,tree{JUDGE}").out
    assert "verdict (2 times) was assumed: 8 tokens, as many as it may write" in out
    assert "year (2 times) was assumed: 9 tokens, one of the shortest that fit" in out
    assert "d was assumed: the first of 2 choices" in out
    assert "no line of the cell depends on what an answer says" in out
    assert "▸ year: year: 11!" in out
    assert "radix tree:" in out


def test_a_dry_run_says_which_lines_it_guessed(tiny: Notebook) -> None:
    cell = f"%%sgl --dry-run --plain{JUDGE}n = len(verdict[0])\nif n > 3:\n    'long'\nelse:\n    x = gen()\n"
    out = tiny.good(cell).out
    assert "line 11 depends on n, and was followed for the made-up answer only: if n > 3:" in out
    assert "no line of the cell" not in out


def test_a_dry_run_whose_python_cannot_use_the_answers(tiny: Notebook) -> None:
    out = tiny.good("%%sgl --dry-run --plain\n'a'\nb = gen(max_tokens=3)\nint(b)\nc = gen()").out
    assert "with these answers the cell ended early: ValueError: invalid literal" in out
    assert "calls 1 " in out


def test_a_dry_run_of_typed_values_goes_on(tiny: Notebook) -> None:
    cell = (
        "%%sgl --dry-run --plain\n'a'\nb: int = gen()\nc: list[str] = gen()\nd: float = gen(max_tokens=5)\nf'{b + 1}'"
    )
    assert "ended early" not in tiny.good(cell).out


def test_a_dry_run_without_a_model_counts_characters(notebook: Notebook) -> None:
    out = notebook.good("%%sgl --dry-run --plain\n'1234'\na = gen(max_tokens=5)\n'!'\nb = gen(max_tokens=1)").out
    assert "prompt characters 14 · shared 8 · to compute 6" in out  # of "1234", and of "1234xxxxx!"
    assert notebook.names["mock"].calls == []


def test_a_dry_run_from_a_run(tiny: Notebook) -> None:
    tiny.good("%%sgl r -t 0\n'hello '\na = gen(max_tokens=3)")
    out = tiny.good("%%sgl --from r --dry-run --plain\n' and '\nb = gen(max_tokens=2)").out
    assert "prompt tokens 14 ·" in out
    assert "no view" in tiny.usage_error("%%sgl --dry-run --show tre\na = gen()")
    assert tiny.good("%%sgl --dry-run -q\n'a'\nb = gen()").out == ""


def test_which_lines_depend_on_answers() -> None:
    source = (
        "user('q')\na = gen()\nb: int = gen()\nc = 3\nd = a.strip()\nif c > 2:\n    'x'\nwhile d:\n    break\n"
        "for x in fork(['p']):\n    e = select(['y'])\nz = [w for w in e if w]\nt = 'u' if b else 'v'\n"
        "match a:\n    case 'k':\n        pass\n"
    )
    assert [(g.line, g.names) for g in guesses(source)] == [(8, ("d",)), (12, ("w",)), (13, ("b",)), (14, ("a",))]
    assert guesses("if (:") == []


# ----------------------------------------------------------------------------------------------- --trace, --show


def test_a_trace_is_written_and_private(tiny: Notebook, tmp_path: Path) -> None:
    path = tmp_path / "my trace.json"
    tiny.good("%%sgl -t 0\n'before'\na = gen(max_tokens=1)")
    tiny.good(f"%%sgl r -t 0 --trace '{path}'{JUDGE}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = json.loads(path.read_text())
    assert_is_a_trace(found)
    names = {entry["name"] for entry in found["traceEvents"]}
    assert names >= {"gen verdict", "gen year", "score d", "queued", "decode", "jump"}
    runs = [e["args"]["name"] for e in found["traceEvents"] if e["name"] == "process_name"]
    assert len(runs) == 2, "this run and its engine only"
    assert runs[0] == "run r"
    assert runs[1].startswith("engine tiny-")


def test_a_trace_of_a_cell_that_fails_and_of_the_mock(notebook: Notebook, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert not notebook.run(f"%%sgl --trace {path}\na = gen()\n1 / 0").ok
    assert_is_a_trace(json.loads(path.read_text()))


def test_a_trace_of_a_run_in_the_background_is_written_when_it_is_over(notebook: Notebook, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    gate = threading.Event()
    notebook.names["gate"] = gate
    handle = notebook.good(f"%%sgl -b --trace {path}\n_ = gate.wait(30)\n'x'\na = gen()").value
    assert not path.exists()
    gate.set()
    handle.wait(30)
    until = time.monotonic() + 10
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    found = json.loads(path.read_text())
    assert_is_a_trace(found)
    assert "gen a" in {entry["name"] for entry in found["traceEvents"]}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_trace_that_cannot_be_written_is_told_before_anything_runs(notebook: Notebook, tmp_path: Path) -> None:
    assert "there is no folder" in notebook.usage_error(f"%%sgl --trace {tmp_path}/none/x.json\na = gen()")
    assert "is a folder" in notebook.usage_error(f"%%sgl --trace {tmp_path}\na = gen()")
    assert notebook.names["mock"].calls == []


def test_timeline_and_automata_under_a_cell(tiny: Notebook, engine: Any) -> None:
    before = engine.log.seq
    out = tiny.good(f"%%sgl r -t 0 --show timeline,fsm --plain{JUDGE}").out
    assert "timeline: " in out
    assert "branch b" in out
    assert "year: compressed automaton of regex year: [1-5]{2}!" in out
    graphs = [e.body for e in engine.log.since(before) if isinstance(e.body, ConstraintGraph)]
    assert len(graphs) == 1, "one for both branches"
    seq = engine.log.seq
    tiny.good(f"%%sgl r -t 0 --show numbers{JUDGE}")
    assert not [e for e in engine.log.since(seq) if isinstance(e.body, ConstraintGraph)], "only for who asks"


def test_a_cell_without_a_cache_makes_no_request_for_what_branches_share(tiny: Notebook, engine: Any) -> None:
    seq = engine.log.seq
    tiny.good(f"%%sgl r -t 0 --cache off{JUDGE}")
    calls = [e.body.call_id for e in engine.log.since(seq) if isinstance(e.body, Queued)]
    assert calls
    assert not [call for call in calls if call.endswith("p")]
    assert isinstance(tiny.names["r"], CellRun)
