"""The run that `--from` names: one that is over, and went well.

Not here: what begins there (`runner.py`).
"""

from __future__ import annotations

from IPython.core.error import UsageError

from nbsglang.lang.cell_run import CellRun
from nbsglang.lang.state import ProgramState
from nbsglang.notebook.nearest import did_you_mean
from nbsglang.notebook.state import State


def start_named(state: State, name: str) -> CellRun | ProgramState:
    """The run in the variable of that name. Raises UsageError."""
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
