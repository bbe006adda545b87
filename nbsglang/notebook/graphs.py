"""Has the automata of a run's constraints in the log, for who watches them: engines log a graph only if asked.

Not here: how automata come about (`nbsglang/engine/grammar`), how they look (`nbsglang/viz/fsms.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from nbsglang.calls import Backend
from nbsglang.errors import NbsglangError
from nbsglang.events import CallBegan, Constrained, EventLog
from nbsglang.notebook.automata import constraint_in, is_cut, logged
from nbsglang.notebook.chosen import is_engine

_EVERY_S = 0.1


@contextmanager
def graphs_logged(log: EventLog, source: str, backend: Backend, *, is_on: bool) -> Iterator[None]:
    """While the block runs, each constraint of the run `source` that has an automaton gets its graph in the log."""
    if not (is_on and is_engine(backend)):
        yield
        return
    graphs = _Graphs(log, source, backend)
    over = threading.Event()

    def look() -> None:
        while not over.wait(_EVERY_S):
            graphs.look()

    thread = threading.Thread(target=look, name="nbsglang-graphs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        graphs.look()


class _Graphs:
    """What has been seen of the log, and the constraints that have their graph."""

    def __init__(self, log: EventLog, source: str, engine: Any) -> None:
        self._log = log
        self._source = source
        self._engine = engine
        self._seq = log.seq
        self._calls: set[str] = set()
        self._known: set[tuple[str, str]] = set()

    def look(self) -> None:
        """Take in what is new."""
        for event in self._log.since(self._seq):
            self._seq = event.seq
            body = event.body
            if isinstance(body, CallBegan) and event.source == self._source:
                self._calls.add(body.call_id)
            elif isinstance(body, Constrained) and body.call_id in self._calls and not is_cut(body):
                self._add(body)

    def _add(self, body: Constrained) -> None:
        key = (body.kind, body.text)
        if key not in self._known:
            self._known.add(key)
            with suppress(NbsglangError):  # a grammar has no automaton, and a closed engine has no log
                logged(self._engine, constraint_in(body))
