"""A backend and a log under one name, for running several programs with them.

`Program.run` needs no session: a backend and a log are its options. A session adds their lifetimes: it makes an engine
of a model's name, and closes what it made.

Not here: running (`lang/conduct.py`), the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from nbsglang import current
from nbsglang.calls import Backend
from nbsglang.events import EventLog
from nbsglang.lang.program import Program
from nbsglang.lang.state import ProgramState


class Session:
    """Runs programs with a backend and a log. `backend` is a backend, a model's name, or None for the default one."""

    def __init__(self, backend: Backend | str | None = None, log: EventLog | None = None) -> None:
        self._own: Backend | None = load_backend(backend) if isinstance(backend, str) else None
        self.backend: Backend = self._own or (current.default_backend() if backend is None else backend)  # type: ignore[assignment]
        self.log = log or current.event_log()

    def run(self, program: Program, *args: Any, **kwargs: Any) -> ProgramState:
        """`program.run` with this backend and log."""
        return program.run(*args, **{"backend": self.backend, "log": self.log, **kwargs})

    def run_batch(self, program: Program, items: Iterable[Any], **kwargs: Any) -> Any:
        """`program.run_batch` with this backend and log."""
        return program.run_batch(items, **{"backend": self.backend, "log": self.log, **kwargs})

    def close(self) -> None:
        """Close the backend if the session made it."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def load_backend(model: str, **options: Any) -> Backend:
    """An engine for a model; the only place from which the engine is reached, by name, so that torch stays out."""
    backend: Backend = import_module("nbsglang.engine.engine").Engine(model, **options)
    return backend


def flush_cache(backend: Backend | None = None) -> bool:
    """Let the backend (or the default one) forget what it has cached."""
    (backend or current.default_backend()).flush()
    return True


def get_server_info(backend: Backend | None = None) -> Mapping[str, float]:
    """The counters of the backend, or of the default one."""
    return (backend or current.default_backend()).stats()
