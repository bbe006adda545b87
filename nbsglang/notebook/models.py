"""Loading models for the notebook and giving their memory back.

Not here: loading itself (`nbsglang/engine`), which is reached through the session.
"""

from __future__ import annotations

import gc
import time
from typing import Any

from IPython.core.error import UsageError

from nbsglang import current, errors
from nbsglang.calls import Backend
from nbsglang.notebook.failures import forget_errors
from nbsglang.notebook.memory import device_bytes, process_bytes, shown_bytes
from nbsglang.notebook.progress import progress
from nbsglang.notebook.state import Loaded, State
from nbsglang.session import load_backend


def model_named(state: State, model: str, *, quiet: bool = False) -> Loaded:
    """The model for a cell that names it: what is loaded under this name, else from it, else it is loaded now."""
    source = _module_in(state, model)
    for name, found in state.models.items():
        if (found.model == source or (name == model and source == model)) and _is_open(found.backend):
            return found
    return load_model(state, model, quiet=quiet)


def load_model(
    state: State, model: str, name: str = "", *, options: dict[str, Any] | None = None, quiet: bool = False
) -> Loaded:
    """The model under its name, loaded unless it is there with these options. Raises UsageError.

    `model` is what Engine takes, or a variable that holds a module. The first one becomes the default backend.
    """
    name = name or model
    source: Any = _module_in(state, model)
    found = state.models.get(name)
    if found is not None and found.model == source and (options or {}) == found.options and _is_open(found.backend):
        return found
    del found
    if name in state.models:  # first, so that both need not fit
        _give_up(state, name)
    began = time.monotonic()
    with progress(state.shell, current.event_log(), f"loading {name}", quiet=quiet) as line:
        try:
            backend = load_backend(source, **(options or {}), **({"name": name} if name != model else {}))
        except (errors.UsageError, errors.ModelError) as error:
            why = str(error).removeprefix(f"{model} cannot be loaded: ")
            raise UsageError(f"{model} cannot be loaded: {why}{_about_variable(state, model)}") from None
        except ImportError as error:
            raise UsageError(f"{model} cannot be loaded: {error}; `%sgl doctor` tells what is missing") from None
        line.end(f"{name} is loaded: {described(backend)}, {time.monotonic() - began:.1f} s")
    loaded = state.models[name] = Loaded(backend, source, dict(options or {}))
    if not _has_default():
        current.set_default_backend(backend)
    return loaded


def memory_now() -> tuple[int, int | None]:
    """Bytes of the process and on the GPU; None where nothing uses one."""
    return process_bytes(), device_bytes()


def free(state: State, names: list[str], closed: list[str], before: tuple[int, int | None]) -> str:
    """Close the engines of these names, forget errors that hold their tensors; what that has given back.

    `closed` are the names of engines that were closed already.
    """
    for name in names:
        state.models.pop(name).backend.close()
    forget_errors(state.shell)
    gc.collect()
    now = memory_now()
    parts = [f"process {shown_bytes(before[0])} → {shown_bytes(now[0])}"]
    if before[1] is not None:
        parts.append(f"GPU {shown_bytes(before[1])} → {shown_bytes(now[1] or 0)}")
    what = f"{', '.join([*names, *closed])} closed" if names or closed else "no model is loaded"
    return f"{what}; memory: {', '.join(parts)}"


def described(backend: Backend) -> str:
    """Where a backend runs and what it holds, in a few words."""
    module = getattr(backend, "module", None)
    if module is None:
        return type(backend).__name__
    first = next(module.parameters())
    kind = str(first.dtype).removeprefix("torch.")
    return f"{first.device}, {kind}, room for {backend.stats()['kv_tokens']:,.0f} cached tokens"


def _module_in(state: State, model: str) -> object:
    """The value of a variable that is named like the model and holds a module; else the name."""
    value = state.shell.user_ns.get(model)
    return value if callable(getattr(value, "parameters", None)) else model


def _give_up(state: State, name: str) -> None:
    """Close a model whose name another one gets. Raises UsageError while a run in the background may use it."""
    if state.running() and _is_open(state.models[name].backend):
        raise UsageError(f"{name} is loaded already, and a run in the background may use it: `%sgl cancel` ends it")
    state.models.pop(name).backend.close()
    forget_errors(state.shell)
    gc.collect()  # modules are in cycles


def _about_variable(state: State, model: str) -> str:
    """What a variable of that name holds, if there is one and it was no module: it may have been meant."""
    if model not in state.shell.user_ns or _module_in(state, model) is not model:
        return ""
    value = state.shell.user_ns[model]
    use = f"; a backend is used with %%sgl --backend {model}" if callable(getattr(value, "submit", None)) else ""
    return f". The variable {model} holds a {type(value).__name__}, no module of a model{use}"


def _is_open(backend: Backend) -> bool:
    try:
        backend.stats()
    except errors.BackendClosed:
        return False
    return True


def _has_default() -> bool:
    try:
        current.default_backend()
    except errors.UsageError:
        return False
    return True
