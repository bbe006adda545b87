"""Which backend a cell runs on: the one it names, the one it loads, or the default; and engines for one cell only.

Not here: loading and freeing as verbs (`models.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from IPython.core.error import UsageError

from nbsglang import current, errors
from nbsglang.calls import Backend
from nbsglang.events import EventLog
from nbsglang.notebook.flags import CellLine
from nbsglang.notebook.models import model_named
from nbsglang.notebook.nearest import did_you_mean
from nbsglang.notebook.state import State

_NO_BACKEND = (
    "no model is loaded: run `%sgl load smollm2` first, or let cells load one by themselves with "
    '`%config SglMagics.model = "smollm2"`'
)


def chosen_backend(state: State, line: CellLine, model: str, cleanup: ExitStack) -> Backend:
    """The backend for a cell with this line; `model` is loaded where there is none. Raises UsageError.

    What is made for this cell alone is closed by `cleanup`.
    """
    backend = _named(state, line, model)
    if line.cache == "fresh" and not line.has_own_engine:  # a new one is empty as it is
        flush(backend)
    return _temporary(backend, line, cleanup) if line.has_own_engine and not line.compare else backend


def is_engine(backend: object) -> bool:
    """Whether it is an engine in this process. One that exists has loaded its module; no other import is worth it."""
    module = sys.modules.get("nbsglang.engine.engine")
    return module is not None and isinstance(backend, module.Engine)


def log_of(backend: Backend) -> EventLog:
    """Where the events of its runs go: the log of an engine, else the default one."""
    if is_engine(backend):
        log: EventLog = backend.log  # type: ignore[attr-defined]
        return log
    return current.event_log()


def flush(backend: Backend) -> int | None:
    """Empty the cache; the number of tokens that it held, where the backend can tell."""
    if is_engine(backend):
        flush_cache: Callable[[], int] = backend.flush_cache  # type: ignore[attr-defined]
        return flush_cache()
    backend.flush()
    return None


def backend_named(state: State, name: str) -> Backend:
    """A backend by the name it was loaded under, or by the variable that holds it. Raises UsageError."""
    if name in state.models:
        return state.models[name].backend
    value = state.shell.user_ns.get(name)
    if is_backend(value):
        return value  # type: ignore[no-any-return]
    if name in state.shell.user_ns:
        raise UsageError(f"the variable {name} holds {_what(value)}, which is no backend (MockBackend, Engine ...)")
    known = [*state.models, *(n for n, v in state.shell.user_ns.items() if not n.startswith("_") and is_backend(v))]
    hint = did_you_mean(name, known, f"; there are {', '.join(known)}" if known else "; none is loaded")
    raise UsageError(f"there is no backend {name!r}{hint}")


def is_backend(value: object) -> bool:
    """Whether it can do what programs ask of a backend."""
    if isinstance(value, type):
        return False
    return all(callable(getattr(value, name, None)) for name in ("render", "submit", "cancel", "flush", "close"))


def _named(state: State, line: CellLine, model: str) -> Backend:
    if line.backend:
        return backend_named(state, line.backend)
    if line.model:
        return model_named(state, line.model, quiet=line.quiet).backend
    try:
        return current.default_backend()
    except errors.UsageError:
        if not model:
            raise UsageError(_NO_BACKEND) from None
    return model_named(state, model, quiet=line.quiet).backend


def twin(engine: Any, *, caching: bool, kv_tokens: int | None = None, name: str = "") -> Any:
    """A second engine on the module of this one, with a pool as large unless `kv_tokens` says otherwise."""
    return type(engine)(
        engine.module,
        tokenizer=engine.tokenizer,
        kv_tokens=kv_tokens or int(engine.stats()["kv_tokens"]),
        caching=caching,
        verify=False,  # the module has passed when it was loaded
        name=f"{engine.name}-{name or ('cached' if caching else 'uncached')}",
        log=engine.log,
    )


def _temporary(backend: Backend, line: CellLine, cleanup: ExitStack) -> Backend:
    """An engine on the same module, without a cache or with a small pool; the loaded one keeps its cache."""
    flag = "--budget" if line.budget is not None else "--cache off"
    need_engine(backend, flag)
    caching = line.cache != "off"
    try:
        made: Backend = twin(backend, caching=caching, kv_tokens=line.budget, name="small" if caching else "uncached")
    except MemoryError:
        raise UsageError(f"{flag}: a second KV pool of that size does not fit in memory") from None
    cleanup.callback(made.close)
    return made


def need_engine(backend: Backend, flag: str) -> None:
    """Raise UsageError if the backend is no engine in this process."""
    if not is_engine(backend):
        raise UsageError(f"{flag} makes an engine for this cell, so it needs a model in this process, not {backend!r}")


def _what(value: object) -> str:
    return f"a {type(value).__name__}"
