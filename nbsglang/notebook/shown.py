"""Pictures that go on by themselves: an engine that is watched, and a saved log that is replayed.

Each is a picture first; where the front end makes our widgets, a live view takes its place.

Not here: the runs of cells (`live.py`), the widgets (`desk.py`).
"""

from __future__ import annotations

from typing import Any

from IPython.display import display

from nbsglang.events import EventLog
from nbsglang.notebook.excerpt import MAX_CHARACTERS
from nbsglang.notebook.fronts import widgets_wanted
from nbsglang.notebook.state import DESK
from nbsglang.viz.export import last_engine, lines_of
from nbsglang.viz.fold import fold
from nbsglang.viz.gallery import Gallery
from nbsglang.viz.picture import Picture
from nbsglang.viz.scene import Scene
from nbsglang.viz.streams import STREAMS
from nbsglang.viz.wire import begun, snapshot

ENGINE_VIEWS = ("numbers", "tree", "timeline", "streams")
LOG_VIEWS = ("numbers", "streams", "tree", "timeline", "fsm")
_TOO_LONG = "This is the end of the log. To play it, run the cell again: it is too long to be kept in a notebook."


def show_engine(
    shell: Any, log: EventLog, engine: str, picture: Picture, *, title: str = "", show: tuple[str, ...] = ENGINE_VIEWS
) -> None:
    """Show what an engine does from now on; `picture` is how it is at this moment. `engine` is its source."""
    desk = _desk(shell)
    view = None if desk is None else desk.show_engine(log, engine, title, list(show))
    _display(picture, view)


def show_log(
    shell: Any, log: EventLog, *, engine: str | None = None, title: str = "", show: tuple[str, ...] = LOG_VIEWS
) -> None:
    """Show a log that is over, from its beginning to its end. `engine` as for `viz.export.html_page`."""
    events = log.since(0)
    engine = last_engine(events) if engine is None else engine
    lines = lines_of(events, engine)
    desk = _desk(shell)
    picture = _picture(log, engine, title, show)
    if desk is None:
        _display(picture, None)
        return
    final = snapshot(begun(lines[0][0] if lines else 1), lines)
    if len(final) > MAX_CHARACTERS:
        final, picture = "", Picture(f'{picture.html}<div style="opacity:.75">{_TOO_LONG}</div>', picture.text)
    _display(picture, desk.show_replay(log, final, engine, title, list(show)))


def is_live(shell: Any) -> bool:
    """Whether the front end has shown that it makes our widgets."""
    desk = vars(shell).get(DESK)
    return desk is not None and desk.is_seen.is_set()


def _picture(log: EventLog, engine: str, title: str, show: tuple[str, ...]) -> Picture:
    events = (event for event in log.since(0))
    runs = dict.fromkeys(event.source for event in log.since(0) if isinstance(event.body, STREAMS))
    view = fold(events, engine or "-", *runs)
    streams = tuple(stream for run in runs for stream in view.streams_of(run))
    scene = Scene(view, streams, view.marks, title, state="")
    gallery = Gallery(show)
    return Picture(gallery.html(scene), gallery.text(scene))


def _desk(shell: Any) -> Any:
    """The shell's desk; None where there is no front end that could make widgets, and where they are not installed."""
    if getattr(shell, "kernel", None) is None or not widgets_wanted():
        return None
    try:
        from nbsglang.notebook.desk import desk_of  # it loads ipywidgets and anywidget
    except Exception:  # they are missing, or do not work with each other
        return None
    return desk_of(shell)


def _display(picture: Picture, view: Any) -> None:
    if view is not None:
        from nbsglang.notebook.widget import marked

        picture = Picture(marked(picture.html, view), picture.text)
    display(picture)  # type: ignore[no-untyped-call]
