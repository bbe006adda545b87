"""A view that keeps up with a growing log: each event is folded once, and a look costs nothing when none is new.

One follower serves an engine for the whole of a session. It has no thread: who looks brings it up to date.

Not here: the fold itself (`fold.py`), when to look (`notebook/live.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from nbsglang.events import EventLog
from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks

_AT_ONCE = 20_000  # events that are copied from the log in one piece

_T = TypeVar("_T")


class Follower:
    """See the module. Safe from any thread: the view is touched under a lock, and so is what reads it."""

    def __init__(self, log: EventLog, *sources: str) -> None:
        self.log = log
        self._view = View(*sources)
        self._lock = threading.RLock()

    def add(self, source: str) -> None:
        """Take the events of this source too, those that the view has passed already excepted."""
        with self._lock:
            if self._view.sources:  # else it takes all
                self._view.sources.add(source)

    def remove(self, source: str) -> None:
        """Take no more events of this source; what came of them stays."""
        with self._lock:
            if len(self._view.sources) > 1:
                self._view.sources.discard(source)

    def poll(self) -> int:
        """Take in what is new. Returns a number that is another one whenever the view has changed."""
        if self.log.seq == self._view.seq:
            return self._view.version
        with self._lock:
            newest = self.log.seq  # what comes meanwhile is for the next time
            while self._view.seq < newest:
                for event in self.log.since(self._view.seq, _AT_ONCE):
                    self._view.apply(event)
            return self._view.version

    def look(self, draw: Callable[[View], _T]) -> _T:
        """What `draw` makes of the view as it is now."""
        with self._lock:
            self.poll()
            return draw(self._view)

    def watch(self) -> Marks:
        """Marks of what changes in the tree from now on, until `unwatch`."""
        with self._lock:
            self.poll()
            marks = Marks()
            self._view.tree.watched.append(marks)
            return marks

    def unwatch(self, marks: Marks) -> None:
        """Let these marks be as they are."""
        with self._lock:
            self._view.tree.watched = [other for other in self._view.tree.watched if other is not marks]
