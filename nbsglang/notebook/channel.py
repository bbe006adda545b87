"""What one session of views is told of a log: the events of one engine and of all programs, and keyframes.

The events are numbered anew, without gaps, so that who reads the messages can tell a lost one from one that was not
meant for it. Nothing is read before somebody asks for a keyframe. The first one has the state at the `start`, when the
run began for which the channel was made: its views can go back to there.

Not here: the thread that makes it go on (`pump.py`), the widgets (`widget.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from nbsglang.events import Event, EventLog
from nbsglang.notebook.budget import Budget
from nbsglang.notebook.excerpt import Excerpt
from nbsglang.viz import wire
from nbsglang.viz.fold import View
from nbsglang.viz.streams import STREAMS

_KEY_EVERY_S = 3.0
_KEY_SHARE = 0.01  # of the time, which keyframes of a large state may take
_ALONE_S = 20.0  # without an answer: front ends ping every five seconds while they are told something
_ALONE_EVERY_S = 30.0  # then a keyframe, which somebody who comes back answers
_MAX_PENDING = 5000  # events that wait to be sent; beyond, a keyframe takes their place
_MAX_RUNS = 50  # whose marks are remembered
_MAX_A_TICK = 20_000  # events that are read in one go: others want to get on, too
_AT_ONCE = 2000  # events that are copied from the log in one piece


class Channel:
    """See the module. Safe from any thread: all is under a lock, sending too, so that messages keep their order."""

    def __init__(
        self,
        log: EventLog,
        engine: str,
        send: Callable[[wire.Message], None],
        budget: Budget,
        *,
        start: int,
        most_pending: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = log
        self.engine = engine
        self.is_open = False  # whether anybody has asked
        self._send = send
        self._budget = budget
        self._clock = clock
        self._lock = threading.RLock()
        self._view = View()
        self._runs: dict[str, Excerpt] = {}  # by source
        self._start = start  # in the log
        self._most_pending = most_pending
        self._at = 0  # in the log: what was read last
        self._seq = 0  # our number of it
        self._sent = 0  # our number of what was sent last
        self._number = 0  # of the latest message
        self._pending: list[wire.Line] = []
        self._wants_key = False
        self._is_dropping = True  # events, until a keyframe has been sent
        self._is_told = False  # of the state at the start
        self._key_version = 0  # of the view, when a keyframe was sent last
        self._key_not_before = 0.0
        self._is_answered = False  # also while a cell runs
        self._unheard_since: float | None = None

    # ------------------------------------------------------------------------------------- from any thread

    def resync(self) -> None:
        """Somebody needs a keyframe; the next `tick` sends it."""
        self._wants_key = self.is_open = True

    def heard(self, *, at_any_time: bool) -> None:
        """Something came from the front end; `at_any_time` says that a cell that runs does not keep it from us."""
        with self._lock:
            self._unheard_since = None
            self._is_answered = self._is_answered or at_any_time

    def say(self, kind: str, **values: Any) -> None:
        """Send a few words at once."""
        with self._lock:
            self._post(wire.word(self._number + 1, kind, **values))

    def watch(self, source: str, began: int, until: int | None = None) -> None:
        """Keep events and marks of the run `source`, which began (and ended) with these seqs of the log."""
        with self._lock:
            self._runs[source] = Excerpt(source, began, until)
            while len(self._runs) > _MAX_RUNS:
                del self._runs[next(iter(self._runs))]

    def finish(self, source: str) -> str:
        """Say that the run has ended. Returns what it can be shown from later, "" if that is nothing, or too much."""
        with self._lock:
            run = self._runs.get(source)
            if run is None:
                return ""
            run.until = self.log.seq
            if not self._is_told:  # nobody looks
                return ""
            self._read(run.until)
            self._mark_runs(run.until + 1)
            self.say("over", source=source, to=self._seq)
            return run.text() if run.has_begun else ""

    def tick(self) -> None:
        """Send what is new, if there is room for it. Raises what sending raises."""
        if not self.is_open:
            return
        with self._lock:
            if self._is_alone() and self._clock() < self._key_not_before:
                return
            if not self._is_told:
                self._read(min(self._start, self._at + _MAX_A_TICK))
                if self._at >= self._start and self._budget.has_room():
                    self._sent, self._is_told = self._seq, True
                    self._post_key()
                return
            self._read(min(self.log.seq, self._at + _MAX_A_TICK))
            is_due = self._view.version != self._key_version and self._clock() >= self._key_not_before
            if self._wants_key or is_due:
                if self._budget.has_room(1 + bool(self._pending)):
                    self._post_delta()
                    self._post_key()
            elif self._budget.has_room():
                self._post_delta()

    # -------------------------------------------------------------------------------------- under the lock

    def _is_alone(self) -> bool:
        """Whether the page has been closed, as far as one can tell."""
        since = self._unheard_since
        return self._is_answered and since is not None and self._clock() - since > _ALONE_S

    def _read(self, until: int) -> None:
        """Take in the log up to this seq; beyond it, if that is gone already."""
        while self._at < until:
            for event in self.log.since(self._at, min(_AT_ONCE, until - self._at)):
                self._take(event)

    def _take(self, event: Event) -> None:
        n_lost = event.seq - self._at - 1
        self._at = event.seq
        self._seq += n_lost
        if n_lost:
            self._drop()
        if event.source != self.engine and not isinstance(event.body, STREAMS):
            return
        self._mark_runs(event.seq)
        self._seq += 1
        event = Event(self._seq, event.t_ns, event.source, event.body)
        self._view.apply(event)
        line = wire.event_line(event)
        for run in self._runs.values():
            if run.has_begun and not run.is_over:
                run.take(line)
        if not self._is_dropping:
            self._pending.append(line)
            if len(self._pending) > (self._most_pending or _MAX_PENDING):
                self._drop()

    def _drop(self) -> None:
        """Send no events until a keyframe has made up for them."""
        self._pending, self._is_dropping, self._wants_key = [], True, True

    def _mark_runs(self, seq: int) -> None:
        """Begin and end the excerpts that do so before the event `seq` of the log."""
        for run in self._runs.values():
            if not run.has_begun and run.began < seq:
                run.begin(self._view)
            if run.has_begun and not run.is_over and run.until is not None and run.until < seq:
                run.end(self._view)

    def _post_delta(self) -> None:
        if self._pending:
            lines, self._pending = self._pending, []
            self._post(wire.delta(self._number + 1, lines))
            self._sent = lines[-1][0]

    def _post_key(self) -> None:
        began = self._clock()
        watched = {run.source: run.marks for run in self._runs.values() if run.has_begun}
        self._post(wire.keyframe(self._number + 1, self._sent + 1, self._view, watched))
        self._wants_key, self._is_dropping = False, False
        self._sent, self._key_version = self._seq, self._view.version
        now = self._clock()
        every = _ALONE_EVERY_S if self._is_alone() else _KEY_EVERY_S
        self._key_not_before = now + max(every, (now - began) / _KEY_SHARE)

    def _post(self, message: wire.Message) -> None:
        self._budget.take(sum(map(len, message.buffers)))
        self._number += 1
        if self._unheard_since is None:
            self._unheard_since = self._clock()
        self._send(message)
