"""Loading, reloading and unloading the extension; settings, help and completion."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import nbsglang as sgl
from nbsglang import current
from tests.notebook.conftest import Notebook


def _traces(shell: InteractiveShell) -> dict[str, Any]:
    """Everything that the extension leaves in a shell."""
    manager = shell.magics_manager
    return {
        "magics": {kind: [name for name in table if name.startswith("sgl")] for kind, table in manager.magics.items()},
        "registry": [name for name in manager.registry if "Sgl" in name],
        "configurables": [c for c in shell.configurables if type(c).__name__ == "SglMagics"],
        "matchers": list(shell.Completer.custom_matchers),
        "hooks": [f for name in ("pre_run_cell", "post_run_cell") for f in shell.events.callbacks[name]],
        "config": dict(shell.config.get("SglMagics", {})),
        "threads": [thread.name for thread in threading.enumerate() if thread.name.startswith("nbsglang")],
    }


def _counts(shell: InteractiveShell) -> dict[str, int]:
    return {name: len(found) for name, found in _traces(shell).items()}


def test_loading_twice_is_once(shell: InteractiveShell) -> None:
    before = _counts(shell)
    shell.run_line_magic("load_ext", "nbsglang")
    once = _counts(shell)
    assert once["matchers"] == before["matchers"] + 1
    sgl.load_ipython_extension(shell)
    assert _counts(shell) == once


def test_reloading_twice_leaves_one_of_each_and_the_model(notebook: Notebook) -> None:
    notebook.good("%config SglMagics.show = 'none'")
    state = notebook.shell.nbsglang_state  # type: ignore[attr-defined]
    mock = notebook.names["mock"]
    once = _counts(notebook.shell)
    for _ in range(2):
        notebook.good("%reload_ext nbsglang")
    assert {**_counts(notebook.shell), "config": 0} == {**once, "config": 0}
    assert notebook.shell.nbsglang_state is state  # type: ignore[attr-defined]
    assert current.default_backend() is mock
    notebook.good("%%sgl r --show none\ns += 'x'\na = gen()")
    assert notebook.names["r"]["a"] == "one"


def test_unloading_undoes_everything(shell: InteractiveShell) -> None:
    before = _traces(shell)
    shell.run_line_magic("load_ext", "nbsglang")
    shell.run_line_magic("config", "SglMagics.seed = 3")
    shell.run_line_magic("unload_ext", "nbsglang")
    assert _traces(shell) == before
    sgl.unload_ipython_extension(shell)  # once more does no harm
    assert _traces(shell) == before


def test_settings_of_a_configuration_file(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.config.SglMagics.seed = 7
    notebook = Notebook(shell, capsys)
    notebook.good("%load_ext nbsglang")
    assert "Current: 7" in notebook.good("%config SglMagics").out
    notebook.good("%config SglMagics.seed = 8")
    notebook.good("%reload_ext nbsglang")
    assert "Current: 7" in notebook.good("%config SglMagics").out


def test_wrong_settings_are_refused(notebook: Notebook, caplog: pytest.LogCaptureFixture) -> None:
    notebook.run("%config SglMagics.show = 'strems'")
    notebook.run("%config SglMagics.temperature = -1")
    assert "did you mean streams?" in caplog.text
    assert "not be less than 0" in caplog.text
    notebook.good("%reload_ext nbsglang")
    notebook.good("%config SglMagics.temperature = 0.5")
    notebook.good("%%sgl --show none\na = gen()")
    assert notebook.names["mock"].calls[-1].sampling.temperature == 0.5


def test_a_wrong_configuration_file_is_told(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    before = _traces(shell)
    shell.config.SglMagics.temperature = -1.0
    notebook = Notebook(shell, capsys)
    assert "SglMagics is wrong" in notebook.usage_error("%load_ext nbsglang")
    shell.config.pop("SglMagics")
    assert _traces(shell) == before


def test_help_explains_every_flag_and_verb(notebook: Notebook) -> None:
    shown = notebook.good("%%sgl?").out
    for word in ("--out", "--from", "--budget", "NAME(parameters)", 'r["a"]', "%%sgl"):
        assert word in shown
    lines = notebook.good("%sgl").out
    assert lines == notebook.good("%sgl help").out
    for verb in ("load", "status", "tree", "reset", "free", "cancel", "doctor", "help"):
        assert f"%sgl {verb}" in lines
        assert f"%sgl {verb}" in notebook.good("%sgl?").out


def test_loading_leaves_torch_out() -> None:
    code = (
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance().run_cell('%load_ext nbsglang')\n"
        "assert '%%sgl' and 'nbsglang.magics' in sys.modules\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("False")


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("%%sgl --se", {"--seed"}, {"--show"}),
        ("%%sgl --seed 1 --s", {"--show"}, {"--seed"}),
        ("%%sgl ", {"--out", "--cache", "--budget"}, set()),
        ("%%sgl --cache ", {"keep", "fresh", "off"}, {"--out"}),
        ("%%sgl --show st", {"streams"}, {"tree"}),
        ("%%sgl --show streams,t", {"streams,tree"}, set()),
        ("%%sgl -m s", {"smollm2"}, set()),
        ("%%sgl --backend m", {"mock"}, set()),
        ("%%sgl --from ", {"r"}, {"mock"}),
        ("%sgl ", {"load", "doctor", "tree"}, {"--out"}),
        ("%sgl lo", {"load"}, {"doctor"}),
        ("%sgl load ", {"smollm2", "--as", "--dtype"}, set()),
        ("%sgl load smollm2 --policy ", {"prefix", "fcfs"}, {"--as"}),
        ("%sgl load smollm2 --dtype b", {"bfloat16"}, set()),
        ("x = 1\n%sgl st", {"status"}, set()),
        ("%%sgl\na = ge", {"gen", "gen_int"}, {"select"}),
        ("%%sgl r\nx = sel", {"select"}, set()),
        ("%%sgl\nfor k in fo", {"fork"}, set()),
        ("%%sgl\nwith us", {"user"}, set()),
        ("%%sgl\na = gen(max_", {"max_tokens="}, set()),
        ("%%sgl\na = gen('(',\n    sto", {"stop=", "stop_regex="}, {"seed="}),
        ("%%sgl\na = gen()\nmax_", set(), {"max_tokens="}),
        ("%%sgl\nx.ge", set(), {"gen"}),
        ("ge", set(), {"gen"}),
        ("gen(max_", set(), {"max_tokens="}),
    ],
)
def test_completion(notebook: Notebook, text: str, wanted: set[str], unwanted: set[str]) -> None:
    notebook.good("%%sgl r\n'x'")
    found = set(notebook.complete(text))
    assert wanted <= found
    assert not unwanted & found
