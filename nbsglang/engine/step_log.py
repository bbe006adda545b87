"""What is logged of steps: an event for each with its counts and seconds, and now and then the whole tree.

Not here: those of tokens and requests (`token_log.py`), their texts (`names.py`), the log (`events/`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nbsglang.engine.flight import Flight
from nbsglang.engine.names import TokenNames
from nbsglang.engine.scheduler import Scheduler
from nbsglang.engine.slots import Ints
from nbsglang.engine.totals import Totals
from nbsglang.events import Body, Step

_SNAPSHOT_EVERY = 1000  # events of the tree: a late reader of the log starts at the last snapshot


class StepLog:
    """Counts steps into `totals` and emits their events."""

    def __init__(self, totals: Totals, names: TokenNames, emit: Callable[[Body], object]) -> None:
        self._totals = totals
        self._names = names
        self._emit = emit
        self._n_tree_events = 0

    def tree(self, body: Body) -> None:
        """An event of the tree."""
        self._emit(body)
        self._n_tree_events += 1

    def step(self, flight: Flight, scheduler: Scheduler) -> None:
        """A step that has landed."""
        totals = self._totals
        n_rows = sum(flight.n_planned)
        totals.steps += 1
        totals.computed_tokens += n_rows
        totals.prefilled_tokens += flight.n_prefilled
        totals.plan_s += flight.plan_s
        totals.pack_s += flight.pack_s
        totals.run_s += flight.run_s
        totals.commit_s += flight.commit_s
        n_decode = flight.n_planned.count(1)
        seq = self._emit(
            Step(
                totals.steps,
                n_rows - n_decode,
                n_decode,
                len(scheduler.running),
                len(scheduler.waiting),
                scheduler.slots.n_free,
                scheduler.tree.n_evictable,
                scheduler.tree.n_locked,
                flight.plan_s,
                flight.pack_s,
                flight.run_s,
                flight.commit_s,
            )
        )
        if self._names.is_due(seq) or self._n_tree_events >= _SNAPSHOT_EVERY:
            self._n_tree_events = 0
            self._names.renew(seq, _held(scheduler))
            self._emit(scheduler.tree.snapshot())


def _held(scheduler: Scheduler) -> Iterator[Ints]:
    """The ids in the tree, and those of the requests that have not ended."""
    yield from (node.key for node in scheduler.tree.nodes())
    yield from (request.tokens for requests in (scheduler.running, scheduler.waiting) for request in requests)
