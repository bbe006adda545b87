"""Values of a cell that are not there yet, and `force`, which makes values of them.

A cell's variable may hold one of these; whoever reads it gets what `force` makes of it: transformed code forces each
load of a name that the cell binds. So the user's Python only ever sees real strings, numbers and models.

Not here: who puts them there (`cell_rt.py`, `cell_fork.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbsglang.errors import Cancelled, JoinError
from nbsglang.lang.hub import wait
from nbsglang.lang.ops import Expr, Quote
from nbsglang.lang.slots import Slot

Listing = Callable[[list[BaseException | None]], JoinError]


class Later:
    """The value of a generation. `is_text` says that it will be one string, `is_plain` that it formats like one.

    `stop` is called when the run is being stopped, and raises.
    """

    __slots__ = ("is_plain", "is_text", "slot", "stop")

    def __init__(self, slot: Slot, is_text: bool, is_plain: bool, stop: Callable[[], None]) -> None:
        self.slot = slot
        self.is_text = is_text
        self.is_plain = is_plain
        self.stop = stop

    def read(self) -> object:
        """Wait for it. Raises the error of the call that failed."""
        slot = self.slot
        if not slot.done:
            wait(slot.signal, lambda: slot.done)
        if slot.fault is not None and issubclass(slot.fault.kind, Cancelled):
            self.stop()
        return slot.read()

    def outcome(self) -> tuple[object, BaseException | None]:
        """Wait for it; the value, or an error that nobody has seen. An error that was seen leaves (None, None)."""
        slot = self.slot
        if not slot.done:
            wait(slot.signal, lambda: slot.done)
        if slot.fault is None:
            return slot.value, None
        if issubclass(slot.fault.kind, Cancelled):
            self.stop()
            raise slot.fault.error()
        return None, None if slot.fault.delivered else slot.fault.error()


class Outer:
    """A value that was there before: told from what the cell or the branch itself has bound."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def read(self) -> object:
        """What it holds, forced."""
        return force(self.value)

    def outcome(self) -> tuple[object, BaseException | None]:
        """Not bound by the branch."""
        return None, None


class Column:
    """The list of what the branches of a loop bound to one name. Read once, it is the same list ever after.

    `listing` makes one error of the branches' errors, aligned with them; `settled` is told that all values were there.
    """

    __slots__ = ("_errors", "_list", "_listing", "_settled", "_values")

    def __init__(self, values: list[object], listing: Listing, settled: Callable[[], None]) -> None:
        self._values = values
        self._listing = listing
        self._settled = settled
        self._list: list[object] | None = None
        self._errors: list[BaseException | None] = []

    def read(self) -> object:
        """Wait for all. Raises one JoinError for what failed and nobody has seen, the same at each read."""
        if self._list is None:
            outcomes = [outcome_of(value) for value in self._values]
            self._errors = [error for _, error in outcomes]
            self._list = [value for value, _ in outcomes]
            self._values = []
            self._settled()
        if any(self._errors):
            raise self._listing(self._errors)
        return self._list

    def outcome(self) -> tuple[object, BaseException | None]:
        """The list, or the error unless it has been raised before."""
        seen = any(self._errors)
        try:
            return self.read(), None
        except JoinError as error:
            return None, None if seen else error


HELD = frozenset({Later, Outer, Column})


def force(value: Any) -> Any:
    """The value itself; waits for one that is not there yet, and raises its error."""
    if type(value) in HELD:
        return value.read()
    return value


def outcome_of(value: Any) -> tuple[object, BaseException | None]:
    """The value, or its error if nobody has seen it; waits."""
    return value.outcome() if type(value) in HELD else (value, None)


def quote(value: Any) -> Any:
    """For a hole of text: the text of a generation as a part of the prompt that nobody waits for; else the value."""
    return _quoted(value, text_only=False)


def quote_text(value: Any) -> Any:
    """The same where only text is right, as in `"Q: " + a`: a number must fail as it does in Python."""
    return _quoted(value, text_only=True)


def _quoted(value: Any, *, text_only: bool) -> Any:
    while type(value) is Outer:
        value = value.value
    if type(value) is Later and (value.is_text if text_only else value.is_plain):
        slot = value.slot
        if not slot.done or slot.fault is not None:  # an error is raised where the value is read, however early it is
            return Expr((Quote(slot),))
    return force(value)
