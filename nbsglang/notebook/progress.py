"""A line that tells how far loading is: updated in place in a kernel, printed piece by piece elsewhere.

A model may have to be downloaded first, and the cell's own thread is busy with it, so a thread looks at the log.
In a kernel it may: an update of a display belongs to the cell that made it.

Not here: the events (`nbsglang/events.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from IPython.display import display

from nbsglang.events import EventLog, Loading

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_EVERY_S = 0.25


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
    while not over.wait(_EVERY_S):
        for event in log.since(seq):
            seq = event.seq
            if isinstance(event.body, Loading) and event.body.done < event.body.total:
                line.tell(_words(event.body))


def _words(body: Loading) -> str:
    if body.total > 1_000_000:  # bytes
        return f"{body.what}: {body.done / 1e6:.0f} of {body.total / 1e6:.0f} MB"
    return f"{body.what} …"


def _bundle(text: str) -> dict[str, str]:
    return {"text/plain": text}
