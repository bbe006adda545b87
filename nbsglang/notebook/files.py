"""Files that hold prompts and answers: whole or not at all, and readable by their user only.

Not here: what is in them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from IPython.core.error import UsageError


def checked_path(name: str) -> Path:
    """The path that a line names. Raises UsageError if it cannot be written, before anything is run for it."""
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{name} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} for {path.name}")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"the folder {path.parent} cannot be written to")
    return path


def write_private(path: Path, text: str) -> None:
    """Write the text, in mode 0600."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}", suffix=".part")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
