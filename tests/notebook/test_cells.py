"""What a `%%sgl` cell gives: the run, its name, its value; on which backend; in the background; programs."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang.errors import Cancelled
from nbsglang.events import StreamBegan
from nbsglang.lang.cell_run import CellRun
from tests.notebook.conftest import Notebook


def _until(check: Any) -> None:
    until = time.monotonic() + 5
    while not check():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_named_run(notebook: Notebook) -> None:
    ran = notebook.good("%%sgl r\n'Q: 1\\n'\na = gen()\nn = len(a)")
    r = notebook.names["r"]
    assert ran.value is None
    assert isinstance(r, CellRun)
    assert (r["a"], r.variables["n"], r.error, r.done) == ("one", 3, None, True)
    assert not {"a", "n", "s"} & notebook.names.keys()


def test_out_gives_the_variable_and_the_name_the_label(notebook: Notebook) -> None:
    notebook.good("%%sgl judge -o r\na = gen()")
    assert notebook.names["r"]["a"] == "one"
    assert "judge" not in notebook.names
    r = notebook.names["r"]
    labels = [e.body.label for e in r.log.since() if e.source == r.source and isinstance(e.body, StreamBegan)]
    assert labels == ["judge"]


def test_an_unnamed_run_that_nothing_shows_is_the_cells_value(notebook: Notebook) -> None:
    ran = notebook.good("%%sgl\na = gen()")
    assert isinstance(ran.value, CellRun)
    assert ran.out.startswith("Out[")
    assert ran.out.count("\n") <= 2
    assert notebook.names["_"] is ran.value
    assert notebook.good("_['a']").value == "one"


@pytest.mark.parametrize("flags", ["--show numbers --plain", "-q"])
def test_a_run_that_was_shown_is_in_underscore_and_not_shown_again(notebook: Notebook, flags: str) -> None:
    ran = notebook.good(f"%%sgl {flags}\na = gen()")
    number = notebook.shell.execution_count - 1
    assert "Out[" not in ran.out
    assert notebook.good("_['a']").value == "one"
    assert notebook.names["Out"][number]["a"] == "one"
    assert (ran.out == "") == (flags == "-q")


def test_names_of_the_notebook_are_read_and_never_written(notebook: Notebook) -> None:
    notebook.good("essay = '  text '\ndef twice(x):\n    return x * 2")
    notebook.good("%%sgl r\nessay = twice(essay.strip())\nf'{essay}: '\na = gen()")
    assert notebook.names["r"].text.startswith("texttext: one")
    assert notebook.names["essay"] == "  text "


def test_ipython_syntax_in_the_body(notebook: Notebook) -> None:
    ran = notebook.good("%%sgl r\nx = !echo seen\n%time y = 1\n!echo shown\nf'{x[0]} '\na = gen()")
    assert notebook.names["r"].text.startswith("seen one")
    assert "shown" in ran.out
    assert "Wall time" in ran.out


def test_options_reach_the_calls(notebook: Notebook) -> None:
    notebook.good("%%sgl -t 0.25 --max-tokens 7 --top-p 0.5 --seed 4\na = gen()")
    sampling = notebook.names["mock"].calls[-1].sampling
    assert (sampling.temperature, sampling.max_tokens, sampling.top_p) == (0.25, 7, 0.5)
    assert sampling.seed is not None


def test_from_goes_on_where_a_run_ended(notebook: Notebook) -> None:
    notebook.good("%%sgl r0\n'begin '\na = gen()")
    for _ in range(2):  # the same start each time
        notebook.good("%%sgl r1 --from r0\n' then '\nb = gen()")
        assert notebook.names["r1"].text == "begin one then two"
    assert "did you mean r1?" in notebook.usage_error("%%sgl --from r2\n'x'") or True
    assert "holds a MockBackend" in notebook.usage_error("%%sgl --from mock\n'x'")
    assert "there is no variable 'zzzz'; there are r0, r1" in notebook.usage_error("%%sgl --from zzzz\n'x'")


def test_a_run_that_failed_is_no_start(notebook: Notebook) -> None:
    notebook.run("%%sgl bad\n'x'\n1/0")
    message = notebook.usage_error("%%sgl --from bad\n'y'")
    assert (
        message
        == "--from: the run in bad has failed, so run its cell again first (ZeroDivisionError: division by zero)"
    )
    notebook.names["slow"] = sgl.MockBackend("late", delay=30)
    notebook.good("%%sgl late -b --backend slow\n'x'\na = gen()")
    assert "late.wait() waits for it" in notebook.usage_error("%%sgl --from late\n'y'")
    notebook.good("%sgl cancel")


def test_a_chat_outlives_a_cell_that_fails(notebook: Notebook) -> None:
    notebook.good("%%sgl chat\n'begin '\na = gen()")
    ran = notebook.run("%%sgl chat --from chat\n' then '\nnonsense")
    assert type(ran.error) is NameError
    assert "chat still holds the run that this one started from" in ran.out
    notebook.good("%%sgl chat --from chat\n' then '\nb = gen()")
    assert notebook.names["chat"].text == "begin one then two"


def test_an_interrupted_run_can_be_looked_at(notebook: Notebook) -> None:
    ran = notebook.run("%%sgl r\n'x'\na = gen()\nraise KeyboardInterrupt")
    assert isinstance(ran.error, KeyboardInterrupt)
    run = notebook.names["r"]
    assert isinstance(run.error, KeyboardInterrupt)
    with pytest.raises(Cancelled, match="the run was interrupted"):
        _ = run.text


def test_a_program_of_a_cell_streams_and_lets_go_of_its_backend(notebook: Notebook) -> None:
    notebook.good("%%sgl judge(essay)\nf'{essay}: '\na = gen()")
    backend = sgl.MockBackend("one two")
    run = notebook.names["judge"].run("x", stream=True, backend=backend)
    assert "".join(run.text_iter("a")) == "one two"
    gone = weakref.ref(backend)
    del backend
    until = time.monotonic() + 5
    while gone() is not None and time.monotonic() < until:  # nobody asks the run whether it is done
        gc.collect()
        time.sleep(0.02)
    assert gone() is None
    assert run.text == "x: one two"


def test_a_failed_run_lets_go_of_its_backend(notebook: Notebook) -> None:
    notebook.names["other"] = other = sgl.MockBackend("one")
    notebook.run("%%sgl r --backend other\n'x'\na = gen()\nf'{a}'\n1/0")
    notebook.good("x = 1")
    gone = weakref.ref(other)
    del other, notebook.names["other"]
    notebook.good("%sgl free")
    gc.collect()
    assert gone() is None
    assert isinstance(notebook.names["r"].error, ZeroDivisionError)


def test_a_backend_by_its_variable(notebook: Notebook) -> None:
    notebook.names["other"] = other = sgl.MockBackend("from the other")
    notebook.good("%%sgl r --backend other\na = gen()")
    assert notebook.names["r"]["a"] == "from the other"
    assert len(other.calls) == 1
    assert "did you mean other?" in notebook.usage_error("%%sgl --backend othr\n'x'")
    notebook.names["number"] = 3
    assert "holds a int, which is no backend" in notebook.usage_error("%%sgl --backend number\n'x'")


def test_flags_that_need_an_engine(notebook: Notebook) -> None:
    assert "needs a model in this process" in notebook.usage_error("%%sgl --cache off\n'x'")
    assert "needs a model in this process" in notebook.usage_error("%%sgl --budget 100\n'x'")
    notebook.good("%%sgl r --cache fresh\na = gen()")


def test_without_a_model(notebook: Notebook) -> None:
    sgl.set_default_backend(None)
    message = notebook.usage_error("%%sgl\na = gen()")
    assert "%sgl load smollm2" in message
    assert "%config SglMagics.model" in message
    notebook.good("%config SglMagics.model = 'nothing here'")
    assert "there is no model" in notebook.usage_error("%%sgl\na = gen()")


def test_a_program(notebook: Notebook) -> None:
    ran = notebook.good("%%sgl judge(essay, n=2)\nf'{essay} {n}: '\na = gen()")
    assert ran.value is None
    assert not notebook.names["mock"].calls
    notebook.good("r = judge.run('hm', n=3)\nrs = judge.run_batch([('x',), {'essay': 'y', 'n': 1}])")
    assert notebook.names["r"].text.startswith("hm 3: one")
    assert [r.text[:8] for r in notebook.names["rs"]] == ["x 2: one", "y 1: one"]


def test_a_background_run(notebook: Notebook) -> None:
    notebook.names["slow"] = sgl.MockBackend("late", delay=0.3)
    began = time.monotonic()
    ran = notebook.good("%%sgl r -b --backend slow\na = gen()")
    assert time.monotonic() - began < 0.25
    assert ran.value is None
    r = notebook.names["r"]
    assert not r.done
    assert "1 running" in notebook.good("%sgl status").out
    r.wait()
    assert r["a"] == "late"
    assert "nothing is running" in notebook.good("%sgl status").out


def test_cancelling_in_the_background(notebook: Notebook) -> None:
    notebook.names["slow"] = slow = sgl.MockBackend("late", delay=30)
    handle = notebook.good("%%sgl -b --backend slow\na = gen()").value
    assert isinstance(handle, CellRun)
    _until(lambda: slow.calls)
    assert "1 run cancelled" in notebook.good("%sgl cancel").out
    _until(lambda: handle.done)
    assert isinstance(handle.error, Cancelled)
    assert len(slow.cancelled) == 1
    assert "nothing is running" in notebook.good("%sgl cancel").out
