"""The verbs of `%sgl`: models are loaded, looked at and given back."""

from __future__ import annotations

import gc
import re
import sys
import threading
import time
import weakref
from typing import Any

import pytest
import torch

import nbsglang as sgl
from nbsglang import current
from tests.notebook.conftest import Notebook
from tests.tiny import byte_tokenizer, tiny_model

LOAD = "%sgl load smollm2 --kv-tokens 600 --chunk-tokens 64"
CELL = "'The capital of France is'\na = gen(max_tokens=4)"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("lod x", "did you mean load?"),
        ("statsu", "did you mean status?"),
        ("zzz", "there are load, status"),
        ("load", "required: MODEL"),
        ("load a b", "cannot use 'b'"),
        ("load x --dtpye float32", "did you mean --dtype?"),
        ("load x --kv-tokens many", "invalid int value"),
        ("load x --policy first", "invalid choice"),
        ("status now", "cannot use 'now'"),
        ("status -v", "has no flag -v: it takes none"),
        ("tree", "needs a model in this process"),
        ("tree nothing", "there is no backend 'nothing'"),
        ("reset nothing", "there is no backend 'nothing'"),
        ("free nothing", "there is no backend 'nothing'"),
        ("load no/such/model", "cannot be loaded: there is no model"),
    ],
)
def test_lines_that_mean_nothing(notebook: Notebook, line: str, part: str) -> None:
    assert part in notebook.usage_error(f"%sgl {line}")


def test_a_variable_that_is_no_model_is_named(notebook: Notebook) -> None:
    assert "mock holds a MockBackend, no module" in notebook.usage_error("%sgl load mock")
    assert "used with %%sgl --backend mock" in notebook.usage_error("%%sgl -m mock\n'x'")
    notebook.names["path"] = "/nowhere"
    assert "The variable path holds a str" in notebook.usage_error("%sgl load path")
    notebook.names["module"] = tiny_model("llama")
    assert "The variable" not in notebook.usage_error("%sgl load module --tokenizer nowhere")


def test_verbs_without_a_model(notebook: Notebook) -> None:
    sgl.set_default_backend(None)
    assert "none is loaded: %sgl load smollm2" in notebook.good("%sgl status").out
    assert "no model is loaded" in notebook.good("%sgl free").out
    assert "%sgl load smollm2" in notebook.usage_error("%sgl reset")
    assert "%sgl load smollm2" in notebook.usage_error("%sgl tree")


def test_status_of_the_mock(notebook: Notebook) -> None:
    notebook.good("%%sgl\na = gen()")
    shown = notebook.good("%sgl status").out
    assert re.search(r"model +default \(default\): MockBackend", shown)
    assert re.search(r"calls +1\n", shown)
    assert "the cache is empty" in notebook.good("%sgl reset").out


def test_doctor_gives_facts_and_remedies(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    lines = notebook.good("%sgl doctor").out.splitlines()
    assert any(line.startswith("✓ python") for line in lines)
    assert any(line.startswith("! graphviz") and "→" in line for line in lines)
    assert any("a terminal or a script" in line for line in lines)
    assert all(line[0] in "✓!" for line in lines)
    assert all(("→" in line) == (line[0] == "!") for line in lines)


@pytest.mark.smollm2
def test_from_loading_to_freeing(notebook: Notebook) -> None:
    sgl.set_default_backend(None)
    assert re.search(r"^smollm2 is loaded: cpu, float32, room for 600 cached tokens, ", notebook.good(LOAD).out)
    engine = current.default_backend()
    assert "is loaded already" in notebook.good(LOAD).out
    assert current.default_backend() is engine

    notebook.good(f"%%sgl r -t 0\n{CELL}")
    assert notebook.names["r"]["a"].startswith(" Paris")
    shown = notebook.good("%sgl status").out
    assert "smollm2 (default): cpu, float32" in shown
    assert re.search(r"pool +600 tokens: \d+ cached \(0 locked\)", shown)
    assert "Paris" in notebook.good("%sgl tree").out

    notebook.good(f"%%sgl r2 -t 0 --cache off\n{CELL}")
    assert notebook.names["r2"]["a"] == notebook.names["r"]["a"]
    assert notebook.names["r2"].stats["cached_tokens"] == 0
    notebook.good(f"%%sgl r3 -t 0 --budget 30\n{CELL}")
    assert notebook.names["r3"]["a"] == notebook.names["r"]["a"]
    assert engine.stats()["kv_cached"] > 0, "cells with an engine of their own leave the cache alone"
    notebook.good(f"%%sgl r4 -t 0\n{CELL}")
    assert notebook.names["r4"].stats["cached_tokens"] > 0
    notebook.good(f"%%sgl r5 -t 0 -m smollm2 --cache fresh\n{CELL}")
    assert notebook.names["r5"].stats["cached_tokens"] == 0

    notebook.good("%reload_ext nbsglang")
    assert current.default_backend() is engine
    assert re.search(r"the cache is empty; it held \d+ tokens", notebook.good("%sgl reset").out)
    notebook.good("x = [1]\ny = x")
    module = weakref.ref(engine.module)  # type: ignore[attr-defined]
    del engine
    assert re.search(r"^smollm2 closed; memory: process .* → ", notebook.good("%sgl free").out)
    gc.collect()
    assert module() is None, "runs, errors and the shell must not hold the model"
    assert "%sgl load smollm2" in notebook.usage_error(f"%%sgl\n{CELL}")


@pytest.fixture
def tiny(notebook: Notebook) -> Any:
    """A tiny model, loaded as `mine` from a variable."""
    notebook.names["module"] = module = tiny_model("llama")
    notebook.names["words"] = byte_tokenizer()
    notebook.good("%sgl load module --as mine --tokenizer words --kv-tokens 300")
    yield module
    notebook.run("%sgl free")


def test_freeing_without_a_name_lets_go_before_it_measures(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbsglang.notebook import models

    notebook.names["module"], notebook.names["words"] = tiny_model("llama"), byte_tokenizer()
    notebook.good("%sgl load module --tokenizer words --kv-tokens 300")
    engine = weakref.ref(current.default_backend())
    alive: list[bool] = []
    monkeypatch.setattr(models, "process_bytes", lambda: alive.append(engine() is not None) or 0)
    notebook.good("%sgl free")
    assert alive == [True, False]


def test_a_module_of_the_notebook_under_a_name(notebook: Notebook, tiny: Any) -> None:
    engine: Any = current.default_backend()
    assert engine.module is tiny
    notebook.good(f"%%sgl r --backend mine -t 0\n{CELL}")
    assert notebook.names["r"].stats["generated_tokens"] > 0
    assert "there are mine, mock" in notebook.usage_error("%%sgl --backend zzzz\n'x'")
    assert "mine closed" in notebook.good("%sgl free mine").out
    assert notebook.good("module.config").value is tiny.config


def test_an_error_in_the_engine_holds_no_tensor(notebook: Notebook, tiny: Any) -> None:
    seen: list[weakref.ref[torch.Tensor]] = []

    def fail(module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        if not broken:
            return
        activations = arguments[0] * 2
        seen.extend(map(weakref.ref, (arguments[0], activations)))
        raise RuntimeError("no more memory here")

    broken = True
    hook = tiny.model.layers[1].register_forward_pre_hook(fail)
    ran = notebook.run(f"%%sgl r\n{CELL}\na + ''")
    broken = False
    hook.remove()
    assert type(ran.error).__name__ == "ProgramError"
    assert "no more memory here" in ran.out
    assert sys.last_value is ran.error
    assert "no more memory here" in str(notebook.names["r"].error)
    del ran
    assert len(seen) == 2
    gc.collect()
    assert [ref() for ref in seen] == [None, None]
    notebook.good(f"%%sgl\n{CELL}")


def test_an_interrupt_of_the_engine_keeps_its_cache(notebook: Notebook, tiny: Any) -> None:
    notebook.good(f"%%sgl -t 0\n{CELL}")
    ran = notebook.run(f"%%sgl\n{CELL}\nraise KeyboardInterrupt")
    assert "the cache is kept" in ran.out
    notebook.good(f"%%sgl r -t 0\n{CELL}")
    assert notebook.names["r"].stats["hit_rate"] > 0.5


def test_another_cell_that_names_the_model_reuses_it(notebook: Notebook, tiny: Any) -> None:
    engine = current.default_backend()
    notebook.good(f"%%sgl -m mine\n{CELL}")
    assert current.default_backend() is engine
    notebook.good("%sgl load module --as mine --tokenizer words --kv-tokens 301")
    assert current.default_backend() is not engine
    assert current.default_backend().stats()["kv_tokens"] == 301


def test_a_model_is_not_replaced_under_a_run(notebook: Notebook, tiny: Any) -> None:
    again = "%sgl load module --as mine --tokenizer words --kv-tokens 301"
    notebook.good("%%sgl r -b\n'x'\na = gen(max_tokens=250)")
    assert "a run in the background may use it" in notebook.usage_error(again)
    assert notebook.usage_error("%sgl free").startswith("1 run in the background still uses models")
    notebook.good("%sgl cancel")
    while not notebook.names["r"].done:
        time.sleep(0.02)
    engine = weakref.ref(current.default_backend())
    alive: list[bool] = []
    notebook.names["module"].register_forward_pre_hook(lambda *_: alive.append(engine() is not None))
    notebook.good(again)
    assert alive, "loading checks the module"
    assert not any(alive), "two models may not fit"


def test_an_engine_for_one_background_cell_is_closed_after_it(notebook: Notebook, tiny: Any) -> None:
    notebook.good(f"%%sgl r -b --cache off\n{CELL}")
    notebook.names["r"].wait()
    until = time.monotonic() + 5
    while any(thread.name == "nbsglang-engine-mine-uncached" for thread in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.02)
    assert len([t for t in threading.enumerate() if t.name.startswith("nbsglang-engine")]) == 1
