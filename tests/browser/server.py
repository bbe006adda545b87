"""A Jupyter server with JupyterLab and Notebook 7, in a folder of its own, so without the settings of who runs it.

Not here: the kernels it starts (`kernels.py`), the browser (`pages.py`).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
_READY_S = 120.0
_OPTIONS = (
    "--ServerApp.port_retries=0",
    "--no-browser",
    "--allow-root",
    "--ServerApp.disable_check_xsrf=True",
    "--IdentityProvider.token=",
    "--LabApp.news_url=",
    "--LabApp.expose_app_in_browser=True",  # the pages wait for its kernels
    "--JupyterNotebookApp.expose_app_in_browser=True",
)
_QUIET = {"fetchNews": "false", "checkForUpdates": False}


class Server(NamedTuple):
    """Its address, the folder whose notebooks it opens, and where it finds kernels."""

    url: str
    folder: Path
    kernels: Path

    def end_kernel(self, name: str) -> None:
        """End the kernel of a notebook, if it has one."""
        for session in self._ask("GET", "/api/sessions"):
            if session["path"] == f"{name}.ipynb":
                self._ask("DELETE", f"/api/sessions/{session['id']}")

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(self.url + path, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")


@contextmanager
def jupyter(folder: Path) -> Iterator[Server]:
    """Start a server, and end it. Its notebooks are those of `folder / "notebooks"`."""
    (notebooks := folder / "notebooks").mkdir(parents=True)
    port = _free_port()
    places = {name: str(folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    settings = folder / "settings"
    _set(settings, "apputils-extension", "notification", _QUIET)
    places |= {"JUPYTERLAB_SETTINGS_DIR": str(settings), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "spaces")}
    places |= {"JUPYTER_RUNTIME_DIR": str(folder / "runtime"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "jupyterlab", f"--port={port}", f"--ServerApp.root_dir={notebooks}", *_OPTIONS]
    with (folder / "jupyter.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env=os.environ | places, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{url}/api", server, folder / "jupyter.log")
        yield Server(url, notebooks, folder / "jupyter_data_dir" / "kernels")
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _READY_S
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            assert server.poll() is None, log.read_text()[-3000:]
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"Jupyter does not answer: {log.read_text()[-3000:]}")


def _set(settings: Path, extension: str, plugin: str, values: dict[str, Any]) -> None:
    path = settings / "@jupyterlab" / extension / f"{plugin}.jupyterlab-settings"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
