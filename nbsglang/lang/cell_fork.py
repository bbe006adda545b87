"""R5: the branches of a loop over `fork(...)`, each a greenlet on the hub with a state of its own.

The statement ends when the Python of all branches has ended; what they generate may still be on its way.

Not here: the states (`state.py`), what a branch's statements do (`cell_rt.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from typing import Any

import greenlet  # type: ignore[import-untyped]  # it ships no types

from nbsglang.errors import JoinError, UsageError
from nbsglang.lang.cell_errors import branch_lines, without_our_frames
from nbsglang.lang.cell_here import Here
from nbsglang.lang.held import HELD, Column, Outer
from nbsglang.lang.hub import current_place, wait
from nbsglang.lang.ops import caller
from nbsglang.lang.run import cancelled
from nbsglang.lang.slots import Signal, Where
from nbsglang.lang.state import ProgramState
from nbsglang.lang.stream import how_raised

Body = Callable[[ProgramState], None]
_AT_ONCE = 1024  # branches whose Python is under way: an interrupt has to unwind each of them


def fork(here: Here, over: object, body: Body, outer: Mapping[str, Any], bound: tuple[str, ...]) -> Loop:
    """Run the body once for each key, side by side. `outer` is what the code around it has bound, and stays as it is;
    `bound` are the names that the body binds."""
    here.stop()
    keys = keys_of(over)
    own = {name: Outer(value) if name in bound else value for name, value in outer.items() if name[:1] != "<"}
    states = here.state._branches(len(keys), [_label(key) for key in keys])
    loop = Loop(here, keys, states, caller())
    here.loops.append(loop)
    here.state._busy = True
    try:
        loop.run(body, own)
    finally:
        here.state._busy = False
    return loop


def keys_of(over: object) -> list[Any]:
    """What a loop goes over: the numbers below an int, or the items of any iterable. Raises UsageError."""
    if isinstance(over, (bool, str, bytes)) or not isinstance(over, (int, Iterable)):
        raise UsageError(f"fork takes a number of branches or their keys (a list, a dict ...), not {over!r}")
    if not isinstance(over, int):
        return list(over)
    if over < 0:
        raise UsageError(f"fork cannot make {over} branches")
    return list(range(over))


class Loop:
    """The branches of one loop. `keys`, `states` and `errors` (what a branch's Python raised) are aligned."""

    def __init__(self, here: Here, keys: list[Any], states: list[ProgramState], where: Where) -> None:
        self.keys = keys
        self.states = states
        self.errors: list[BaseException | None] = [None] * len(keys)
        self.where = where
        self._here = here
        self._next = iter(range(len(keys)))
        self._left = len(keys)
        self._signal = Signal()

    def run(self, body: Body, outer: Mapping[str, Any]) -> None:
        """Run the Python of all branches, and wait until it has ended."""
        place = current_place()
        if place is None:
            raise UsageError("branches cannot run in an event loop or a thread of your own: call the program outside")
        context = copy_context()

        def start_next() -> None:
            for index in self._next:
                place.hub.spawn(lambda: branch(index), context.copy())  # noqa: B023 (the loop ends here)
                return

        def branch(index: int) -> None:
            self._branch(index, body, outer)
            start_next()

        for _ in range(min(_AT_ONCE, self._left)):
            start_next()
        wait(self._signal, lambda: self._left == 0)

    def column(self, name: str) -> Any:
        """What the branches bound to the name, aligned with the keys; None where one did not bind it."""
        values = [state._cell.variables.get(name) if state._cell is not None else None for state in self.states]
        if any(type(value) in HELD for value in values):
            return Column(values, self.error_of, self.settled)
        return values

    def settled(self) -> None:
        """The branches are over as far as anybody has looked: end those that do nothing more."""
        driver = self._here.run.driver
        for state in self.states:
            if state._stream.idle:
                driver.end(state._stream, "joined")

    def check(self) -> None:
        """Raise what the branches' Python raised, as one error."""
        self._here.stop()
        if any(self.errors):
            raise self.error_of(self.errors)

    def error_of(self, errors: list[BaseException | None]) -> JoinError:
        """One error of the branches' errors, which are aligned with the keys."""
        lines = branch_lines([self.name_of(index) for index in range(len(self.keys))], errors)
        count = sum(error is not None for error in errors)
        one = f"{self.where.file}, line {self.where.line}: {count} of {len(self.keys)} branches failed\n"
        joined = JoinError(one + "\n".join(lines), errors)
        joined.__cause__ = next(error for error in errors if error is not None)
        return joined

    def name_of(self, index: int) -> str:
        """How messages call the branch."""
        return f"branch {_label(self.keys[index], quoted=True)}"

    def _branch(self, index: int, body: Body, outer: Mapping[str, Any]) -> None:
        state = self.states[index]
        parent = self._here.state._turns
        state._turns = parent.copy() if parent is not None else None
        state._given = (self.keys[index], outer)
        try:
            body(state)
        except Exception as error:
            self.errors[index] = without_our_frames(error)
            state._stream.raised = how_raised(error)
        except greenlet.GreenletExit:
            self.errors[index] = cancelled("the run was stopped while the branch ran").error()
            state._stream.raised = "cancelled"
        except BaseException as error:  # an interrupt: it ends the whole run
            state._stream.raised = how_raised(error)
            raise
        self._left -= 1
        if self._left == 0:
            self._signal.notify()


def _label(key: object, *, quoted: bool = False) -> str:
    if isinstance(key, str):
        shown = key if len(key) <= 40 else key[:37] + "..."
        return repr(shown) if quoted else shown
    try:
        shown = repr(key)
    except Exception:  # a repr of the user's own
        return f"<{type(key).__name__}>"
    return shown if len(shown) <= 40 else shown[:37] + "..."
