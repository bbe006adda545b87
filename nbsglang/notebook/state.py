"""What the extension remembers for one shell: loaded models, runs in the background, the cell that is being run.

It hangs on the shell, not in a module: `%reload_ext` and `%unload_ext` take the magics away and leave it, so a model
stays loaded.

Not here: settings (`nbsglang/magics.py`, the traits of `SglMagics`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbsglang.calls import Backend

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from nbsglang.lang.cell_run import CellRun

_ATTRIBUTE = "nbsglang_state"
DESK = "nbsglang_desk"  # the attribute of the shell with its widgets (`desk.py`), once there are any


@dataclass(slots=True)
class Loaded:
    """A backend under its name, with the model and the options that it was loaded with."""

    backend: Backend
    model: object
    options: dict[str, Any]


@dataclass(slots=True)
class State:
    """The extension's memory of one shell. Touched by the shell's main thread only."""

    shell: InteractiveShell
    models: dict[str, Loaded] = field(default_factory=dict)
    background: list[CellRun] = field(default_factory=list)
    raw_cell: str = ""  # as the user wrote it
    undo: list[Callable[[], None]] = field(default_factory=list)  # what unloading must do, last first

    def running(self) -> list[CellRun]:
        """The runs in the background that have not ended; those that have are forgotten."""
        self.background = [run for run in self.background if not run.done]
        return self.background


def state_of(shell: InteractiveShell) -> State:
    """The shell's state, made when it is first asked for."""
    state = getattr(shell, _ATTRIBUTE, None)
    if state is None:
        state = State(shell)
        setattr(shell, _ATTRIBUTE, state)
    return state
