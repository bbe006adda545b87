"""`--trace FILE`: what happened while a cell ran, as a file for ui.perfetto.dev.

Not here: the format (`nbsglang/viz/perfetto.py`).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nbsglang.calls import Backend
from nbsglang.events import Event, EventLog
from nbsglang.lang.cell_run import CellRun
from nbsglang.notebook.files import write_private
from nbsglang.viz.perfetto import trace

_LOOK_S = 0.05


@contextmanager
def traced(run: CellRun, log: EventLog, backend: Backend, path: Path | None) -> Iterator[None]:
    """Write what happens while the block runs, also if it fails; nothing without a path."""
    began = log.seq
    try:
        yield
    finally:
        if path is not None:
            sources = {run.source, getattr(backend, "source", run.source)}
            write_trace(path, (event for event in log.since(began) if event.source in sources))


def trace_in_background(run: CellRun, log: EventLog, backend: Backend, path: Path | None) -> None:
    """The same for a run that will go on by itself: from now on, written as soon as it has ended."""
    if path is None:
        return
    with ExitStack() as entered:
        entered.enter_context(traced(run, log, backend, path))
        name = f"nbsglang-trace-{run.source}"
        threading.Thread(target=_wait, args=(run, entered.pop_all()), name=name, daemon=True).start()


def _wait(run: CellRun, traced: ExitStack) -> None:
    with traced:
        while not run.done:
            time.sleep(_LOOK_S)


def write_trace(path: Path, events: Iterable[Event]) -> None:
    """Write these events as a trace, readable by its user only."""
    write_private(path, json.dumps(trace(events), ensure_ascii=False, separators=(",", ":")))
