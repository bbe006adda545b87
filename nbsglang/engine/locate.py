"""Where a model's files are, by the name that the user gives: the default model, a folder, a GGUF file, a hub id.

Only files that are safe to read count: safetensors and GGUF, and pickles when they are allowed.

Not here: what is done with the files (`load.py`), and where models are kept (`store.py`).
"""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

from nbsglang.engine.convert import convert, quiet
from nbsglang.engine.fetch import smollm2
from nbsglang.engine.store import Progress, cache_folder, no_progress, sha256_of
from nbsglang.errors import ModelError, ModelNotFound, ModelRefused, NbsglangError

DEFAULT = "smollm2"
INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"
_PICKLED_INDEX, _PICKLED = "pytorch_model.bin.index.json", "pytorch_model.bin"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SMALL_FILES = ["*.json", "*.jinja", "*.txt", "*.model"]  # of a repository: config, tokenizer, index of the weights
_MAX_CONVERTED = 256 << 20  # a larger GGUF file is read anew each time: its float32 copy would fill the disk


def locate(model: str, progress: Progress = no_progress, allow_pickle: bool = False) -> tuple[Path, str]:
    """A folder with config.json and weights, or a large GGUF file; and the model's name.

    Raises ModelNotFound, ModelRefused, DownloadError or ModelError.
    """
    if model == DEFAULT:
        return smollm2(progress), DEFAULT
    path = Path(model).expanduser()
    name = path.stem if path.is_file() else path.absolute().name
    if path.is_dir():
        path = _folder(path, allow_pickle)
        return (_file(path, progress) if path.is_file() else path), name
    if path.is_file():
        return _file(path, progress), name
    if _HUB_ID.fullmatch(model) and path.suffix != ".gguf":
        return _folder(_hub(model, progress, allow_pickle), allow_pickle), model
    raise ModelNotFound(_nothing_there(model, path))


def _nothing_there(model: str, path: Path) -> str:
    parent = path.absolute().parent
    near = [DEFAULT, *_names(parent)]
    close = difflib.get_close_matches(path.name, near, n=3, cutoff=0.5)
    meant = f" Did you mean {' or '.join(repr(name) for name in close)}?" if close else ""
    return (
        f"there is no model {model!r}.{meant} It was looked for as the default model ({DEFAULT!r}), and as a folder "
        f'or a GGUF file in {parent}. Ids on the hub have the form "org/name"'
    )


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if path.is_dir() or path.suffix == ".gguf")
    except OSError:
        return []


def _file(path: Path, progress: Progress) -> Path:
    """A GGUF file, or the folder of its converted copy when it is small enough for one."""
    if path.suffix != ".gguf":
        raise ModelRefused(
            f"{path} is a file, and of single files only GGUF (.gguf) is read. For safetensors give the folder "
            "that also holds config.json and the tokenizer"
        )
    if path.stat().st_size > _MAX_CONVERTED:
        return path
    try:
        return convert(path, sha256_of(path), cache_folder(), progress)
    except NbsglangError:
        raise
    except Exception as error:  # whatever transformers makes of a broken or unknown file
        raise ModelError(f"{path} cannot be read as a GGUF model: {error}") from error


def _folder(path: Path, allow_pickle: bool) -> Path:
    """The folder, or the one GGUF file in it; refused when there are no weights that may be read."""
    names = {item.name for item in path.iterdir()}
    guffs = sorted(name for name in names if name.endswith(".gguf"))
    if "config.json" not in names and len(guffs) == 1:
        return path / guffs[0]
    if "config.json" not in names:
        what = "adapter_config.json" in names and "it holds an adapter: load its base model and apply it with peft"
        what = what or (guffs and f"name one of its files: {', '.join(guffs)}") or "config.json is missing"
        raise ModelNotFound(f"the folder {path} holds no model: {what}")
    if INDEX in names:
        _shards(path / INDEX)
    if names & {INDEX, WEIGHTS}:
        return path
    pickled = sorted(name for name in names if name.endswith((".bin", ".pt", ".pth", ".pkl", ".ckpt")))
    if not pickled:
        raise ModelNotFound(f"the folder {path} holds a config but no weights: {WEIGHTS} is missing")
    if not allow_pickle:
        raise ModelRefused(
            f"the folder {path} holds only pickled weights ({', '.join(pickled[:3])}), and to read a pickle can run "
            "code. Save the model again as safetensors (module.save_pretrained), or, if you trust the file, pass "
            "allow_pickle=True"
        )
    if _PICKLED_INDEX in names:
        _shards(path / _PICKLED_INDEX)
    return path


def _hub(model: str, progress: Progress, allow_pickle: bool) -> Path:
    """The folder of a repository in the hub's own cache; only the files that are needed are fetched."""
    progress(f"downloading {model}", 0, 0)
    try:
        with quiet():
            folder = Path(_snapshot(model, _SMALL_FILES))
            wanted = _weight_files(folder, INDEX, WEIGHTS)
            if not (folder / INDEX).is_file() and allow_pickle:
                wanted += _weight_files(folder, _PICKLED_INDEX, _PICKLED)
            return Path(_snapshot(model, wanted))
    except GatedRepoError as error:
        raise ModelNotFound(
            f"{model} asks its users to accept terms: do so on its page on the hub, then log in with `hf auth login`"
        ) from error
    except (RepositoryNotFoundError, LocalEntryNotFoundError, HfHubHTTPError, OSError, ValueError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelNotFound(
            f"{model} is neither a folder here nor in the hub's cache, and the hub did not give it ({why}). "
            "Is the id right, and the hub reachable (HF_HUB_OFFLINE unset)? "
            f"Without the hub: a folder with the model, a GGUF file, or {DEFAULT!r}"
        ) from error


def _snapshot(model: str, files: list[str]) -> str:
    # Not from subfolders: they hold the same weights for other programs.
    return snapshot_download(model, allow_patterns=files, ignore_patterns=["*/*"], etag_timeout=5)


def _weight_files(folder: Path, index: str, single: str) -> list[str]:
    if not (folder / index).is_file():
        return [single]
    return [index, *_shards(folder / index)]


def _shards(index: Path) -> list[str]:
    """The weight files that the index names: files beside it, and for an index of safetensors nothing else.

    transformers unpickles whatever does not end in .safetensors, whichever index names it.
    """
    named = read_json(index).get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(shard, str) for shard in named.values()):
        raise ModelError(f"{index} has no weight_map that says in which files the weights are")
    shards: list[str] = sorted(set(named.values()))
    for shard in shards:
        if set(shard) & set("/\\:"):
            raise ModelRefused(f"{index} names {shard!r}, which is not the plain name of a file beside it")
        if index.name == INDEX and not shard.endswith(".safetensors"):
            raise ModelRefused(
                f"{index} names {shard!r}, which would be read as a pickle, and to read a pickle can run code. "
                "Save the model again as safetensors (module.save_pretrained)"
            )
    return shards


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in the file. Raises ModelError when there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} does not hold a JSON object")
    return value
