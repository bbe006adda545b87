"""How far a batch is, in one line of text: count, rate, time that is left.

The line is written again in its place where that can be done, in a terminal and in a notebook; elsewhere a new one
comes now and then. Only the thread that waits for the batch writes: what another one writes, a notebook puts
somewhere else.

Not here: the batch (`batch.py`), what goes on inside its programs (the event log).
"""

from __future__ import annotations

import sys
import time
from typing import IO

_EVERY_S, _LINE_EVERY_S = 0.1, 5.0


class Count:
    """Tells on `out` (stderr) how many of `total` are done."""

    def __init__(self, label: str, total: int, out: IO[str] | None = None) -> None:
        self._label = label
        self._total = total
        self._out = sys.stderr if out is None else out
        self._in_place = self._out.isatty() or type(self._out).__module__.startswith("ipykernel")
        self._began = time.monotonic()
        self._told_at = self._began if not self._in_place else 0.0
        self._width = 0

    def tell(self, done: int) -> None:
        """Write the line, unless it was written a moment ago; the last one always."""
        now = time.monotonic()
        is_last = done >= self._total
        if not is_last and now - self._told_at < (_EVERY_S if self._in_place else _LINE_EVERY_S):
            return
        self._told_at = now
        text = f"{self._label}: {words(done, self._total, now - self._began)}"
        before, after = ("\r", "\n" if is_last else "") if self._in_place else ("", "\n")
        self._out.write(f"{before}{text:<{self._width}}{after}")
        self._out.flush()
        self._width = len(text)


def words(done: int, total: int, seconds: float) -> str:
    """Count, rate and the time that is left, or in the end the time that it took."""
    rate = done / max(seconds, 1e-6)
    parts = [f"{done}/{total}"]
    if done:
        parts.append(f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate >= 0.1 else f"{1 / rate:.0f} s each")
    if done >= total:
        parts.append(span(seconds))
    elif done:
        parts.append(f"{span((total - done) / rate)} left")
    return " · ".join(parts)


def span(seconds: float) -> str:
    """A time as people say it: 0.4 s, 12 s, 3:05 min, 1:02 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60) if seconds >= 3600 else int(seconds // 60)
    if seconds >= 3600:
        return f"{minutes // 60}:{minutes % 60:02} h"
    return f"{minutes}:{int(seconds % 60):02} min"
