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
    if found is not None:  # first, so that both need not fit
        del state.models[name]
        found.backend.close()
        del found
    began = time.monotonic()
    with progress(state.shell, current.event_log(), f"loading {name}", quiet=quiet) as line:
        try:
            backend = load_backend(source, **(options or {}), **({"name": name} if name != model else {}))
        except (errors.UsageError, errors.ModelError) as error:
            raise UsageError(f"{model} cannot be loaded: {error}") from None
        line.end(f"{name} is loaded: {described(backend)}, {time.monotonic() - began:.1f} s")
    loaded = state.models[name] = Loaded(backend, source, dict(options or {}))
    if not _has_default():
        current.set_default_backend(backend)
    return loaded


def free(state: State, names: list[str]) -> str:
    """Close the engines of these names and forget errors that hold their tensors; what that gave back."""
    before, on_device = process_bytes(), device_bytes()
    for name in names:
        state.models.pop(name).backend.close()
    forget_errors(state.shell)
    gc.collect()
    parts = [f"process {shown_bytes(before)} → {shown_bytes(process_bytes())}"]
    if on_device is not None:
        parts.append(f"GPU {shown_bytes(on_device)} → {shown_bytes(device_bytes() or 0)}")
    what = f"{', '.join(names)} closed" if names else "no model is loaded"
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
