"""Chromium on a server's notebooks: `web/test/lab.mjs` acts the scenarios, one browser for all of them.

Not here: what must come of them (`test_lab.py`, `test_kernels.py`).
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.server import Server
from tests.viz.front import browser, built_folder, node_program

_ANSWER_S = 300.0


class Pages:
    """See the module. The browser starts with the first scenario; one that does not answer is ended."""

    def __init__(self, server: Server, pictures: Path) -> None:
        self.server = server
        self.pictures = pictures
        self._node: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()

    def act(self, scenario: str, name: str, *, keeps: bool = False, **asked: Any) -> Any:
        """Act a scenario on a notebook. Returns what was seen. With `keeps`, page and kernel stay for another one."""
        try:
            answer = self._asked({"scenario": scenario, "notebook": name, "keeps": keeps, **asked})
        finally:
            if not keeps:
                self.server.end_kernel(name)
        (self.pictures / f"{name}-{scenario}.json").write_text(json.dumps(answer, indent=1), encoding="utf-8")
        assert "failure" not in answer, answer["failure"]
        assert not answer["errors"], answer["errors"]
        return answer["seen"]

    def leave(self, name: str) -> None:
        """Close what was kept of a notebook."""
        self.act("leave", name)

    def write(self, name: str, *cells: str, kernel: str = "python3") -> None:
        """Put a notebook with these cells in the server's folder."""
        spec = {"name": kernel, "display_name": kernel, "language": "python"}
        notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells], metadata={"kernelspec": spec})
        nbformat.write(notebook, self.path(name))

    def path(self, name: str) -> Path:
        """Where a notebook is."""
        return self.server.folder / f"{name}.ipynb"

    def close(self) -> None:
        """End the browser."""
        if self._node is not None and self._node.poll() is None:
            assert self._node.stdin is not None
            self._node.stdin.close()
            try:
                self._node.wait(10)
            except subprocess.TimeoutExpired:
                self._kill(self._node)
        self._node = None

    def _asked(self, asked: dict[str, Any]) -> dict[str, Any]:
        node = self._started()
        assert node.stdin is not None
        node.stdin.write(json.dumps(asked) + "\n")
        node.stdin.flush()
        try:
            line = self._answers.get(timeout=_ANSWER_S)
        except queue.Empty:
            self._kill(node)
            line = f"no answer in {_ANSWER_S:.0f} s"
        if not line.startswith("{"):
            return {"failure": f"{asked['scenario']}: {line or 'the browser has ended'}"}
        return dict(json.loads(line))

    def _started(self) -> subprocess.Popen[str]:
        if self._node is None or self._node.poll() is not None:
            command = [node_program(), "test/lab.mjs", self.server.url, str(self.pictures)]
            environment = os.environ | {"NBSGLANG_CHROMIUM": browser()}
            pipe = subprocess.PIPE
            self._node = subprocess.Popen(
                command, cwd=built_folder(), env=environment, stdin=pipe, stdout=pipe, text=True, start_new_session=True
            )
            self._answers = queue.Queue()
            threading.Thread(target=_read, args=(self._node, self._answers), daemon=True).start()
        return self._node

    def _kill(self, node: subprocess.Popen[str]) -> None:
        os.killpg(node.pid, signal.SIGKILL)
        node.wait()


def _read(node: subprocess.Popen[str], answers: queue.Queue[str]) -> None:
    """The lines of its output; an empty one at the end."""
    assert node.stdout is not None
    for line in node.stdout:
        answers.put(line)
    answers.put("")
