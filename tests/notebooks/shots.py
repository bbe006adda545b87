"""Pictures of a notebook in JupyterLab, light and dark: a tool for who changes what cells look like, no test.

    python -m tests.notebooks.shots notebooks/01_quickstart.ipynb --out FOLDER

Runs all cells of a copy of the notebook in Chromium and saves one picture for each screenful. It needs what
`make lab` installs, and playwright (`pip install playwright`) with a Chromium of the system's.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
WIDTH, HEIGHT = 1200, 1400  # of a picture
TOP = 90  # pixels of Lab's own above the notebook
PLUGINS = Path("@jupyterlab")


def main() -> None:
    """Make the pictures and print where they are."""
    parser = argparse.ArgumentParser(description="Pictures of a notebook in JupyterLab.")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--out", type=Path, default=Path("shots"))
    parser.add_argument("--themes", nargs="*", choices=THEMES, default=list(THEMES))
    parser.add_argument("--as-saved", action="store_true", help="show the saved outputs; run nothing")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for theme in given.themes:
        with tempfile.TemporaryDirectory() as folder, lab(Path(folder), given.notebook, THEMES[theme]) as url:
            for path in pictures(url, given.out / f"{given.notebook.stem}-{theme}", given.chromium, given.as_saved):
                print(path)


@contextmanager
def lab(folder: Path, notebook: Path, theme: str) -> Iterator[str]:
    """JupyterLab with settings of its own on a copy of the notebook; the address that opens it."""
    (work := folder / "work").mkdir()
    shutil.copy(notebook, work)
    settings = folder / "settings"
    _set(settings, "apputils-extension", "themes", {"theme": theme})
    _set(settings, "apputils-extension", "notification", {"fetchNews": "false", "checkForUpdates": False})
    _set(settings, "notebook-extension", "tracker", {"windowingMode": "none"})  # all cells are in the page
    port, token = _free_port(), secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", str(work), "--no-browser", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--LabApp.user_settings_dir={settings}"]
    command += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    environment = os.environ | {"JUPYTER_TOKEN": token, "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api?token={token}", server)
            yield f"http://127.0.0.1:{port}/doc/tree/{notebook.name}?token={token}"
        finally:
            server.terminate()
            server.wait(30)


def pictures(url: str, stem: Path, chromium: str | None, as_saved: bool) -> Iterator[Path]:
    """Run all cells in a browser, and save what is to be seen from the first cell to the last."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(url)
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=60_000)
        if not as_saved:
            _run_all(page)
        scroller = page.locator(".jp-WindowedPanel-outer")
        height = int(scroller.evaluate("e => e.scrollHeight"))
        shown = HEIGHT - TOP
        for i in range(-(-height // shown)):
            scroller.evaluate("(e, top) => e.scrollTo(0, top)", i * shown)
            page.wait_for_timeout(200)
            path = stem.with_name(f"{stem.name}-{i + 1:02}.png")
            page.screenshot(path=path)
            yield path
        browser.close()


def _run_all(page: Any) -> None:
    page.locator(".jp-Notebook .jp-CodeCell").first.click()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    running = "() => [...document.querySelectorAll('.jp-InputPrompt')].some(e => e.textContent.includes('*'))"
    page.wait_for_function(running, timeout=60_000)
    page.wait_for_function(f"() => !({running})()", timeout=600_000)
    page.wait_for_timeout(1000)  # the last output is drawn after the prompt


def _set(settings: Path, extension: str, plugin: str, values: dict[str, Any]) -> None:
    path = settings / PLUGINS / extension / f"{plugin}.jupyterlab-settings"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if server.poll() is not None:
            raise SystemExit("JupyterLab ended at once: is it installed (`make lab`)?")
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit("JupyterLab does not answer")


if __name__ == "__main__":
    main()
