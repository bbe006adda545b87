"""A line that tells how far loading is: updated in place in a kernel, printed piece by piece elsewhere.

A model may have to be downloaded first, and the cell's own thread is busy with it, so a thread looks at the log.
In a kernel it may: an update of a display belongs to the cell that made it.

Not here: the events (`nbsglang/events/`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.display import display

from nbsglang.events import Event, EventLog, Loading
from nbsglang.lang.counting import span

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_EVERY_S = 0.25
_BYTES = 1_000_000  # a total above this is one of bytes


class ProgressLine:
    """One line of text in the cell's output."""

    def __init__(self, text: str, *, in_kernel: bool, quiet: bool) -> None:
        self._quiet = quiet
        self._lock = threading.Lock()  # the last word must be the last
        self._ended = False
        self._shown = ""
        self._handle: Any = None
        if in_kernel and not quiet:
            self._shown, self._handle = text, display(_bundle(text), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def tell(self, text: str) -> None:
        """Show it instead of what was there; outside of kernels nothing, as a thread must not print."""
        with self._lock:
            if not self._ended:
                self._show(text)

    def end(self, text: str) -> None:
        """Show it as the last word."""
        with self._lock:
            self._ended = True
            self._show(text)
        if self._handle is None and not self._quiet:
            print(text)

    def fail(self, text: str) -> None:
        """Show it as the last word where there is a line; the error follows."""
        with self._lock:
            self._ended = True
            self._show(text)

    def _show(self, text: str) -> None:
        if self._handle is not None and text != self._shown:
            self._shown = text
            self._handle.update(_bundle(text), raw=True)


@contextmanager
def progress(shell: InteractiveShell, log: EventLog, text: str, *, quiet: bool) -> Iterator[ProgressLine]:
    """A line that follows the log's Loading events until the block ends."""
    line = ProgressLine(f"{text} …", in_kernel=getattr(shell, "kernel", None) is not None, quiet=quiet)
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(log, line, over), name="nbsglang-progress", daemon=True)
    thread.start()
    try:
        yield line
    except BaseException as error:
        line.fail(f"{text}: {'interrupted' if isinstance(error, KeyboardInterrupt) else 'failed'}")
        raise
    finally:
        over.set()
        thread.join()


def _follow(log: EventLog, line: ProgressLine, over: threading.Event) -> None:
    seq = log.seq
    first: Event | None = None  # of the work that is under way
    while not over.wait(_EVERY_S):
        for event in log.since(seq):
            seq = event.seq
            body = event.body
            if isinstance(body, Loading) and body.done < body.total:
                if first is None or not isinstance(first.body, Loading) or first.body.what != body.what:
                    first = event
                line.tell(loading_words(first, event))


def loading_words(first: Event, now: Event) -> str:
    """How far a Loading is, by the first event of it and the newest: bytes with their rate, or steps."""
    body, before = now.body, first.body
    assert isinstance(body, Loading)
    assert isinstance(before, Loading)
    if body.total <= _BYTES:
        return f"{body.what}: step {body.done + 1} of {body.total}" if body.total > 1 else f"{body.what} …"
    parts = [f"{body.what}: {body.done / 1e6:.0f} of {body.total / 1e6:.0f} MB, {body.done / body.total:.0%}"]
    seconds = (now.t_ns - first.t_ns) / 1e9
    if seconds > 0 and (rate := (body.done - before.done) / seconds) > 0:
        parts += [f"{rate / 1e6:.1f} MB/s", f"{span((body.total - body.done) / rate)} left"]
    return " · ".join(parts)


def _bundle(text: str) -> dict[str, str]:
    return {"text/plain": text}
