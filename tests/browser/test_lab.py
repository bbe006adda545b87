"""The live views in a real JupyterLab with a real Chromium: shown while a cell runs, cancelled, interrupted, restarted,
opened again; `web/test/lab.mjs` does it, here is what must come of it. `make test-lab` runs it, `make test` does not.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.viz.front import browser, built_folder, node

ROOT = Path(__file__).parents[2]
CELLS = (
    """%load_ext nbsglang
import nbsglang as sgl
from nbsglang.engine.engine import Engine
from tests.tiny import byte_tokenizer, tiny_model
tiny = Engine(tiny_model(), tokenizer=byte_tokenizer(), kv_tokens=3000)
slow = sgl.MockBackend("late", delay=60)
sgl.set_default_backend(tiny)""",
    """%%sgl r -t 0
'Essay: the sea is wide. '
for k in fork(3):
    f'Aspect {k}: '
    v = gen(max_tokens=300, ignore_eos=True)""",
    """%%sgl s --backend slow --show streams
for k in fork(2):
    'x'
    v = gen()
v[0].strip()""",
    "print('still', 1 + 1)",
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a JupyterLab with the notebook."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in CELLS], metadata={"kernelspec": kernel})
    nbformat.write(notebook, tmp_path / "lab.ipynb")
    options = [
        f"--port={port}",
        "--port-retries=0",
        "--no-browser",
        "--allow-root",
        "--ServerApp.disable_check_xsrf=True",
    ]
    options += ["--IdentityProvider.token=", f"--ServerApp.root_dir={tmp_path}", "--LabApp.news_url="]
    paths = {
        name: str(tmp_path / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTERLAB_SETTINGS_DIR")
    }
    environment = os.environ | paths | {"PYTHONPATH": str(ROOT), "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "spaces")}
    command = [sys.executable, "-m", "jupyterlab", *options]
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{url}/api", timeout=2).close()
                break
            except OSError:
                assert server.poll() is None, (tmp_path / "lab.log").read_text()
                time.sleep(0.25)
        yield url
    finally:
        server.terminate()
        server.wait(20)


@pytest.mark.browser
def test_the_views_in_jupyterlab(lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBSGLANG_CHROMIUM", browser())
    done = node("test/lab.mjs", lab, folder=built_folder())
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert not seen["errors"]
    assert seen["live"]["views"] == 1
    assert all(part in seen["live"]["text"] for part in ("Streams", "Radix tree", "Aspect"))
    assert seen["light"]["ratio"] > 7
    assert seen["light"]["painted"]
    # a button's way is page, server, kernel and back; with three times the room for a busy machine
    for took in (seen["cancel_ms"], seen["interrupt_ms"]):
        assert statistics.median(took) < 3 * 500, took
        assert max(took) < 3 * 1500, took
    assert "still 2" in seen["after"]
    for text in (seen["restarted"]["text"], seen["reopened"]["text"]):
        assert "Error" not in text
        assert "Aspect" in text or seen["reopened"]["images"]
