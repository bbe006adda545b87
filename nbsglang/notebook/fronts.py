"""Where the picture of a run goes: an output of a notebook, with or without widgets, a terminal, or plain lines.

A front `begin`s and `end`s on the thread that runs the cell; in between another thread may `draw` and `send`.
In a kernel, nothing is printed from that other thread: it would land in some other cell, or be lost.

Not here: when to draw (`live.py`), what (`nbsglang/viz`), the front with widgets (`widget_front.py`).
"""

from __future__ import annotations

import os
import sys
import threading
import uuid
from collections.abc import Callable
from typing import IO, Any, Protocol

from rich.console import Console, RenderableType
from rich.live import Live

from nbsglang.viz.gallery import Gallery
from nbsglang.viz.numbers import line, run_figures
from nbsglang.viz.scene import Scene

_PERIOD_S = 0.25  # at most four pictures a second
_BYTES_PER_S = 150_000  # to the notebook's server, which drops what comes too fast
_LINE_EVERY_S = 5.0


class Front(Protocol):
    """See the module. `pause` is how long to wait before the next picture."""

    pause: float

    def begin(self, scene: Scene) -> None: ...
    def draw(self, scene: Scene) -> Any: ...
    def send(self, drawn: Any) -> None: ...
    def end(self, scene: Scene) -> None: ...


class KernelFront:
    """One output of a notebook, which is updated in its place: HTML and text, or text alone."""

    def __init__(self, gallery: Gallery, publisher: Any, *, text_only: bool) -> None:
        self.pause = _PERIOD_S
        self.frame: Callable[[str], str] | None = None  # what is put around the HTML
        self._gallery = gallery
        self._publisher = publisher
        self._text_only = text_only
        self._display_id = uuid.uuid4().hex
        self._lock = threading.Lock()  # nothing is sent after the end
        self._is_over = False

    def begin(self, scene: Scene) -> None:
        """Make the output."""
        self._publish(self.draw(scene), update=False)

    def draw(self, scene: Scene) -> dict[str, str]:
        """The picture while the run goes on."""
        data = {"text/plain": self._gallery.text(scene, brief=not self._text_only)}
        if not self._text_only:
            data["text/html"] = self._framed(self._gallery.html(scene, live=True))
        return data

    def send(self, drawn: dict[str, str]) -> None:
        """Put the picture in the output."""
        with self._lock:
            if not self._is_over:
                self._publish(drawn, update=True)
        self.pause = max(_PERIOD_S, sum(map(len, drawn.values())) / _BYTES_PER_S)

    def end(self, scene: Scene) -> None:
        """Leave the last picture, which is what a saved notebook keeps."""
        with self._lock:
            self._is_over = True
        data = {"text/plain": self._gallery.text(scene)}
        if not self._text_only:
            data["text/html"] = self._framed(self._gallery.html(scene))
        self._publish(data, update=True)

    def _framed(self, html: str) -> str:
        return html if self.frame is None else self.frame(html)

    def _publish(self, data: dict[str, str], *, update: bool) -> None:
        self._publisher.publish(data, {}, transient={"display_id": self._display_id}, update=update)


class TerminalFront:
    """A terminal: the picture moves in its place while the run goes on, and stays as it is at the end."""

    def __init__(self, gallery: Gallery, console: Console) -> None:
        self.pause = _PERIOD_S
        self._gallery = gallery
        self._console = console
        self._live = Live(console=console, auto_refresh=False)

    def begin(self, scene: Scene) -> None:
        """Start the display."""
        self._live.start()

    def draw(self, scene: Scene) -> RenderableType:
        """The picture in the height there is."""
        return self._gallery.rich(scene, self._console.width, max(4, self._console.height - 4))

    def send(self, drawn: RenderableType) -> None:
        """Show the picture."""
        self._live.update(drawn, refresh=True)

    def end(self, scene: Scene) -> None:
        """Leave the whole picture."""
        try:
            self._live.update(self._gallery.rich(scene, self._console.width))
        finally:
            self._live.stop()


class PlainFront:
    """Lines of text: now and then one that tells how far it is, and the picture as text at the end."""

    def __init__(self, gallery: Gallery, out: IO[str], progress: IO[str]) -> None:
        self.pause = _LINE_EVERY_S
        self._gallery = gallery
        self._out = out
        self._progress = progress

    def begin(self, scene: Scene) -> None:
        """Nothing yet."""

    def draw(self, scene: Scene) -> str:
        """How far it is."""
        states = [stream.state for stream in scene.streams]
        words = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        return f"{scene.title}: {words} · {line(run_figures(scene))}"

    def send(self, drawn: str) -> None:
        """Write the line."""
        _write(self._progress, drawn)

    def end(self, scene: Scene) -> None:
        """Write the picture."""
        _write(self._out, self._gallery.text(scene))


def front_for(
    shell: Any, gallery: Gallery, *, plain: bool, with_widgets: Callable[[KernelFront], Front] | None = None
) -> Front:
    """The front that fits the shell: its kind decides, then whether its output is a terminal.

    `with_widgets` makes a front of a kernel one with widgets; it is not asked where they are not wanted.
    """
    plain = plain or bool(os.environ.get("NBSGLANG_PLAIN"))
    if is_kernel(shell):
        front = KernelFront(gallery, shell.display_pub, text_only=plain)
        return front if plain or with_widgets is None or not widgets_wanted() else with_widgets(front)
    console = Console()
    if not plain and console.is_terminal and not console.is_dumb_terminal:
        return TerminalFront(gallery, console)
    return PlainFront(gallery, sys.stdout, sys.stderr)


def is_kernel(shell: Any) -> bool:
    """Whether the shell shows its outputs in a front end of Jupyter's."""
    kinds = {kind.__name__ for kind in type(shell).__mro__}
    return "ZMQInteractiveShell" in kinds or getattr(shell, "kernel", None) is not None


def widgets_wanted() -> bool:
    """Whether the environment lets us use widgets: NBSGLANG_WIDGETS=0 does not."""
    return os.environ.get("NBSGLANG_WIDGETS", "1").lower() not in {"0", "no", "off", "false"}


def _write(stream: IO[str], text: str) -> None:
    """Write a line, with signs that the stream's encoding lacks replaced."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()
