"""Watching a run while a cell executes it: a thread looks at the event log, and a front shows what it finds.

The run never notices: a view that fails is switched off with one warning, and the result is what it would have been.

Not here: where pictures go (`fronts.py`), what they show (`nbsglang/viz`).
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any, Protocol

from nbsglang.errors import Cancelled
from nbsglang.events import EventLog
from nbsglang.notebook.fronts import Front, KernelFront, front_for, is_kernel
from nbsglang.viz.fold import View
from nbsglang.viz.follow import Follower
from nbsglang.viz.gallery import Gallery
from nbsglang.viz.scene import Scene, Stats

_JOIN_S = 2.0  # how long the end waits for a picture that is being drawn
_LOOK_S = 0.1  # how often a run in the background is asked whether it is over
_SETTLE_S = 0.2  # and for the engine to let go of what was cancelled
_SHARE = 0.1  # of the time that drawing may take from the run
_ATTRIBUTE = "nbsglang_followers"  # of the shell, which outlives a reload of the extension
_MAX_FOLLOWERS = 4
_NO_ENGINE = "-"  # a source that nobody has


class Watched(Protocol):
    """What is asked of a run."""

    @property
    def source(self) -> str: ...
    @property
    def stats(self) -> Stats: ...
    @property
    def error(self) -> BaseException | None: ...
    def cancel(self, stream: str = "") -> None: ...


class Background(Watched, Protocol):
    """And of one that goes on by itself."""

    @property
    def done(self) -> bool: ...


@contextmanager
def watching(
    run: Watched,
    *,
    shell: Any,
    log: EventLog,
    engine_source: str | None,
    show: tuple[str, ...] = ("numbers", "streams", "tree"),
    plain: bool = False,
    quiet: bool = False,
) -> Iterator[None]:
    """Show `run` while the body executes it, and once more at the end, however it ends.

    `show` names sections of the picture; nothing is shown without any, or if `quiet`. `plain` forces text.
    """
    gallery = _gallery(show, engine_source)
    if quiet or not gallery.names:
        yield
        return
    watcher = _guarded(lambda: _Watcher(run, shell, log, engine_source, gallery, plain))
    error: BaseException | None = None
    try:
        yield
    except BaseException as raised:
        error = raised
        raise
    finally:
        if watcher is not None:
            watcher.end(error)
        del error  # its frames hold this one


def watch_in_background(
    run: Background,
    *,
    shell: Any,
    log: EventLog,
    engine_source: str | None,
    show: tuple[str, ...] = ("numbers", "streams", "tree"),
    plain: bool = False,
    beside: AbstractContextManager[Any] | None = None,
) -> None:
    """Show a run that will go on by itself, from now to its end; `beside` is entered now, and left before the last
    picture. Only in kernels: elsewhere a thread had to print."""
    gallery = _gallery(show, engine_source)
    if not gallery.names or not is_kernel(shell):
        return
    watcher = _guarded(lambda: _Watcher(run, shell, log, engine_source, gallery, plain))
    if watcher is not None:
        with ExitStack() as entered:
            entered.enter_context(beside or nullcontext())
            todo = (run, watcher, entered.pop_all())
            threading.Thread(target=_wait, args=todo, name=f"nbsglang-wait-{run.source}", daemon=True).start()


def _wait(run: Background, watcher: _Watcher, beside: ExitStack) -> None:
    with suppress(Exception), beside:
        while not run.done:
            time.sleep(_LOOK_S)
    with suppress(Exception):
        watcher.end(None, warn=False)  # a thread warns nobody


def _gallery(show: tuple[str, ...], engine_source: str | None) -> Gallery:
    """The sections that there are: without an engine no tree, and the numbers where nothing else was asked for."""
    if engine_source or not show:
        return Gallery(show)
    return Gallery([name for name in show if name != "tree"] or ["numbers"])


class _Watcher:
    """A run, its marks in the tree, and the thread that looks."""

    def __init__(
        self, run: Watched, shell: Any, log: EventLog, engine_source: str | None, gallery: Gallery, plain: bool
    ) -> None:
        self._run = run
        self._gallery = gallery
        self._follower = _follower(shell, log, engine_source)
        self._follower.add(run.source)
        self._marks = self._follower.watch()
        self._began = time.monotonic()
        self._over = threading.Event()
        self._failure: str | None = None
        make = _widgets(run, shell, log, engine_source, gallery)
        self._front: Front = front_for(shell, gallery, plain=plain, with_widgets=make)
        self._front.begin(self._scene_now("running"))
        self._thread = threading.Thread(target=self._look, name=f"nbsglang-view-{run.source}", daemon=True)
        self._thread.start()

    def end(self, error: BaseException | None, *, warn: bool = True) -> None:
        """Stop looking, and show how it ended. Raises nothing of its own."""
        try:
            self._over.set()
            self._thread.join(_JOIN_S)
            state = _state(error or self._run.error)
            if state == "cancelled":
                self._settle()
            scene = self._follower.look(lambda view: self._scene(view, state))
            self._follower.look(lambda view: self._front.end(scene))
        except Exception as failure:
            self._failure = self._failure or f"{type(failure).__name__}: {failure}"
        finally:
            self._follower.unwatch(self._marks)
            self._follower.remove(self._run.source)
        failures = self._gallery.failures | ({"picture": self._failure} if self._failure else {})
        if failures and warn:
            _warn("; ".join(f"the view {name!r} was switched off: {why}" for name, why in failures.items()))

    def _look(self) -> None:
        """The thread: a picture whenever something has happened, and not too often."""
        seen, took = -1, 0.0
        try:
            while not self._over.wait(max(self._front.pause, took / _SHARE)):
                if (version := self._follower.poll()) != seen:
                    seen, began = version, time.monotonic()
                    drawn = self._follower.look(lambda view: self._front.draw(self._scene(view, "running")))
                    self._front.send(drawn)
                    took = time.monotonic() - began
        except Exception as failure:
            self._failure = f"{type(failure).__name__}: {failure}"

    def _settle(self) -> None:
        """Requests of cancelled calls end after the engine's step; what they held is locked until then."""
        until = time.monotonic() + _SETTLE_S
        while time.monotonic() < until and self._follower.look(self._has_open_requests):
            time.sleep(0.01)

    def _has_open_requests(self, view: View) -> bool:
        calls = (call for s in view.streams_of(self._run.source) for call in s.calls.values())
        return any(not request.ended for call in calls for request in call.requests)

    def _scene_now(self, state: str) -> Scene:
        return self._follower.look(lambda view: self._scene(view, state))

    def _scene(self, view: View, state: str) -> Scene:
        streams = tuple(view.streams_of(self._run.source))
        title = streams[0].label if streams else ""
        seconds = time.monotonic() - self._began
        return Scene(view, streams, self._marks, title or "cell", state, seconds, self._run.stats)


def _state(error: BaseException | None) -> str:
    if error is None:
        return "done"
    return "cancelled" if isinstance(error, KeyboardInterrupt | Cancelled) else "failed"


def _follower(shell: Any, log: EventLog, engine_source: str | None) -> Follower:
    """The shell's follower of this engine: it has folded what came before, so that a cell need not do it again."""
    kept: dict[tuple[int, str], Follower] = shell.__dict__.setdefault(_ATTRIBUTE, {}) if shell is not None else {}
    key = (id(log), engine_source or _NO_ENGINE)
    follower = kept.pop(key, None)
    if follower is None or follower.log is not log:
        follower = Follower(log, engine_source or _NO_ENGINE)
    kept[key] = follower  # as the newest
    while len(kept) > _MAX_FOLLOWERS:
        del kept[next(iter(kept))]
    return follower


def _widgets(
    run: Watched, shell: Any, log: EventLog, engine_source: str | None, gallery: Gallery
) -> Callable[[KernelFront], Front] | None:
    """What makes a kernel's front one with widgets; None where there is no kernel, or no package for them."""
    if getattr(shell, "kernel", None) is None:
        return None
    try:
        from nbsglang.notebook.widget_front import with_widgets  # it loads ipywidgets and anywidget
    except Exception:  # they are missing, or do not work with each other
        return None
    return lambda html: with_widgets(html, gallery, shell, run, run.source, log, engine_source or "")


def _guarded(make: Any) -> Any:
    try:
        return make()
    except Exception as failure:
        _warn(f"the run is not shown: {type(failure).__name__}: {failure}")
        return None


def _warn(message: str) -> None:
    """One warning; also where warnings are made errors, it does not reach the run."""
    with suppress(Warning):
        warnings.warn(message, RuntimeWarning, stacklevel=2)
