"""A run of a cell, as its author holds it: to be executed, then read.

Not here: what a program's run does (`conduct.py`), what it has made (`cell_result.py`), compiling (`cell.py`).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Any

import greenlet  # type: ignore[import-untyped]  # it ships no types

from nbsglang import current
from nbsglang.calls import Token
from nbsglang.errors import UsageError
from nbsglang.events import EventLog
from nbsglang.lang.cell_errors import without_our_frames
from nbsglang.lang.cell_result import Branch, Branches
from nbsglang.lang.conduct import Call, conduct, new_run, start_hub_thread
from nbsglang.lang.driver import Driver
from nbsglang.lang.hub import Hub, current_place, on_hub, wait
from nbsglang.lang.options import Options
from nbsglang.lang.program import Manner, Program
from nbsglang.lang.retired import retire
from nbsglang.lang.run import NO_STATS, Run, cancelled
from nbsglang.lang.slots import Signal
from nbsglang.lang.state import ProgramState, Start


class CellRun:
    """A run of a cell, or of a program in the cell form.

    `r["a"]`, `"a" in r` and `r.keys()` are its variables: what the cell assigned, and what its generations are called.
    A run in the background waits when it is read. Once it is over, nothing in it holds the backend.
    """

    def __init__(
        self,
        label: str,
        call: Call | None,
        options: Options | None,
        start: Start | None = None,
        *,
        streams: bool = False,
    ) -> None:
        self._label = label
        self._call = call
        self._options = options
        self._start = start
        self._streams = streams
        self._driver = Driver()  # its thread starts with the first op
        self._state: ProgramState | None = None
        self._log = (options.log if options is not None else None) or current.event_log()
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._is_cancelled = False
        self._is_over = False
        self._signal = Signal()

    @classmethod
    def prepared(
        cls, program: Program, args: tuple[Any, ...], given: Mapping[str, Any], start: CellRun | ProgramState | None
    ) -> CellRun:
        """A run of the program that has not begun. Raises UsageError if arguments, options or start make no sense."""
        call, options, streams = program.prepared(args, given)
        return cls(program.name, call, options, None if start is None else start.snapshot(), streams=streams)

    @classmethod
    def of(cls, state: ProgramState) -> CellRun:
        """The run of a state that has been begun by other means: in a batch, streaming, in a coroutine."""
        run = cls("", None, None)
        run._state, run._driver, run._log = state, state._run.driver, state._run.log
        run._look()
        return run

    # ----------------------------------------------------------------------------------------- running

    def execute(self) -> CellRun:
        """Run it on this thread, and wait for the end; returns itself. Raises what failed, without frames of ours."""
        __tracebackhide__ = True  # and no local variables: this frame is a part of the error
        self._execute()
        self._end()
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)
        return self

    def start_thread(self) -> CellRun:
        """Run it on a thread of its own; returns itself at once."""
        call, options = self._take()
        place = current_place()
        run = new_run(self._driver, place.run if place is not None else None, options, streaming=self._streams)
        run.thread = 0  # not the caller's
        state = self._begin(run)
        start_hub_thread(run, lambda hub: self._on_thread(state, call, hub), self._end)
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is over, or for so many seconds; whether it is. Raises what failed, as `execute` does."""
        __tracebackhide__ = True
        until = None if timeout is None else time.monotonic() + timeout
        wait(self._signal, lambda: self.done or (until is not None and time.monotonic() >= until))
        if self.done and self.error is not None:
            raise self.error.with_traceback(self._traceback)
        return self.done

    def cancel(self, stream: str = "") -> None:
        """Stop everything that it started, or this stream (by its id) and its branches. Does not wait."""
        if stream:
            if self._state is not None:
                self._state._run.cancel_stream(stream, cancelled("the branch was cancelled"))
            return
        self._is_cancelled = True
        if self._state is not None:
            self._state._run.cancel(cancelled("the run was cancelled"))

    def result(self, timeout: float | None = None) -> CellRun:
        """The run itself, once it is over. Raises what failed, as `wait` does, and TimeoutError after `timeout` s."""
        __tracebackhide__ = True
        if not self.wait(timeout):
            raise TimeoutError(f"the run is not over after {timeout:g} s; it goes on")
        return self

    @property
    def done(self) -> bool:
        """Whether it is over, well or not."""
        if not self._is_over and self._call is None and self._state is not None and self._state._run.over:
            self._end()  # it was begun by other means, and nobody has told
        return self._is_over

    @property
    def error(self) -> BaseException | None:
        """What it raised, or would have; None while it runs, and if all went well."""
        if self._error is None and self.done and self._state is not None:
            return self._state._run.failure
        return self._error

    # ----------------------------------------------------------------------------------------- reading

    def __getitem__(self, name: str) -> Any:
        """A variable; waits for it. Raises NoSuchVariable, or the error of what failed."""
        if not self.done and name not in self.state:
            self._settle()
        return Branch(self.state)[name]

    def __contains__(self, name: object) -> bool:
        return self._state is not None and name in Branch(self._state)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """The names of its variables, so far."""
        return [] if self._state is None else Branch(self._state).keys()

    @property
    def variables(self) -> dict[str, Any]:
        """What the cell's own lines assigned; what failed is left out. Empty until it is over."""
        return {} if self._state is None else Branch(self._state).variables

    @property
    def state(self) -> ProgramState:
        """Its state, with all that the decorator form has: meta info, pieces of text while they come."""
        if self._state is None:
            raise UsageError("this run has not begun: call execute() or start_thread()")
        return self._state

    @property
    def text(self) -> str:
        """The whole prompt as the model sees it."""
        self._settle()
        return Branch(self.state).text

    def messages(self) -> list[dict[str, str]]:
        """The finished messages, as dicts of role and content."""
        self._settle()
        return Branch(self.state).messages()

    def text_iter(self, name: str | None = None) -> Iterator[str]:
        """The text of a variable, or of the whole prompt, piece by piece while it comes if run with `stream=True`."""
        return self.state.text_iter(name)

    def text_async_iter(self, name: str | None = None, return_meta_data: bool = False) -> AsyncIterator[Any]:
        """The same for coroutines. With `return_meta_data` pairs of text and meta info, which is there in the last."""
        return self.state.text_async_iter(name, return_meta_data)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """See `Branch.tokens`."""
        self._settle()
        return Branch(self.state).tokens

    @property
    def branches(self) -> Branches:
        """The branches of its loops, by key: `r.branches["b"]["score"]`."""
        return Branches([]) if self._state is None else Branch(self._state).branches

    def snapshot(self) -> Start:
        """What another run may start from. Raises UsageError while this one runs, and its error if it failed."""
        if not self.done:
            raise UsageError("the run to start from is not over: wait for it")
        return self.state.snapshot()

    @property
    def stats(self) -> dict[str, float | None]:
        """Counts so far: calls, tokens by kind, hit_rate, seconds, first_token_seconds."""
        return dict(NO_STATS) if self._state is None else self._state.stats

    @property
    def log(self) -> EventLog:
        """The log that its events go to."""
        return self._log

    @property
    def source(self) -> str:
        """The source of its events in the log."""
        return self._driver.id

    @property
    def stream_id(self) -> str:
        """The id of its own stream; the streams of branches have this one as parent."""
        return self._state._stream.id if self._state is not None else self._driver.first_stream_id

    def __repr__(self) -> str:
        if self._state is None:
            return "<run, not begun>"
        how = "running" if not self.done else "failed" if self.error is not None else "done"
        return f"<run, {how}: {', '.join(self.keys()) or 'no variables'}>"

    # ----------------------------------------------------------------------------------------- inside

    def _take(self) -> tuple[Call, Options]:
        call, options = self._call, self._options
        if call is None or options is None or self._state is not None:
            raise UsageError("a run is executed once; prepare another one")
        return call, options

    def _execute(self) -> None:
        call, options = self._take()
        try:
            with on_hub(self._driver) as place:
                self._driver = place.hub.driver
                run = new_run(place.hub.driver, place.run, options, streaming=self._streams)
                self._conduct(self._begin(run), call, place.hub)
        except BaseException as error:
            self._error = error

    def _begin(self, run: Run) -> ProgramState:
        self._state = ProgramState.begin(run, self._label, self._start)
        self._log = run.log
        if self._is_cancelled:
            run.cancel(cancelled("the run was cancelled"))
        return self._state

    def _conduct(self, state: ProgramState, call: Call, hub: Hub) -> None:
        try:
            conduct(state, call, hub)
        except greenlet.GreenletExit:  # the cell caught the end of its run, and went on
            raise state._run.fault.error() if state._run.fault is not None else cancelled("stopped").error() from None

    def _on_thread(self, state: ProgramState, call: Call, hub: Hub) -> None:
        try:
            self._conduct(state, call, hub)
        except BaseException as error:
            self._error = error

    def _end(self) -> None:
        if self._state is not None:
            retire(self._state)
            if isinstance(self._state._run.failure, KeyboardInterrupt):  # reading the run later is no interrupt
                self._state._run.failure = cancelled("the run was interrupted").error()
        if self._error is not None:
            self._traceback = without_our_frames(self._error).__traceback__
        self._call = self._options = self._start = None
        self._is_over = True
        self._signal.notify()

    def _look(self) -> None:
        """End it as soon as it is over, also if nobody ever asks: it holds the backend till then."""
        if not self.done:
            self.state._stream.signal.add(self._look)  # called once
            _ = self.done  # it may have ended in between

    def _settle(self) -> None:
        if not self.done:
            wait(self._signal if self._call is not None else self.state._stream.signal, lambda: self.done)


def manner() -> Manner:
    """How programs in the cell form are run: each run is a CellRun, in the place of a state."""
    run: Any = lambda label, call, options: CellRun(label, call, options).execute()  # noqa: E731 (typed as Any)
    result: Any = CellRun.of
    return Manner(run, result)
