"""From what the user names to a module and its tokenizer: the default model, a folder, a GGUF file, a hub id,
or a live module.

Weights are read from safetensors and GGUF only, and no code out of a model's repository is ever run.

Not here: whether the architecture can be served (`model.py`), and where models are kept (`store.py`).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError
from torch import nn
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from nbsglang.engine.convert import convert, plain_tokenizer, quiet
from nbsglang.engine.fetch import smollm2
from nbsglang.engine.store import Progress, cache_folder, no_progress, sha256_of
from nbsglang.errors import ModelError, ModelNotFound, ModelRefused, NbsglangError, UsageError

DEFAULT = "smollm2"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_INDEX, _WEIGHTS = "model.safetensors.index.json", "model.safetensors"
_PICKLED_INDEX, _PICKLED = "pytorch_model.bin.index.json", "pytorch_model.bin"
_SMALL_FILES = ["*.json", "*.jinja", "*.txt", "*.model"]  # of a repository: config, tokenizer, index of the weights
_MAX_CONVERTED = 256 << 20  # a larger GGUF file is read anew each time: its float32 copy would fill the disk


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module with its tokenizer. `owned`: we made the module and may change it; else it is the user's."""

    module: nn.Module
    tokenizer: PreTrainedTokenizerBase
    name: str
    owned: bool


def load(
    model: str | Path | nn.Module = DEFAULT,
    tokenizer: PreTrainedTokenizerBase | str | Path | None = None,
    dtype: torch.dtype | str = "auto",
    device: torch.device | str = "auto",
    progress: Progress = no_progress,
    *,
    allow_pickle: bool = False,
) -> Loaded:
    """The module, in eval mode on `device` with weights of `dtype`, and its tokenizer.

    `model` is "smollm2", a folder as `save_pretrained` makes it, a GGUF file, an id on the hub
    ("org/name"), or a module, which is taken as it is. `tokenizer` is one, or the folder of one; None
    takes the model's own. "auto" is CUDA where there is a GPU, and float32 on a CPU, bfloat16 on CUDA.
    `allow_pickle` accepts weights in pickle files, read by torch with `weights_only`.

    Raises ModelNotFound, ModelRefused, DownloadError, ModelError for other failures, and UsageError for
    arguments that do not fit together.
    """
    if isinstance(model, nn.Module):
        return _live(model, tokenizer, dtype, device)
    where = torch_device(device)
    path, name = _locate(str(model), progress, allow_pickle)
    _check_config(path, name)
    with quiet():
        words = _tokenizer(path, name) if tokenizer is None else _given_tokenizer(tokenizer)
        progress(f"loading {name}", 0, 1)
        module = _module(path, name, torch_dtype(dtype, where), where, allow_pickle)
        if tokenizer is None and path.is_file():
            words = plain_tokenizer(words, cast(Any, module).config)
        progress(f"loading {name}", 1, 1)
    return Loaded(module, words, name, owned=True)


def torch_device(device: torch.device | str) -> torch.device:
    """The device that is meant; "auto" is CUDA where there is a GPU, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise UsageError(f'device={device!r} is not one that torch knows; use "auto", "cpu" or "cuda"') from error


def torch_dtype(dtype: torch.dtype | str, device: torch.device) -> torch.dtype:
    """The dtype that is meant, also by name; "auto" is bfloat16 on CUDA, else float32."""
    if dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise UsageError(f'dtype={dtype!r} is not a floating type; use "auto", "float32", "bfloat16" or "float16"')
    return found


# ------------------------------------------------------------------------------------ where the files are


def _locate(model: str, progress: Progress, allow_pickle: bool) -> tuple[Path, str]:
    """A folder with config.json and weights, or a large GGUF file; and the model's name."""
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
    if names & {_INDEX, _WEIGHTS}:
        return path
    pickled = sorted(name for name in names if name.endswith((".bin", ".pt", ".pth", ".pkl", ".ckpt")))
    if not pickled:
        raise ModelNotFound(f"the folder {path} holds a config but no weights: {_WEIGHTS} is missing")
    if not allow_pickle:
        raise ModelRefused(
            f"the folder {path} holds only pickled weights ({', '.join(pickled[:3])}), and to read a pickle can run "
            "code. Save the model again as safetensors (module.save_pretrained), or, if you trust the file, pass "
            "allow_pickle=True"
        )
    return path


def _hub(model: str, progress: Progress, allow_pickle: bool) -> Path:
    """The folder of a repository in the hub's own cache; only the files that are needed are fetched."""
    progress(f"downloading {model}", 0, 0)
    try:
        with quiet():
            folder = Path(_snapshot(model, _SMALL_FILES))
            wanted = _weight_files(folder, _INDEX, _WEIGHTS)
            if not (folder / _INDEX).is_file() and allow_pickle:
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
    return [index, *sorted(set(_json(folder / index)["weight_map"].values()))]


# ------------------------------------------------------------------------------------------- the loading


def _check_config(path: Path, name: str) -> None:
    """Refuse a model that brings its own code, unless transformers has code of its own for it."""
    if path.is_file():  # GGUF holds no code
        return
    config = _json(path / "config.json")
    if "auto_map" in config and config.get("model_type") not in CONFIG_MAPPING:
        raise ModelRefused(_foreign(name, f"its config.json names code in auto_map ({config['auto_map']})"))


def _foreign(name: str, why: str) -> str:
    return (
        f"{name} runs only with Python code out of its own repository: {why}. nbsglang never runs such code. "
        "If you trust it, load the module yourself and give it: Engine(model=module, tokenizer=tokenizer)"
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path} does not hold a JSON object")
    return value


def _source(path: Path) -> tuple[str, dict[str, Any]]:
    """What `from_pretrained` wants to be told about a folder or a GGUF file. It never runs foreign code."""
    safe = {"trust_remote_code": False, "local_files_only": True}
    return (str(path.parent), safe | {"gguf_file": path.name}) if path.is_file() else (str(path), safe)


def _tokenizer(path: Path, name: str) -> PreTrainedTokenizerBase:
    folder, options = _source(path)
    try:
        return cast(PreTrainedTokenizerBase, AutoTokenizer.from_pretrained(folder, **options))
    except Exception as error:  # many kinds, by what is missing or broken
        if "trust_remote_code" in str(error):
            raise ModelRefused(_foreign(name, "its tokenizer is such code")) from error
        raise ModelError(f"{name} has no tokenizer that can be loaded; pass tokenizer=. ({error})") from error


def _given_tokenizer(tokenizer: PreTrainedTokenizerBase | str | Path) -> PreTrainedTokenizerBase:
    if isinstance(tokenizer, PreTrainedTokenizerBase):
        return tokenizer
    if not isinstance(tokenizer, str | Path):
        raise UsageError(
            f"tokenizer= is a {type(tokenizer).__name__}; give a tokenizer of transformers, or the folder of one"
        )
    if str(tokenizer) == DEFAULT:
        return _tokenizer(smollm2(), DEFAULT)
    path = Path(tokenizer).expanduser()
    if not path.exists():
        raise ModelNotFound(f"tokenizer={str(tokenizer)!r}: there is no such folder")
    return _tokenizer(path, str(tokenizer))


def _module(path: Path, name: str, dtype: torch.dtype, device: torch.device, allow_pickle: bool) -> nn.Module:
    folder, options = _source(path)
    if path.is_dir():
        options["use_safetensors"] = not (allow_pickle and not {_INDEX, _WEIGHTS} & {p.name for p in path.iterdir()})
    if device.type != "cpu":  # straight to the device: no second copy in the host's memory
        options["device_map"] = {"": device}
    auto: Any = AutoModelForCausalLM  # its types do not know of output_loading_info
    try:
        module, info = auto.from_pretrained(folder, dtype=dtype, output_loading_info=True, **options)
    except Exception as error:  # many kinds, by what is missing or broken
        if "trust_remote_code" in str(error):
            raise ModelRefused(_foreign(name, "transformers has no code for it")) from error
        raise ModelError(f"{name} cannot be loaded: {error}") from error
    _check_complete(name, info["missing_keys"])
    return cast(nn.Module, module.eval())


def _check_complete(name: str, missing: Iterable[str]) -> None:
    """transformers fills weights that are not in the files with random numbers and goes on; we do not."""
    lost = sorted(missing)
    if lost:
        raise ModelRefused(
            f"the files of {name} lack {len(lost)} of its weights ({', '.join(lost[:3])} ...), so its output would be "
            "noise: the download is incomplete, or it is not a causal language model"
        )


# ---------------------------------------------------------------------------------------- a live module


def _live(
    module: nn.Module,
    tokenizer: PreTrainedTokenizerBase | str | Path | None,
    dtype: torch.dtype | str,
    device: torch.device | str,
) -> Loaded:
    """The user's own module, untouched: what is asked for must be what it is."""
    first = next(module.parameters(), None)
    if first is None:
        raise UsageError("the module has no parameters; give a causal language model of transformers")
    place = torch_device(device) if device != "auto" else first.device
    if place.type != first.device.type or place.index not in (None, first.device.index):
        raise UsageError(f"the module is on {first.device}, not on {place}: module.to({str(place)!r}) moves it")
    kind = torch_dtype(dtype, first.device) if dtype != "auto" else first.dtype
    if kind != first.dtype:
        raise UsageError(f"the module is in {first.dtype}, not in {kind}: module.to({kind}) changes it")
    origin = str(getattr(module, "name_or_path", "") or "")
    words = _origin_tokenizer(origin) if tokenizer is None else _given_tokenizer(tokenizer)
    return Loaded(module, words, Path(origin).name or type(module).__name__, owned=False)


def _origin_tokenizer(origin: str) -> PreTrainedTokenizerBase:
    """The tokenizer of the place that the module came from, if that is on this machine."""
    if origin:
        try:  # a folder, or an id that is in the hub's cache
            return cast(
                PreTrainedTokenizerBase,
                AutoTokenizer.from_pretrained(origin, trust_remote_code=False, local_files_only=True),
            )
        except Exception:  # many kinds; the error below says what to do for all of them
            pass
    came = f"the place that the module came from ({origin!r}) has none on this machine" if origin else "none is known"
    raise UsageError(f"a live module needs its tokenizer, and {came}: pass tokenizer=")
