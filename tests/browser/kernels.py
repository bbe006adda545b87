"""Kernels of older versions of ipykernel: each is a folder with that package, which stands before the installed one.

`make test` fills the folders (`python -m tests.browser.kernels`); so does a test that finds them empty.

Not here: the server that starts the kernels (`server.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.browser.server import ROOT

# What they need besides what is installed. What is tested changes between minor versions, so none floats.
PACKAGES = {"6.31": ("ipykernel==6.31.0", "nest-asyncio==1.6.0"), "7.3": ("ipykernel==7.3.0",)}
_FOLDER = Path(sys.prefix if sys.prefix != sys.base_prefix else ROOT / "build") / "kernels"  # of the environment
_DONE = "complete"  # a file that says so


def install(version: str) -> Path:
    """The folder with this version of ipykernel, filled if it is not. Raises what pip's failure is."""
    folder = _FOLDER / version
    if not _is_complete(folder, version):
        options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--upgrade", "--target", str(folder)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, *PACKAGES[version]], check=True, timeout=600)
        (folder / _DONE).write_text(" ".join(PACKAGES[version]), encoding="utf-8")
    return folder


def add_kernel(kernels: Path, version: str) -> str:
    """Let a server that looks in `kernels` find a kernel of this version. Returns its name."""
    name = f"ipykernel-{version}"
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"Python 3 (ipykernel {version})",
        "language": "python",
        "env": {"PYTHONPATH": f"{install(version)}:{ROOT}"},
    }
    (kernels / name).mkdir(parents=True, exist_ok=True)
    (kernels / name / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return name


def _is_complete(folder: Path, version: str) -> bool:
    done = folder / _DONE
    return done.exists() and done.read_text(encoding="utf-8") == " ".join(PACKAGES[version])


if __name__ == "__main__":
    for each in PACKAGES:
        install(each)
