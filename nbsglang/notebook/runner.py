"""One `%%sgl` cell from its text to its result: compiled, run under a view, bound to a name.

A cell that has a signature defines a program. Any other runs, in the foreground or behind a handle.

Not here: flags (`flags.py`), the backend (`chosen.py`), how errors look (`failures.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.display import display

from nbsglang import errors
from nbsglang.calls import Backend
from nbsglang.events import Body, CallBegan, CallEnded, EventLog
from nbsglang.lang.cell import Cell, compile_cell
from nbsglang.lang.cell_run import CellRun
from nbsglang.lang.state import ProgramState
from nbsglang.notebook.chosen import chosen_backend, is_engine, log_of, need_engine
from nbsglang.notebook.failures import shown_to_user
from nbsglang.notebook.files import checked_path
from nbsglang.notebook.flags import CellLine
from nbsglang.notebook.graphs import graphs_logged
from nbsglang.notebook.source import cell_source
from nbsglang.notebook.starts import start_named
from nbsglang.notebook.state import State
from nbsglang.notebook.traces import trace_in_background, traced

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_LOOK_S = 0.1


def run_cell(state: State, line: CellLine, line_text: str, body: str, *, model: str = "") -> CellRun | None:
    """Run the cell, or define its program. Returns the run where nothing else shows or keeps it.

    Raises UsageError for flags that make no sense, CellError for a body that cannot be compiled, and what it raises.
    """
    shell = state.shell
    source = cell_source(shell, state.raw_cell, line_text, body)
    with shown_to_user(shell, source.filename):
        cell = compile_cell(
            source.text,
            source.filename,
            name=line.name or line.out or "cell",
            parameters=line.parameters or "",
            first_line=source.first_line,
        )
        if line.parameters is not None:
            shell.user_ns[line.name] = cell.program(shell.user_ns)
            return None
        return _run(state, line, cell, model)


def _run(state: State, line: CellLine, cell: Cell, model: str) -> CellRun | None:
    start = start_named(state, line.start) if line.start else None
    trace = checked_path(line.trace) if line.trace else None
    with ExitStack() as cleanup:
        backend = chosen_backend(state, line, model, cleanup)
        if line.dry_run:
            _rehearse(state, line, cell, backend, start)
            return None
        if line.compare:
            return _compare(state, line, cell, backend, start, trace)
        run = _prepared(state, line, cell, backend, start)
        if line.background:
            _view_in_background(state.shell, run, backend, line)  # first, or it misses the beginning
            trace_in_background(run, log_of(backend), backend, trace)
            run.start_thread()
            state.running().append(run)
            _close_later(run, line, cleanup.pop_all())
            return None if line.out else run
        _execute(state, line, run, backend, start, trace)
    return _value(state.shell, run, line)


def _prepared(
    state: State, line: CellLine, cell: Cell, backend: Backend, start: CellRun | ProgramState | None
) -> CellRun:
    """The run, under its name already: also where it fails it has the error, and what came before."""
    try:
        run = cell.prepare(state.shell.user_ns, start=start, backend=backend, log=log_of(backend), **line.options)
    except errors.UsageError as error:  # it looks at the flags only
        raise UsageError(str(error)) from None
    if line.out:
        state.shell.user_ns[line.out] = run
    return run


def _execute(
    state: State,
    line: CellLine,
    run: CellRun,
    backend: Backend,
    start: CellRun | ProgramState | None,
    trace: Path | None,
) -> None:
    """Run it on this thread, under its view."""
    log = log_of(backend)
    with (
        _kept_if_it_fails(state.shell, line, start),
        _interrupts_noted(run, log, backend, line),
        traced(run, log, backend, trace),
        _view(state.shell, run, log, backend, line),
        _graphs(run, log, backend, line),
    ):
        run.execute()


def _rehearse(state: State, line: CellLine, cell: Cell, backend: Backend, start: CellRun | ProgramState | None) -> None:
    from nbsglang.notebook.rehearsal import rehearse  # for who asks for it

    try:
        picture = rehearse(cell, state.shell.user_ns, backend, start, line.options, line.show)
    except errors.UsageError as error:  # it looks at the flags only
        raise UsageError(str(error)) from None
    if not line.quiet:
        display(picture)  # type: ignore[no-untyped-call]


def _compare(
    state: State,
    line: CellLine,
    cell: Cell,
    backend: Backend,
    start: CellRun | ProgramState | None,
    trace: Path | None,
) -> CellRun | None:
    """Run it with the cache, as usual, then without, and show both beside each other."""
    from nbsglang.notebook.compare import SEED, comparison, fresh_engine, without_cache

    need_engine(backend, "--compare")
    line = replace(line, options={"seed": SEED, **line.options})
    with fresh_engine(backend, caching=True, kv_tokens=line.budget) as cached:
        run = _prepared(state, line, cell, cached, start)
        _execute(state, line, run, cached, start, trace)
    plain = without_cache(cell, state.shell.user_ns, backend, start, line.options, line.budget)
    if not line.quiet:
        is_greedy = line.options.get("temperature") == 0
        display(comparison(run, plain, is_greedy=is_greedy, seed=line.options["seed"]))  # type: ignore[no-untyped-call]
    return _value(state.shell, run, line)


def _value(shell: InteractiveShell, run: CellRun, line: CellLine) -> CellRun | None:
    """The cell's value: the run. Where a view has shown it, `_` and `Out` have it and it is not shown again."""
    if line.out:
        return None
    if line.show or line.quiet:
        shell.displayhook.update_user_ns(run)  # type: ignore[no-untyped-call]
        return None
    return run


def _view(
    shell: InteractiveShell, run: CellRun, log: EventLog, backend: Backend, line: CellLine
) -> AbstractContextManager[Any]:
    """What shows the run while it goes on; nothing if nothing is to be shown."""
    if line.quiet or not line.show:
        return nullcontext()
    from nbsglang.notebook.live import watching  # not before a cell is watched: it loads what draws

    source = getattr(backend, "source", None)
    return watching(run, shell=shell, log=log, engine_source=source, show=line.show, plain=line.plain, quiet=False)


def _view_in_background(shell: InteractiveShell, run: CellRun, backend: Backend, line: CellLine) -> None:
    """The same for a run that goes on after the cell."""
    if line.quiet or not line.show:
        return
    from nbsglang.notebook.live import watch_in_background

    source, log = getattr(backend, "source", None), log_of(backend)
    graphs = _graphs(run, log, backend, line)
    watch_in_background(
        run, shell=shell, log=log, engine_source=source, show=line.show, plain=line.plain, beside=graphs
    )


def _graphs(run: CellRun, log: EventLog, backend: Backend, line: CellLine) -> AbstractContextManager[None]:
    """What has the automata of the run's constraints logged, if they are to be shown."""
    return graphs_logged(log, run.source, backend, is_on="fsm" in line.show and not line.quiet)


@contextmanager
def _interrupts_noted(run: CellRun, log: EventLog, backend: Backend, line: CellLine) -> Iterator[None]:
    """An interrupt says in one line what it stopped."""
    began = log.seq
    try:
        yield
    except KeyboardInterrupt:
        n = _n_cancelled(e.body for e in log.since(began) if e.source == run.source)
        kept = "; the cache is kept" if is_engine(backend) and not line.has_own_engine else ""
        print(f"interrupted: {n} call{'' if n == 1 else 's'} cancelled{kept}")
        raise


@contextmanager
def _kept_if_it_fails(shell: InteractiveShell, line: CellLine, start: CellRun | ProgramState | None) -> Iterator[None]:
    """With `--from chat -o chat` a run that fails does not take the place of the chat."""
    try:
        yield
    except BaseException:
        if start is not None and line.out == line.start:
            shell.user_ns[line.out] = start
            print(f"{line.out} still holds the run that this one started from")
        raise


def _n_cancelled(events: Iterable[Body]) -> int:
    """How many of a run's calls were cancelled; prefix hints are no calls of the user's."""
    hints: set[str] = set()
    n = 0
    for event in events:
        if isinstance(event, CallBegan) and event.kind == "prefix":
            hints.add(event.call_id)
        elif isinstance(event, CallEnded) and event.call_id not in hints:
            n += event.error.startswith("Cancelled")
    return n


def _close_later(run: CellRun, line: CellLine, cleanup: ExitStack) -> None:
    """Close what was made for a run in the background when it has ended."""

    def wait() -> None:
        with cleanup:
            while not run.done:
                time.sleep(_LOOK_S)

    if line.has_own_engine:  # else nothing was made
        threading.Thread(target=wait, name="nbsglang-cleanup", daemon=True).start()
