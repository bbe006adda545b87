"""From what the user names to a module and its tokenizer: the default model, a folder, a GGUF file, a hub id,
or a live module.

Weights are read from safetensors and GGUF only, and no code out of a model's repository is ever run.

Not here: where the files are (`locate.py`), and whether the architecture can be served (`model.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from nbsglang.engine.convert import plain_tokenizer, quiet
from nbsglang.engine.fetch import smollm2
from nbsglang.engine.locate import DEFAULT, INDEX, WEIGHTS, locate, read_json
from nbsglang.engine.store import Progress, no_progress
from nbsglang.errors import ModelError, ModelNotFound, ModelRefused, UsageError


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
    path, name = locate(str(model), progress, allow_pickle)
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


# ------------------------------------------------------------------------------------------- the loading


def _check_config(path: Path, name: str) -> None:
    """Refuse a model that brings its own code, unless transformers has code of its own for it.

    Refuse as well one whose config leads to other weight files than those that `locate` has looked at.
    """
    if path.is_file():  # GGUF holds no code
        return
    config = read_json(path / "config.json")
    # transformers obeys both: the second can hide the first behind another name.
    if leading := [key for key in ("transformers_weights", "attribute_map") if config.get(key)]:
        raise ModelRefused(
            f"the config.json of {name} sets {leading[0]}, which can lead to weights that are pickled; nbsglang reads "
            f"{WEIGHTS}, or what {INDEX} names. Remove it if the weights are there"
        )
    if "auto_map" in config and config.get("model_type") not in CONFIG_MAPPING:
        raise ModelRefused(_foreign(name, f"its config.json names code in auto_map ({config['auto_map']})"))


def _foreign(name: str, why: str) -> str:
    return (
        f"{name} runs only with Python code out of its own repository: {why}. nbsglang never runs such code. "
        "If you trust it, load the module yourself and give it: Engine(model=module, tokenizer=tokenizer)"
    )


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
        options["use_safetensors"] = not (allow_pickle and not {INDEX, WEIGHTS} & {p.name for p in path.iterdir()})
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
