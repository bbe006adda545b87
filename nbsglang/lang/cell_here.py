"""Where a cell is: the state that its text goes to, what it has bound, the loops that it ran.

There is one for each run of a cell's body, and one for each branch of it.

Not here: what the body's statements do (`cell_rt.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import greenlet  # type: ignore[import-untyped]  # it ships no types

from nbsglang.errors import Cancelled, JoinError, NbsglangError, UsageError
from nbsglang.lang.cell_errors import branch_lines, one_error
from nbsglang.lang.held import Outer
from nbsglang.lang.ops import caller
from nbsglang.lang.state import ProgramState
from nbsglang.lang.turns import Turns

if TYPE_CHECKING:
    from nbsglang.lang.cell_fork import Loop
    from nbsglang.lang.stream import Stream

_PATIENCE = 1000  # how often a branch may catch the end of its run before it is left where it is


class Here:
    """See the module. `variables` is what the body bound by assignment, once it has ended."""

    __slots__ = ("_before", "_is_first", "_n_stops", "loops", "run", "state", "variables")

    def __init__(self, state: ProgramState) -> None:
        if not isinstance(state, ProgramState):
            raise UsageError(f"the first argument of a cell's program is a state, not {type(state).__name__}")
        self.state = state
        self.run = state._run
        self.variables: dict[str, Any] = {}
        self.loops: list[Loop] = []
        self._n_stops = 0
        self._before = state._cell
        self._is_first = state._turns is None or state._turns.owner is None
        if state._turns is None:
            state._turns = Turns(state._roles_used, state._role_open)
        if self._is_first:
            state._turns.owner = self
        state._cell = self

    def leave(self, variables: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """The body has ended, well or not."""
        self.variables = {
            name: variables[name] for name in names if name in variables and type(variables[name]) is not Outer
        }
        state = self.state
        if self._is_first and state._turns is not None:
            closing, state._turns = state._turns.closing(), None
            if closing:
                with suppress(UsageError, Cancelled):  # the state has ended: there is nothing to close
                    state._append(closing, caller())
        if self._before is not None:  # a program inside another, on the same state
            self._before.loops += self.loops
            state._cell = self._before

    def one_error(self, unseen: Sequence[tuple[Stream, NbsglangError]]) -> NbsglangError:
        """One error for streams that failed: the cell's own first, those of branches as one list."""
        names = dict(self._branch_names(""))
        mine = [(stream, error) for stream, error in unseen if stream.id not in names]
        if mine:
            return one_error([*mine, *((stream, error) for stream, error in unseen if stream.id in names)])
        errors = [error for _, error in unseen]
        lines = branch_lines([names[stream.id] for stream, _ in unseen], errors)
        joined = JoinError(f"{len(errors)} branches failed\n" + "\n".join(lines), errors)
        joined.__cause__ = errors[0].__cause__
        return joined

    def _branch_names(self, outer: str) -> Iterator[tuple[str, str]]:
        for loop in self.loops:
            for index, state in enumerate(loop.states):
                name = loop.name_of(index) + outer
                yield state._stream.id, name
                if state._cell is not None:
                    yield from state._cell._branch_names(f" in {name}")

    def stop(self) -> None:
        """Raise if the run is being stopped: Cancelled at first, then what `except Exception` does not catch."""
        fault = self.run.fault
        if fault is None:
            return
        self._n_stops += 1
        if self._n_stops == 1:
            raise fault.error()
        if self._n_stops > _PATIENCE and greenlet.getcurrent().parent is not None:
            greenlet.getcurrent().parent.switch()  # for good
        raise greenlet.GreenletExit
