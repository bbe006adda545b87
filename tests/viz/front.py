"""What tests of the front end need: Node.js, the packages of `web/`, a browser; or a clear word that it is missing.

Where CI is set nothing is skipped: there, a skipped test would be a test that nobody misses.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

WEB = Path(__file__).parents[2] / "web"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_TIMEOUT_S = 300


def node_program() -> str:
    """The path of Node.js."""
    found = shutil.which("node")
    if found is None:
        _missing("needs Node.js")
    return found


def node(*arguments: str, folder: Path = WEB) -> subprocess.CompletedProcess[str]:
    """Run Node.js in a folder; what takes too long is ended with all that it has started."""
    command = [node_program(), *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"\nended after {_TIMEOUT_S} s"
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def built_folder() -> Path:
    """A folder with the sources of `web/` and the packages of its lock file: itself if it has them, or a copy."""
    found = _built_folder()
    if isinstance(found, str):
        _missing(found)
    return found


def browser() -> str:
    """The path of a Chromium."""
    found = os.environ.get("NBSGLANG_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        _missing("needs Chromium")
    return found


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


@functools.cache
def _built_folder() -> Path | str:
    if _has_packages(WEB):
        return WEB
    npm = shutil.which("npm")
    if npm is None:
        return "needs npm"
    copy = Path(tempfile.mkdtemp(prefix="nbsglang-web-")) / "web"
    atexit.register(shutil.rmtree, copy.parent, ignore_errors=True)
    shutil.copytree(WEB, copy, ignore=shutil.ignore_patterns("node_modules"))
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    return copy if done.returncode == 0 else f"needs the packages of web/: {done.stderr.strip()[-300:]}"


def _has_packages(folder: Path) -> bool:
    """Whether what is installed is what the lock file says."""
    installed = folder / "node_modules" / ".package-lock.json"
    if not installed.exists():
        return False
    there = _versions(installed)
    wanted = _versions(folder / "package-lock.json")
    return there.items() <= wanted.items() and "node_modules/esbuild" in there


def _versions(lock: Path) -> dict[str, str]:
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    return {name: package.get("integrity", "") for name, package in packages.items() if name}
