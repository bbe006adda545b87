"""What plays a workload: the coroutine programs on any adapter, or our language's programs on our engine.

Not here: timing (`measure.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from benchmarks.gpu import language, programs
from benchmarks.gpu.optimum import Notes
from benchmarks.gpu.ours import Meter
from benchmarks.gpu.session import Adapter, Session
from benchmarks.gpu.watch import Watched
from benchmarks.gpu.workloads import Work
from nbsglang.engine.engine import Engine


class Played(NamedTuple):
    """One run: what each program generated, what was asked for, and texts of constrained calls."""

    outs: list[list[list[int]]]
    notes: Callable[[], Notes]  # may take a while, so not before the clock has stopped
    texts: list[str]
    computed: int | None  # prompt tokens
    firsts: list[float]  # seconds to the first token of each call


class Player(Protocol):
    """Something that plays workloads."""

    name: str

    def prepared(self, work: Work) -> Callable[[], Played]:
        """A function that plays the workload; all that is not the engine's work is done before."""
        ...

    def reset(self) -> None:
        """Empty the cache and the counters."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class Coroutines:
    """The coroutine programs on an adapter, in one event loop for all runs."""

    def __init__(self, adapter: Adapter, loop: asyncio.Runner, parallel: bool = True) -> None:
        self.name = adapter.name
        self._adapter, self._loop, self._parallel = adapter, loop, parallel

    def prepared(self, work: Work) -> Callable[[], Played]:
        """The workload in a session of its own."""
        session = Session(self._adapter, self._parallel)

        def run() -> Played:
            outs = self._loop.run(programs.play(work, session))
            return Played(
                outs, lambda: session.notes, session.texts, self._adapter.computed(), list(self._adapter.firsts)
            )

        return run

    def reset(self) -> None:
        """The adapter's."""
        self._loop.run(self._adapter.reset())

    def close(self) -> None:
        """The adapter's."""
        self._adapter.close()


class Language:
    """Our language's programs on our engine. With `hint` false, a fork does not ask for its prefix beforehand."""

    name = "language"

    def __init__(self, engine: Engine, hint: bool = True) -> None:
        self.watched = Watched(engine, hint)
        self._engine = engine
        self._meter = Meter(engine)

    def prepared(self, work: Work) -> Callable[[], Played]:
        """The workload with its ids as text."""
        run_all = language.prepared(work, self.watched)

        def run() -> Played:
            outs, watched = run_all(), self.watched
            return Played(outs, watched.notes, [], self._meter.computed(), list(watched.firsts))

        return run

    def reset(self) -> None:
        """Empty the engine's cache and begin new notes."""
        self._engine.flush_cache()
        self.watched.reset()
        self._meter.start()

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()
