"""What a constraint may cost, and the error past it.

Work is counted in operations, not by the clock, so that a constraint that compiles does so on every machine.

Not here: who counts (`build.py`, `guarded.py`, `automaton.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from nbsglang.errors import ConstraintError


@dataclass(frozen=True, slots=True)
class Limits:
    """What one constraint may cost.

    `positions`: its characters, each as often as its repeats can ask for it. `states`: of its automaton, as far as they
    are kept at once. `work`: steps of one call, of which a hundred thousand take about a quarter of a second. `memory`:
    bytes of its states and rows. `depth`: repeats, choices and lookarounds (these count three times) inside each other.
    """

    positions: int = 50_000
    states: int = 20_000
    work: int = 100_000
    memory: int = 64 << 20
    depth: int = 150


class NoTextError(ConstraintError):
    """Nothing matches the constraint, or a part of it."""


class TooLargeError(ConstraintError):
    """Past a budget."""


class OutgrownError(TooLargeError):
    """What has been met of an automaton is all that may be kept; made anew it can go on from any one text."""


class Meter:
    """Counts the work of one call."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._spent = 0

    def reset(self) -> None:
        """Another call begins."""
        self._spent = 0

    def spend(self, steps: int) -> None:
        """Raise TooLargeError past the limit."""
        self._spent += steps
        if self._spent > self._limit:
            raise TooLargeError(
                f"the constraint takes more than {self._limit} steps of work at one place: use fewer lookarounds, or "
                "shorter repeats around them"
            )
