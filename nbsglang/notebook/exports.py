"""Files of what has happened: `%sgl export` writes them, `%sgl replay` shows a log again. The suffix says which kind.

Prompts and answers are in most of them, so that only their user may read them.

Not here: what the kinds look like (`nbsglang/viz`), files of one cell (`traces.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from IPython.core.error import UsageError

from nbsglang import current, errors
from nbsglang.calls import Backend
from nbsglang.events import Event, EventLog
from nbsglang.lang.cell_run import CellRun
from nbsglang.notebook.chosen import is_engine, log_of
from nbsglang.notebook.files import checked_path, write_private
from nbsglang.notebook.nearest import did_you_mean
from nbsglang.notebook.reckoning import busiest
from nbsglang.notebook.shown import show_log
from nbsglang.notebook.state import State
from nbsglang.notebook.status import events_of, tree_of
from nbsglang.notebook.traces import write_trace
from nbsglang.viz.dot import dot_svg, tree_dot
from nbsglang.viz.export import html_page
from nbsglang.viz.icicle import icicle_svg


class Wanted(NamedTuple):
    """What is to be written: where, the log, the engine if there is one, and the run if one is named."""

    path: Path
    log: EventLog
    engine: Any
    run: CellRun | None
    redact: bool

    def events(self) -> list[Event]:
        """The events of the log; of a run, those of its time."""
        events = self.log.since(0)
        if self.run is None:
            return events
        own = [event.seq for event in events if event.source == self.run.source]
        return [event for event in events if own and own[0] <= event.seq <= own[-1]]


class Kind(NamedTuple):
    """A kind of file: what it is in words, what writes it, and whether it can be of one run alone."""

    what: str
    write: Callable[[Wanted], None]
    takes_run: bool


def export(state: State, backend: Backend | None, name: str, run_name: str, *, redact: bool) -> str:
    """Write the file of that name; what is said about it. Raises UsageError."""
    suffix = Path(name).suffix.lower()
    kind = KINDS.get(suffix)
    if kind is None:
        hint = did_you_mean(suffix, KINDS, f"; there are {', '.join(KINDS)}")
        raise UsageError(f"%sgl export does not know files that end in {suffix or 'nothing'}{hint}")
    if redact and suffix != ".jsonl":
        raise UsageError("--redact is for logs, whose names end in .jsonl")
    run = _run(state, run_name) if run_name else None
    if run is not None and not kind.takes_run:
        raise UsageError(f"a {suffix} file is of everything, not of one run")
    engine = backend if backend is not None and is_engine(backend) else None
    log = run.log if run is not None else log_of(backend) if backend is not None else current.event_log()
    wanted = Wanted(checked_path(name), log, engine, run, redact)
    if not wanted.events():
        what = f"the log has nothing of {run_name}" if run is not None else "nothing has run yet"
        raise UsageError(f"there is nothing to be written: {what}")
    kind.write(wanted)
    size = wanted.path.stat().st_size
    shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size / 1e3, 0.1):.1f} kB"
    if redact:
        return f"{name} is written: the log for `%sgl replay`, {shown}; the texts are left out"
    return f"{name} is written: {kind.what}, {shown}; it holds prompts and answers, and is readable by you alone"


def replay(state: State, name: str) -> None:
    """Show a saved log. Raises UsageError where it is none."""
    try:
        log = EventLog.load(Path(name).expanduser())
    except errors.UsageError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    if not log.seq:
        raise UsageError(f"{name} holds no events")
    show_log(state.shell, log, engine=busiest(log.since(0)) or None, title=Path(name).name)


def _run(state: State, name: str) -> CellRun:
    value = state.shell.user_ns.get(name)
    if isinstance(value, CellRun):
        return value
    runs = [k for k, v in state.shell.user_ns.items() if not k.startswith("_") and isinstance(v, CellRun)]
    hint = did_you_mean(name, runs, f"; there are {', '.join(runs)}" if runs else "")
    raise UsageError(f"there is no run {name!r}{hint}")


def _html(wanted: Wanted) -> None:
    title, engine = wanted.path.stem, wanted.engine
    events = events_of(engine) if engine is not None and engine.log is wanted.log else wanted.log.since(0)
    if wanted.run is not None:
        page = html_page(events, source=wanted.run.source, title=title)
    else:
        page = html_page(events, engine=getattr(engine, "source", None), title=title)
    write_private(wanted.path, page)


def _jsonl(wanted: Wanted) -> None:
    wanted.log.save(wanted.path, redact=wanted.redact)


def _json(wanted: Wanted) -> None:
    write_trace(wanted.path, wanted.events())


def _dot(wanted: Wanted) -> None:
    write_private(wanted.path, tree_dot(tree_of(_engine(wanted))))


def _svg(wanted: Wanted) -> None:
    view = tree_of(_engine(wanted))
    write_private(wanted.path, dot_svg(tree_dot(view)) or icicle_svg(view, view.marks))


def _engine(wanted: Wanted) -> Any:
    if wanted.engine is None:
        raise UsageError(f"a {wanted.path.suffix} file is of a radix tree, and no model is loaded in this process")
    return wanted.engine


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        ".html": Kind("a page that replays it by itself", _html, True),
        ".jsonl": Kind("the log, for `%sgl replay` and `%sgl whatif`", _jsonl, False),
        ".json": Kind("a trace for ui.perfetto.dev", _json, True),
        ".svg": Kind("a picture of the radix tree", _svg, False),
        ".dot": Kind("the radix tree for graphviz", _dot, False),
    }
)
