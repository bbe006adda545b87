"""What one run is shown from once the kernel is gone: the state before it, and the events of its time.

Not here: where it is kept (`widget.py`), who reads the log (`channel.py`).
"""

from __future__ import annotations

from typing import Any

from nbsglang.viz import wire
from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks

_MAX_LINES = 20_000
_MAX_NODES = 400  # of a state that is worth keeping as the beginning
MAX_CHARACTERS = 24_000  # of the text; twenty runs make a notebook of less than 500 kB


class Excerpt:
    """The events of the log after `began`, up to `until` (None while the run goes on); `marks` in the tree of them."""

    def __init__(self, source: str, began: int, until: int | None = None) -> None:
        self.source = source
        self.began = began
        self.until = until
        self.marks = Marks()
        self.has_begun = False
        self.is_over = False
        self._base: dict[str, Any] | None = None
        self._lines: list[wire.Line] | None = []  # None: they were too many

    def begin(self, view: View) -> None:
        """The next event is the first."""
        self.has_begun = True
        view.tree.watched.append(self.marks)
        if len(view.nodes) <= _MAX_NODES:
            self._base = wire.before_run(view)
        else:
            self._lines = None

    def take(self, line: wire.Line) -> None:
        """The next event."""
        if self._lines is not None:
            self._lines.append(line)
            if len(self._lines) > _MAX_LINES:
                self._lines = None

    def end(self, view: View) -> None:
        """There was no further event."""
        self.is_over = True
        view.tree.watched = [marks for marks in view.tree.watched if marks is not self.marks]

    def text(self) -> str:
        """All of it as a text (see `wire.snapshot`); "" if it is too long."""
        text = "" if self._lines is None else wire.snapshot(self._base, self._lines)
        return text if len(text) <= MAX_CHARACTERS else ""
