"""One `%%sgl` cell from its text to its result: compiled, run under a view, bound to a name.

A cell that has a signature defines a program. Any other runs, in the foreground or behind a handle.

Not here: flags (`flags.py`), the backend (`chosen.py`), how errors look (`failures.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from nbsglang import current, errors
from nbsglang.calls import Backend
from nbsglang.events import Body, CallBegan, CallEnded, EventLog
from nbsglang.lang.cell import Cell, compile_cell
from nbsglang.lang.cell_run import CellRun
from nbsglang.lang.state import ProgramState
from nbsglang.notebook.chosen import chosen_backend, is_engine
from nbsglang.notebook.failures import shown_to_user
from nbsglang.notebook.flags import CellLine
from nbsglang.notebook.nearest import did_you_mean
from nbsglang.notebook.source import cell_source
from nbsglang.notebook.state import State

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
    start = _start(state, line.start) if line.start else None
    with ExitStack() as cleanup:
        backend = chosen_backend(state, line, model, cleanup)
        log = backend.log if is_engine(backend) else current.event_log()  # type: ignore[attr-defined]
        try:
            run = cell.prepare(state.shell.user_ns, start=start, backend=backend, log=log, **line.options)
        except errors.UsageError as error:  # it looks at the flags only
            raise UsageError(str(error)) from None
        if line.out:
            state.shell.user_ns[line.out] = run  # also where it fails: it has the error, and what came before
        if line.background:
            run.start_thread()
            state.running().append(run)
            _close_later(run, line, cleanup.pop_all())
            return None if line.out else run
        with (
            _kept_if_it_fails(state.shell, line, start),
            _interrupts_noted(run, log, backend, line),
            _view(state.shell, run, log, backend, line),
        ):
            run.execute()
    return _value(state.shell, run, line)


def _value(shell: InteractiveShell, run: CellRun, line: CellLine) -> CellRun | None:
    """The cell's value: the run. Where a view has shown it, `_` and `Out` have it and it is not shown again."""
    if line.out:
        return None
    if line.show or line.quiet:
        shell.displayhook.update_user_ns(run)  # type: ignore[no-untyped-call]
        return None
    return run


def _start(state: State, name: str) -> CellRun | ProgramState:
    """The run that `--from` names."""
    namespace = state.shell.user_ns
    found = namespace.get(name)
    if isinstance(found, CellRun | ProgramState):
        _check_start(name, found)
        return found
    runs = [key for key, value in namespace.items() if not key.startswith("_") and _is_run(value)]
    if name in namespace:
        raise UsageError(f"--from needs a variable with a finished run; {name} holds a {type(found).__name__}")
    hint = did_you_mean(name, runs, f"; there are {', '.join(runs)}" if runs else "; name a run with -o first")
    raise UsageError(f"--from: there is no variable {name!r}{hint}")


def _check_start(name: str, found: CellRun | ProgramState) -> None:
    """Raise UsageError for a run that still runs, and for one that has failed: its own error would look like ours."""
    if isinstance(found, CellRun) and not found.done:
        raise UsageError(f"--from: the run in {name} is not over; {name}.wait() waits for it")
    error = found.error if isinstance(found, CellRun) else None
    if error is not None:
        what = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(": ")
        raise UsageError(f"--from: the run in {name} has failed, so run its cell again first ({what})")


def _is_run(value: object) -> bool:
    return isinstance(value, CellRun | ProgramState)


def _view(
    shell: InteractiveShell, run: CellRun, log: EventLog, backend: Backend, line: CellLine
) -> AbstractContextManager[Any]:
    """What shows the run while it goes on; nothing if nothing is to be shown."""
    if line.quiet or not line.show:
        return nullcontext()
    from nbsglang.notebook.live import watching  # not before a cell is watched: it loads what draws

    source = getattr(backend, "source", None)
    return watching(run, shell=shell, log=log, engine_source=source, show=line.show, plain=line.plain, quiet=False)


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
