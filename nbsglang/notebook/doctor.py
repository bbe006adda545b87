"""What this notebook can do and what it lacks: each line a fact, with a remedy where one is needed.

Not here: what is loaded (`status.py`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import nbsglang
from nbsglang.notebook.fronts import widgets_wanted
from nbsglang.notebook.memory import free_bytes, shown_bytes
from nbsglang.notebook.shown import is_live
from nbsglang.notebook.state import State

_PACKAGES = ("ipython", "ipykernel", "ipywidgets", "anywidget", "torch", "transformers", "llguidance", "numpy")
_LEAST_FREE = 1_500_000_000  # the default model with a small pool


def report(state: State) -> str:
    """All lines as text."""
    facts = [*_versions(), *_front_end(state), *_device(), *_tools(), *_room()]
    width = max(len(what) for what, _, _ in facts)
    return "\n".join(
        f"{'✓' if not remedy else '!'} {what:{width}}  {fact}" + (f" → {remedy}" if remedy else "")
        for what, fact, remedy in facts
    )


Fact = tuple[str, str, str]  # what, fact, remedy ("" where all is well)


def _versions() -> Iterator[Fact]:
    yield "nbsglang", nbsglang.__version__, ""
    yield "python", f"{sys.version.split()[0]} on {sys.platform}", ""
    found = {name: installed(name) for name in _PACKAGES}
    missing = [name for name, number in found.items() if number is None]
    words = ", ".join(f"{name} {number}" for name, number in found.items() if number is not None)
    yield "packages", words, f"pip install {' '.join(missing)}" if missing else ""


def installed(package: str) -> str | None:
    """The version of a package; None if it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _front_end(state: State) -> Iterator[Fact]:
    if getattr(state.shell, "kernel", None) is None:
        yield "front end", "a terminal or a script: views are drawn with rich, and as plain lines in files", ""
        return
    where = next((name for variable, name in _SIGNS.items() if os.environ.get(variable)), "")
    yield "front end", f"a notebook kernel{f' of {where}' if where else ''}", ""
    yield _widgets(state)


def _widgets(state: State) -> Fact:
    missing = [name for name in ("ipywidgets", "anywidget") if installed(name) is None]
    if missing:
        words = f"{' and '.join(missing)} {'are' if missing[1:] else 'is'} missing; the views of cells are HTML"
        return "widgets", words, f"pip install {' '.join(missing)}"
    versions = f"ipywidgets {installed('ipywidgets')}, anywidget {installed('anywidget')}"
    if not widgets_wanted():
        return "widgets", f"{versions}; NBSGLANG_WIDGETS switches them off, the views of cells are HTML", ""
    if is_live(state.shell):
        return "widgets", f"{versions}; views are live", ""
    return "widgets", f"{versions}; no front end has answered yet, so the views of cells are HTML", ""


_SIGNS = {
    "VSCODE_PID": "VS Code",
    "COLAB_RELEASE_TAG": "Colab",
    "BINDER_SERVICE_HOST": "Binder",
    "KAGGLE_KERNEL_RUN_TYPE": "Kaggle",
    "JPY_SESSION_NAME": "Jupyter",
}


def _device() -> Iterator[Fact]:
    if installed("torch") is None:
        yield "device", "no torch: only saved logs, the mock and remote backends", "pip install torch"
        return
    try:
        from nbsglang.engine.load import torch_device  # brings torch, which may take seconds
    except Exception as error:  # it is there, and does not work: a library that it needs is missing, or too old
        yield "device", f"torch does not load ({error})", "pip install --force-reinstall torch transformers"
        return

    device = torch_device("auto")
    if device.type == "cpu":
        yield "device", f"CPU, {os.cpu_count()} cores: fine for models below a billion parameters", ""
        return
    yield "device", str(device), ""
    there = find_spec("flashinfer") is not None
    missing = "pip install 'nbsglang[gpu]' for faster attention"
    yield "flashinfer", "installed" if there else "not installed", "" if there else missing


def _tools() -> Iterator[Fact]:
    dot = shutil.which("dot")
    remedy = "apt-get install graphviz, for graphs of programs; trees are drawn without it"
    yield "graphviz", dot or "the program dot is missing", "" if dot else remedy


def _room() -> Iterator[Fact]:
    free = free_bytes()
    yield "memory", f"{shown_bytes(free)} free", "" if free >= _LEAST_FREE else "%sgl free, or close other notebooks"
    from nbsglang.engine.store import cache_folder

    folder = cache_folder()
    there = folder
    while not there.exists():
        there = there.parent
    writable = os.access(there, os.W_OK)
    room = shown_bytes(shutil.disk_usage(there).free)
    remedy = "" if writable else "set NBSGLANG_CACHE to a folder that can be written"
    yield "models in", f"{folder}, {room} free on the disk" + ("" if writable else ", not writable"), remedy
