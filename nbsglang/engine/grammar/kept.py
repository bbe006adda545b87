"""A vocabulary's arrays on disk: one file for each content, private to its user, there whole or not at all.

The file is npz without pickle. Whatever is wrong with one, it is built anew: a cache is no reason to fail.

Not here: where the folder is (its user says), how the arrays are built (`vocab.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.trie import Indices, Trie

FORMAT = 1  # of the files; part of their names' hash
_MAX_BYTES = 1 << 30


def key_of(token_bytes: Sequence[bytes], special_ids: Iterable[int]) -> str:
    """A name for the content: the same for the same bytes of the same ids and the same special ids, else another."""
    lengths = np.fromiter(map(len, token_bytes), np.int64, len(token_bytes))
    special = np.array(sorted(special_ids), np.int64)
    digest = hashlib.sha256(np.array([FORMAT, len(lengths), len(special)], np.int64).tobytes())
    for data in (lengths.tobytes(), special.tobytes(), b"".join(token_bytes)):
        digest.update(data)
    return digest.hexdigest()


def load(folder: Path, key: str, n_vocab: int) -> tuple[Trie, npt.NDArray[np.uint8], Indices] | None:
    """Trie, kinds and nodes of the broken tokens as `save` wrote them; None if there are none, or no sound ones."""
    path = _path(folder, key)
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        with np.load(path, allow_pickle=False) as file:
            parts = {name: file[name] for name in (*Trie._fields, "kinds", "nodes")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    if any(part.ndim != 1 or part.dtype != (np.uint8 if name == "kinds" else np.int32) for name, part in parts.items()):
        return None
    kinds, nodes = parts.pop("kinds"), parts.pop("nodes").astype(np.intp)
    trie = Trie(**{name: part.astype(np.intp) for name, part in parts.items()})
    is_sound = (
        trie.is_sound(n_vocab)
        and len(kinds) == n_vocab
        and kinds.max(initial=0) <= 2
        and len(nodes) == np.count_nonzero(kinds == 2)
        and bool(((nodes >= 0) & (nodes < len(trie.points))).all())
    )
    return (trie, kinds, nodes) if is_sound else None


def save(folder: Path, key: str, trie: Trie, kinds: npt.NDArray[np.uint8], nodes: Indices) -> None:
    """Keep the arrays for the next time, if the folder can be written."""
    arrays = {name: part.astype(np.int32) for name, part in trie._asdict().items()}
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(suffix=".tmp", dir=folder)  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, kinds=kinds, nodes=nodes.astype(np.int32), **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, _path(folder, key))
        except BaseException:
            os.unlink(name)
            raise


def _path(folder: Path, key: str) -> Path:
    return folder / f"{key}.npz"
