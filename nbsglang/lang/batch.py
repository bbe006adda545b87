"""Many runs of one program side by side: a greenlet for each, on one hub.

Not here: the single run (`conduct.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Any, NamedTuple

from nbsglang.errors import UsageError
from nbsglang.lang.conduct import Call, conduct, new_run, start_hub_thread
from nbsglang.lang.counting import Count
from nbsglang.lang.driver import Driver
from nbsglang.lang.hub import Hub, current_place, inside, on_hub, wait
from nbsglang.lang.options import Options
from nbsglang.lang.run import Run, cancelled
from nbsglang.lang.slots import Signal
from nbsglang.lang.state import ProgramState

_AUTO = 1024  # programs under way at once: an interrupt has to unwind each of them (0.1 ms)
_MAX_NOTES = 10


class Manner(NamedTuple):
    """How a batch is run; see `Program.run_batch`."""

    at_once: int
    progress: bool
    as_iterator: bool
    raises: bool


def manner(given: Mapping[str, Any]) -> Manner:
    """From the options of run_batch. Raises UsageError for values that make no sense."""
    threads, on_error = given["num_threads"], given["on_error"]
    if threads != "auto" and (not isinstance(threads, int) or threads < 1):
        raise UsageError(f"num_threads must be 'auto' or at least 1, not {threads!r}")
    if on_error not in ("raise", "return"):
        raise UsageError(f"on_error must be 'raise' or 'return', not {on_error!r}")
    at_once = _AUTO if threads == "auto" else threads
    return Manner(at_once, bool(given["progress_bar"]), bool(given["generator_style"]), on_error == "raise")


def run_batch(
    label: str, calls: Sequence[Call], options: Options, how: Manner
) -> list[ProgramState] | Iterator[ProgramState]:
    """Run all; the states in order, or an iterator that gives them as they end."""
    if how.as_iterator:
        return _iterate(label, calls, options, how)
    with on_hub() as place:
        count = Count(label, len(calls)) if how.progress else None
        done = itertools.count(1)

        def on_end(state: ProgramState) -> None:
            if count is not None:
                count.tell(next(done))

        batch = _Batch(label, calls, options, how, new_run(place.hub.driver, place.run, options), on_end)
        batch.conduct(place.hub)
        if how.raises:
            batch.raise_first()
    return [state for state in batch.states if state is not None]


def _iterate(label: str, calls: Sequence[Call], options: Options, how: Manner) -> Iterator[ProgramState]:
    ended: list[ProgramState] = []
    signal = Signal()

    def on_end(state: ProgramState) -> None:
        ended.append(state)
        signal.notify()

    place = current_place()
    whole = new_run(Driver(), place.run if place is not None else None, options)
    batch = _Batch(label, calls, options, how, whole, on_end)
    thread = start_hub_thread(whole, batch.conduct)
    count = Count(label, len(calls)) if how.progress else None
    try:
        for n in range(len(calls)):
            wait(signal, lambda: len(ended) > n or not thread.is_alive())  # noqa: B023 (waits at once)
            if len(ended) <= n:
                break
            if count is not None:
                count.tell(len(ended))
            if not (how.raises and ended[n]._run.failure is not None):
                yield ended[n]
    finally:
        whole.cancel(cancelled("the iterator of the batch was closed"))
        thread.join(0.5)
    if how.raises:
        batch.raise_first()


class _Batch:
    """One batch under way. `whole` is a run without streams whose children are the runs of the items."""

    def __init__(
        self,
        label: str,
        calls: Sequence[Call],
        options: Options,
        how: Manner,
        whole: Run,
        on_end: Callable[[ProgramState], None],
    ) -> None:
        self.states: list[ProgramState | None] = [None] * len(calls)
        self._label = label
        self._calls = calls
        self._options = replace(options, timeout=None)  # the timeout is the whole batch's
        self._how = how
        self._whole = whole
        self._on_end = on_end
        self._signal = Signal()
        self._left = len(calls)
        self._next = iter(range(len(calls)))
        self._context: Context

    def conduct(self, hub: Hub) -> None:
        """Run all items and wait for the last."""
        try:
            with inside(self._whole, hub):
                self._context = copy_context()  # each item starts from this one
                for _ in range(min(self._how.at_once, len(self._calls))):
                    self._start_next(hub)
                wait(self._signal, lambda: self._left == 0)
        except BaseException:
            self._whole.cancel(cancelled("the batch was stopped"))
            raise
        finally:
            self._whole.end()

    def raise_first(self) -> None:
        """Raise the first error by order, with the others in its notes."""
        failures = [state._run.failure if state is not None else None for state in self.states]
        errors = [(i, failure) for i, failure in enumerate(failures) if failure is not None]
        if not errors:
            return
        index, first = errors[0]
        first.add_note(f"in item {index} of the batch; {len(errors)} of {len(self.states)} items failed")
        for i, error in errors[1 : _MAX_NOTES + 1]:
            first.add_note(f"item {i}: {type(error).__name__}: {error}")
        raise first

    def _start_next(self, hub: Hub) -> None:
        for index in self._next:
            hub.spawn(lambda: self._item(index, hub), self._context.copy())  # noqa: B023 (the loop ends here)
            return

    def _item(self, index: int, hub: Hub) -> None:
        run = new_run(hub.driver, self._whole, self._options, path=(index,))
        state = ProgramState.begin(run, self._label)
        self.states[index] = state
        try:
            if run.fault is not None:  # cancelled before it began
                run.failure = run.fault.error()
                run.end()
            else:
                conduct(state, self._calls[index], hub)
        except Exception:  # it is in run.failure
            pass
        self._left -= 1
        self._on_end(state)
        self._start_next(hub)
        if self._left == 0:
            self._signal.notify()
