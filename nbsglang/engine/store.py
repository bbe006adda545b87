"""The folder where nbsglang keeps models between runs: its place, its lock, and what is whole in it.

A kept folder is filled under another name, gets a manifest, and is renamed into place, so that it is there
whole or not at all. Everything is private to its user.

Not here: what is kept (`fetch.py`, `convert.py`), and the KV cache (`pool.py`, `radix.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

Progress = Callable[[str, int, int], None]
"""Told what is being done, how far it is, and of how much (0: unknown): the fields of `events.Loading`."""

FORMAT = 1  # of the kept folders; one with another number is made anew
MANIFEST = "manifest.json"
_SCRATCH = "scratch-"
_N_HASHED = 8 << 20  # bytes of each file that `intact` reads: all of a small file, the head of a large one


def no_progress(what: str, done: int, total: int) -> None:
    """A `Progress` that tells nobody."""


def cache_folder() -> Path:
    """`NBSGLANG_CACHE` if it is set, else the folder `nbsglang` in the platform's place for caches."""
    if given := os.environ.get("NBSGLANG_CACHE"):
        return Path(given).expanduser().absolute()
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "nbsglang"
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    default = home / "AppData" / "Local" if sys.platform == "win32" else home / ".cache"
    base = Path(named) if named and Path(named).is_absolute() else default
    return base / "nbsglang"


def sha256_of(path: Path) -> str:
    """The file's sha256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def exclusive(root: Path, progress: Progress = no_progress) -> Iterator[None]:
    """Hold `root` alone among all processes; makes the folder, and clears what a killed process left.

    Readers need no lock. The system releases it when its holder dies.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(root / ".lock", mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress("waiting for another process that prepares a model", 0, 0)
        lock.acquire()
    try:
        for leftover in root.glob(_SCRATCH + "*"):  # only a holder of the lock makes these
            shutil.rmtree(leftover, ignore_errors=True)
        yield
    finally:
        lock.release()


@contextmanager
def scratch(root: Path) -> Iterator[Path]:
    """An empty private folder in `root`, gone afterwards. Only inside `exclusive`."""
    folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=root))  # mode 0700
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(root: Path, target: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write files into an empty folder, and put that folder in the place of `target`.

    `target` lies in `root`. Only inside `exclusive`.
    """
    with scratch(root) as folder:
        fresh, old = folder / "new", folder / "old"
        fresh.mkdir(mode=0o700)
        fill(fresh)
        _write_manifest(fresh)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        if target.exists():
            target.rename(old)
        fresh.rename(target)


def intact(folder: Path) -> bool:
    """Whether `publish` made this folder and its files are as they were.

    Reads little: sizes of all files, whole small files, the head of large ones.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
        return manifest["format"] == FORMAT and all(_stamp(folder / name) == stamp for name, stamp in files.items())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # missing, cut short, or something else
        return False


def _write_manifest(folder: Path) -> None:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    manifest = folder / MANIFEST
    text = json.dumps({"format": FORMAT, "files": {path.name: _stamp(path) for path in files}}, indent=1)
    manifest.write_text(text, encoding="utf-8")
    for path in [*files, manifest]:
        path.chmod(0o600)
        with path.open("rb+") as file:  # on the disk before the rename is, also when the power fails
            os.fsync(file.fileno())


def _stamp(path: Path) -> list[int | str]:
    with path.open("rb") as file:
        head = file.read(_N_HASHED)
    return [path.stat().st_size, hashlib.sha256(head).hexdigest()]
