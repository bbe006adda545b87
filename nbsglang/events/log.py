"""The bounded log of what happens, and its file.

Not here: the events (`event.py`), how one is written as a line (`lines.py`).
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

from nbsglang.errors import UsageError
from nbsglang.events.event import Body, Event, Row, event_of
from nbsglang.events.lines import OtherVersion, from_line, to_line

_BEFORE_ALL: Row = (0, 0, "", "", ())


class EventLog:
    """A bounded log of events, safe from any thread; the oldest are dropped beyond `capacity` (at least one stays)."""

    # Kept as plain tuples of plain values, which Python's garbage collector does not have to visit: as named
    # tuples, a full log more than doubles the time of a program that makes many objects.

    def __init__(self, capacity: int = 200_000) -> None:
        # Reentrant: whatever allocates under the lock can start the garbage collector, and with it a finalizer
        # that emits to this very log, on this very thread. So each method looks again whether that happened.
        self._lock = threading.RLock()
        self._rows: deque[Row] = deque(maxlen=max(capacity, 1))

    def emit(self, source: str, body: Body) -> int:
        """Append; returns the event's seq."""
        kind, fields = type(body).__name__, tuple(body)
        with self._lock:
            while True:
                last = self._rows[-1] if self._rows else _BEFORE_ALL
                row = (last[0] + 1, time.monotonic_ns(), source, kind, fields)
                # From here to the append nothing is allocated and no Python code can run.
                if not self._rows or self._rows[-1] is last:
                    self._rows.append(row)
                    return row[0]

    @property
    def capacity(self) -> int:
        """How many events stay."""
        return self._rows.maxlen or 1

    @property
    def seq(self) -> int:
        """The seq of the newest event, 0 when there is none yet."""
        return self._rows[-1][0] if self._rows else 0

    def since(self, seq: int = 0, limit: int | None = None) -> list[Event]:
        """The events after `seq`, oldest first, at most `limit`.

        When the first one's seq is not `seq + 1`, events were dropped in between.
        """
        with self._lock:
            while True:
                newest = self.seq
                rows = self._copy(seq, limit)
                if self.seq == newest:
                    break
        return [event_of(row) for row in rows]

    def _copy(self, seq: int, limit: int | None) -> list[Row]:
        """The rows after `seq`, at most `limit`."""
        n_rows = len(self._rows)
        start = n_rows - max(0, min(self.seq - seq, n_rows))
        while start < n_rows and self._rows[start][0] <= seq:  # lines were taken out of a saved log
            start += 1
        stop = n_rows if limit is None else min(start + limit, n_rows)
        if (n_rows - start) * 2 > n_rows:  # a deque is slow in its middle; a copy is fast
            return list(self._rows)[start:stop]
        return [self._rows[i] for i in range(start, stop)]

    def save(self, path: str | os.PathLike[str], *, redact: bool = False) -> None:
        """Write JSON lines to `path`, whole or not at all, readable by its user only."""
        target = Path(path)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                for event in self.since(0):
                    file.write(to_line(event, redact) + "\n")
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> EventLog:
        """Read a log that `save` wrote. Raises UsageError when a line is not an event."""
        log = cls()
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    log._rows.append(from_line(line.decode(), log.seq))
                except OtherVersion as error:
                    said = "is not an event that this version of nbsglang knows; a later or an earlier one may have"
                    raise UsageError(f"{path}, line {number} {said} written it: {error}") from None
                except (ValueError, OverflowError, RecursionError) as error:
                    raise UsageError(f"{path}, line {number} is not an event of nbsglang: {error}") from None
        return log
