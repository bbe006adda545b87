"""A fresh IPython shell for each test, with the extension loaded and a scripted backend; nothing is left afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import nbsglang as sgl
from nbsglang import current


class Ran(NamedTuple):
    """What a cell did: whether it went well, its error and value, and what it printed."""

    ok: bool
    error: BaseException | None
    value: Any
    out: str
    err: str


class Notebook:
    """Runs cells one after the other in one shell."""

    def __init__(self, shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
        self.shell = shell
        self._capsys = capsys

    @property
    def names(self) -> dict[str, Any]:
        return self.shell.user_ns

    def run(self, cell: str) -> Ran:
        self._capsys.readouterr()
        result = self.shell.run_cell(cell, store_history=True)
        printed = self._capsys.readouterr()
        error = result.error_in_exec or result.error_before_exec
        return Ran(result.success, error, result.result, printed.out, printed.err)

    def good(self, cell: str) -> Ran:
        ran = self.run(cell)
        assert ran.ok, f"{ran.error!r}\n{ran.out}{ran.err}"
        return ran

    def usage_error(self, cell: str) -> str:
        """The message of a UsageError, which is shown as one line and fails the cell."""
        ran = self.run(cell)
        assert type(ran.error).__name__ == "UsageError"
        assert type(ran.error).__module__ == "IPython.core.error"
        assert ran.err == f"UsageError: {ran.error}\n"
        return str(ran.error)

    def complete(self, text: str) -> list[str]:
        from IPython.core.completer import provisionalcompleter

        self.shell.Completer.use_jedi = False
        with provisionalcompleter():
            return [match.text for match in self.shell.Completer.completions(text, len(text))]


@pytest.fixture
def shell(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    yield shell
    shell.run_cell("%unload_ext nbsglang", store_history=False)
    shell.restore_sys_module_state()
    InteractiveShell.clear_instance()
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    current.set_default_backend(None)
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("nbsglang-progress")]
    assert not left


@pytest.fixture
def notebook(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> Notebook:
    """The extension is loaded, cells show nothing, and `mock` is the default backend and a variable."""
    notebook = Notebook(shell, capsys)
    notebook.good("%load_ext nbsglang")
    notebook.good("%config SglMagics.show = 'none'")
    notebook.good("import nbsglang as sgl")
    notebook.names["mock"] = mock = sgl.MockBackend({"a": "one", "b": "two"})
    sgl.set_default_backend(mock)
    return notebook
