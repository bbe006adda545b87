"""`--trace FILE`: what happened while a cell ran, as a file for ui.perfetto.dev.

Not here: the format (`nbsglang/viz/perfetto.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nbsglang.calls import Backend
from nbsglang.events import Event, EventLog
from nbsglang.lang.cell_run import CellRun
from nbsglang.notebook.files import write_private
from nbsglang.viz.perfetto import trace


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


def write_trace(path: Path, events: Iterable[Event]) -> None:
    """Write these events as a trace, readable by its user only."""
    write_private(path, json.dumps(trace(events), ensure_ascii=False, separators=(",", ":")))
