"""The process-wide defaults: the backend and the event log that programs use when none is named; and how often Python
switches threads while a device waits for one of ours.

The one module of nbsglang with a changing global, and the only place to look for hidden state.
"""

from __future__ import annotations

import sys
import threading

from nbsglang.calls import Backend
from nbsglang.errors import UsageError
from nbsglang.events import EventLog

_SWITCH_S = 0.0005


class _Current:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.backend: Backend | None = None
        self.log = EventLog()
        self.verbosity = 0
        self.n_hurried = 0  # threads that a device waits for
        self.switch_s = 0.0  # what Python did before


_current = _Current()


def set_default_backend(backend: Backend | None) -> None:
    """Let programs that name no backend run on this one; None forgets it."""
    with _current.lock:
        _current.backend = backend


def default_backend() -> Backend:
    """The backend for programs that name none. Raises UsageError when there is none."""
    with _current.lock:
        if _current.backend is None:
            raise UsageError(
                "no backend: pass backend=..., or call nbsglang.set_default_backend(nbsglang.Engine('smollm2')) once"
            )
        return _current.backend


def forget_backend(backend: Backend) -> None:
    """Drop the default if it is this backend; its close calls this."""
    with _current.lock:
        if _current.backend is backend:
            _current.backend = None


def event_log() -> EventLog:
    """The log that sessions and engines write to when they are given none."""
    with _current.lock:
        return _current.log


def verbosity() -> int:
    """How much programs print: from 2 on each prints its text when it ends."""
    return _current.verbosity


def set_verbosity(value: int) -> None:
    """See `verbosity`; programs set it as `nbsglang.global_config.verbosity`."""
    _current.verbosity = value


def hurry() -> None:
    """Let Python switch threads every half millisecond until `relax`, which the caller owes.

    A thread that launches hundreds of kernels gives Python's lock up at each of them. With the usual 5 ms, a cell that
    computes would hold each launch up for so long, and the device would wait.
    """
    with _current.lock:
        _current.n_hurried += 1
        if _current.n_hurried == 1:
            _current.switch_s = sys.getswitchinterval()
            sys.setswitchinterval(min(_SWITCH_S, _current.switch_s))


def relax() -> None:
    """Undo one `hurry`."""
    with _current.lock:
        _current.n_hurried -= 1
        if _current.n_hurried == 0 and sys.getswitchinterval() <= _SWITCH_S:  # else its user has set another
            sys.setswitchinterval(_current.switch_s)
