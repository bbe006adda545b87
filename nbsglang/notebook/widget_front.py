"""A front of a kernel whose output is a live view where the front end can show one, and HTML everywhere else.

The output is always HTML and text. It has a mark in it, by which the script of our widgets finds it and puts the live
view in its place; who reads a saved notebook, without a kernel or with another one, sees the HTML. The mime type of
widgets would not do: JupyterLab shows "Error displaying widget: model not found" then, and not the HTML beside it.

Not here: the widgets (`desk.py`), HTML alone (`fronts.py`).
"""

from __future__ import annotations

from typing import Any

from nbsglang.events import EventLog
from nbsglang.notebook.desk import Cancellable, desk_of
from nbsglang.notebook.fronts import Front, KernelFront
from nbsglang.notebook.widget import marked
from nbsglang.viz.gallery import Gallery
from nbsglang.viz.scene import Scene

_LIVE_PAUSE_S = 1.0  # nothing is drawn then
SECTION = "live view"  # what the gallery calls it when it fails


class WidgetFront:
    """See the module. Until the front end says that it makes our widgets, the HTML is updated as without them."""

    def __init__(
        self, html: KernelFront, gallery: Gallery, shell: Any, run: Cancellable, source: str, log: EventLog, engine: str
    ) -> None:
        self.pause = html.pause
        self._html = html
        self._gallery = gallery
        self._desk = desk_of(shell)
        self._source = source
        self._view = self._desk.show_run(run, source, log, engine, "", list(gallery.names))
        html.frame = lambda page: marked(page, self._view)

    def begin(self, scene: Scene) -> None:
        """Make the output."""
        self._html.begin(scene)

    def draw(self, scene: Scene) -> Any:
        """The picture while the run goes on; None where the live view is it."""
        return None if self._is_live() else self._html.draw(scene)

    def send(self, drawn: Any) -> None:
        """Put the picture in the output."""
        if drawn is None:
            self.pause = _LIVE_PAUSE_S
        else:
            self._html.send(drawn)
            self.pause = self._html.pause

    def end(self, scene: Scene) -> None:
        """Leave the last picture, and below the live view what it needs to go on without a kernel."""
        self._html.end(scene)
        try:
            self._is_live()
            self._desk.end_run(self._view, scene.state)
        except Exception as failure:
            self._fail(f"{type(failure).__name__}: {failure}")

    def _is_live(self) -> bool:
        if self._view.live and (failure := self._desk.failure(self._view)):
            self._fail(failure)
            self._view.live = False
        return bool(self._view.live)

    def _fail(self, why: str) -> None:
        self._gallery.failures.setdefault(SECTION, why)


def with_widgets(
    html: KernelFront, gallery: Gallery, shell: Any, run: Cancellable, source: str, log: EventLog, engine: str
) -> Front:
    """The front with widgets; the one without where they fail to be made."""
    try:
        return WidgetFront(html, gallery, shell, run, source, log, engine)
    except Exception as failure:
        gallery.failures.setdefault(SECTION, f"{type(failure).__name__}: {failure}")
        return html
