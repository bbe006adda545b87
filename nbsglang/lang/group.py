"""The branches of a fork, to be appended to together and joined.

Not here: making branches (`state.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from nbsglang.errors import JoinError, UsageError
from nbsglang.events import VariableSet
from nbsglang.lang import ops
from nbsglang.lang.ops import Expr, caller, parts_of
from nbsglang.lang.slots import Slot, is_unnamed

if TYPE_CHECKING:
    from nbsglang.lang.state import ProgramState


class Group:
    """Branches of one fork, in order. `errors` is aligned with them once they are joined."""

    def __init__(self, parent: ProgramState, states: list[ProgramState]) -> None:
        self.states = states
        self.errors: tuple[BaseException | None, ...] = ()
        self._parent = parent
        self._base = dict(parent._slots)
        self._joined = False

    def __len__(self) -> int:
        return len(self.states)

    def __iter__(self) -> Iterator[ProgramState]:
        return iter(self.states)

    def __getitem__(self, index: int) -> ProgramState:
        return self.states[index]

    def __setitem__(self, index: int, state: ProgramState) -> None:
        """For `forks[i] += expr`, which Python reads, appends to, and writes back."""
        if self.states[index] is not state:
            raise UsageError("a branch cannot be replaced by another state")

    def __iadd__(self, value: str | Expr | list[Any] | Callable[[int], Any]) -> Group:
        """Append to every branch: one expression to all, a list with one for each, or a function of the index."""
        where = caller()
        if isinstance(value, (list, tuple)):
            if len(value) != len(self.states):
                raise UsageError(f"{len(value)} expressions for {len(self.states)} branches")
            each = [parts_of(item) for item in value]
        elif callable(value):
            each = [parts_of(value(index)) for index in range(len(self.states))]
        else:
            each = [parts_of(value)] * len(self.states)
        for state, parts in zip(self.states, each, strict=True):
            state._append(parts, where)
        return self

    def join(self, mode: str = "gather_variable", strict: bool = True) -> None:
        """Wait for all branches, and take over what they made.

        "gather_variable": each name that a branch has set becomes a list on the parent, one entry per branch, None
        where it failed or did not set it. "concate_and_append": the branches' texts are appended to the parent, in
        order. If branches failed, `strict` raises one JoinError that lists them, after all have ended; without it
        they are in `errors`. A second join does nothing.
        """
        if mode not in ("gather_variable", "concate_and_append"):
            raise UsageError(f"join knows the modes 'gather_variable' and 'concate_and_append', not {mode!r}")
        if self._joined:
            return
        where = caller()
        for state in self.states:
            state._settle()
        self._joined = True
        faults = [state._stream.fault for state in self.states]
        self.errors = tuple(fault.error() if fault is not None else None for fault in faults)
        if mode == "gather_variable":
            self._gather()
        else:
            well = tuple(state._stream for state in self.states if state._stream.fault is None)
            self._parent._feed(ops.Concat(well), (), where)
        for state in self.states:
            state._run.driver.end(state._stream, "joined")
        whole = self._parent._run.fault
        if whole is not None:  # not the branches failed: the run was stopped
            raise whole.error()
        if strict and any(self.errors):
            raise JoinError(self._message(str(where)), self.errors)

    def _gather(self) -> None:
        names = {name: None for state in self.states for name in state._slots if self._is_new(state, name)}
        parent = self._parent
        for name in names:
            slots = [state._slots[name] if self._is_new(state, name) else None for state in self.states]
            good = [slot if slot is not None and slot.done and slot.fault is None else None for slot in slots]
            gathered = Slot(name, parent._stream.signal)
            values = [slot.value if slot is not None else None for slot in good]
            gathered.fill(values, [slot.meta if slot is not None else None for slot in good])
            parent._slots[name] = gathered
            parent._run.emit(VariableSet(parent._stream.id, name, repr(values)))

    def _is_new(self, state: ProgramState, name: str) -> bool:
        """Whether the branch has set this name itself. Unnamed gens stay in their branch."""
        return not is_unnamed(name) and name in state._slots and state._slots[name] is not self._base.get(name)

    def _message(self, where: str) -> str:
        failed = [f"  branch {i}: {error}" for i, error in enumerate(self.errors) if error is not None]
        return f"{where}: {len(failed)} of {len(self.states)} branches failed\n" + "\n".join(failed)
