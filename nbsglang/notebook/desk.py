"""The widgets of one shell: its views, a session for each engine that is looked at, and the pump that feeds them.

A desk hangs on its shell. It is cleared when the extension is unloaded: the thread ends, the comms are closed, and the
outputs are the HTML that they were before.

Not here: what is displayed (`widget_front.py`), what a cell does with it (`live.py`).
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from ipywidgets import Layout

from nbsglang.events import EventLog
from nbsglang.notebook.budget import Budget
from nbsglang.notebook.channel import Channel
from nbsglang.notebook.pump import Pump
from nbsglang.notebook.state import DESK, state_of
from nbsglang.notebook.widget import RunView, Session, new_session, new_view, post

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_MAX_SESSIONS = 4
_MAX_VIEWS = 60
_DEAF_S = 1.5  # after so long a session is told all the same: what it asks may wait for the end of the cell
_MAX_FINAL = 48_000  # characters that views keep for the time after the kernel, in all


class Cancellable(Protocol):
    """What a run can do for a view."""

    def cancel(self, stream: str = "") -> None: ...


class _Told(NamedTuple):
    session: Session
    channel: Channel


class Shown(NamedTuple):
    """A view, and what it is of: a run on an engine, or the engine; `began` is where in the log.

    With `is_whole` all of the log is wanted, which is over.
    """

    view: RunView
    log: EventLog
    engine: str
    began: int
    is_whole: bool = False


class Desk:
    """See the module. Safe from any thread. `is_seen` once a front end has shown that it makes our widgets."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pump = Pump()
        self._budget = Budget()
        self._layout = Layout()
        self._silence = EventLog(1)  # of replays, which bring all that they show
        self._told: dict[tuple[int, str], _Told] = {}  # by log and engine, the latest last
        self._shown: dict[str, Shown] = {}  # by model id, the oldest first
        self._runs: WeakValueDictionary[str, Cancellable] = WeakValueDictionary()  # those that go on, by source
        self._ended: dict[str, int] = {}  # where in the log
        self._greeter: RunView | None = None  # of nothing, shown nowhere
        self.is_seen = threading.Event()

    @property
    def pump(self) -> Pump:
        """The thread that feeds the sessions."""
        return self._pump

    def greet(self) -> None:
        """Let a front end say now whether it makes our widgets, before there is anything to see."""
        with self._lock:
            if self._greeter is None and not self.is_seen.is_set():
                self._greeter = new_view(self._hear_view, self._layout)

    def show_run(
        self, run: Cancellable, source: str, log: EventLog, engine: str, title: str, show: list[str]
    ) -> RunView:
        """A view of a run that is about to begin."""
        with self._lock:
            self._runs[source] = run
            return self._show(log, engine, source=source, engine=engine, title=title, show=show)

    def show_engine(self, log: EventLog, engine: str, title: str, show: list[str]) -> RunView:
        """A view of all that an engine does."""
        with self._lock:
            return self._show(log, engine, source="", engine=engine, title=title, show=show)

    def show_replay(self, log: EventLog, final: str, engine: str, title: str, show: list[str]) -> RunView:
        """A view of a log that is over; `final` is all of it (see `wire.snapshot`), or "" where that is too much to be
        kept in a notebook: then its session is told all of it."""
        with self._lock:
            if final:
                return self._show(self._silence, "", source="", engine=engine, title=title, show=show, final=final)
            return self._show(log, engine, is_whole=True, source="", engine=engine, title=title, show=show)

    def end_run(self, view: RunView, state: str) -> None:
        """The run is over: its view gets what it needs to be read without a kernel."""
        with self._lock:
            source = view.source
            self._runs.pop(source, None)
            shown = self._shown.get(view.model_id)
            if shown is None:
                return
            view.state = state
            self._ended[source] = shown.log.seq
            told = self._told.get(_key(shown))
            if told is not None:
                view.final = told.channel.finish(source)
                self._forget_finals()

    def failure(self, view: RunView) -> str:
        """Why the view is told nothing more; "" if all is well."""
        with self._lock:
            shown = self._shown.get(view.model_id)
            told = None if shown is None else self._told.get(_key(shown))
            return "" if told is None else self._pump.failures.get(told.channel, "")

    def close(self) -> None:
        """End the thread and close all widgets."""
        self._pump.stop()
        with self._lock:
            for shown in self._shown.values():
                with suppress(Exception):  # the front end may be gone
                    shown.view.live = False  # who still draws goes on with HTML
                    shown.view.close()
            for told in self._told.values():
                with suppress(Exception):
                    told.session.close()
            with suppress(Exception):
                self._end_greeting()
                self._layout.close()
            for kept in (self._shown, self._told, self._ended, self._runs):
                kept.clear()

    # ------------------------------------------------------------------------------------------- under the lock

    def _show(self, log: EventLog, of: str, is_whole: bool = False, **traits: Any) -> RunView:
        view = new_view(self._hear_view, self._layout, **traits)
        self._shown[view.model_id] = shown = Shown(view, log, of, 0 if is_whole else log.seq, is_whole)
        while len(self._shown) > _MAX_VIEWS:
            self._shown.pop(next(iter(self._shown))).view.close()
        if self.is_seen.is_set():
            self._go_live(shown)
        return view

    def _go_live(self, shown: Shown) -> None:
        told = self._session_for(shown)
        if shown.view.source:
            told.channel.watch(shown.view.source, shown.began, self._ended.get(shown.view.source))
        shown.view.session = told.session.model_id
        shown.view.live = True

    def _end_greeting(self) -> None:
        if self._greeter is not None:
            self._greeter.close()
            self._greeter = None

    def _session_for(self, shown: Shown) -> _Told:
        key = _key(shown)
        told = self._told.pop(key, None)
        if told is None:
            told = self._new_session(shown)
        self._told[key] = told
        while len(self._told) > _MAX_SESSIONS:
            self._drop(next(iter(self._told)))
        return told

    def _new_session(self, shown: Shown) -> _Told:
        session = new_session(lambda content: self._hear(told, content), self._layout, shown.engine)
        tell, most = partial(post, session), shown.log.capacity if shown.is_whole else None
        channel = Channel(shown.log, shown.engine, tell, self._budget, start=shown.began, most_pending=most)
        told = _Told(session, channel)
        self._pump.add(channel)
        timer = threading.Timer(_DEAF_S, self._open, [channel])
        timer.daemon = True
        timer.start()
        return told

    def _open(self, channel: Channel) -> None:
        if not channel.is_open:
            channel.resync()
            self._pump.wake()

    def _forget_finals(self) -> None:
        """Keep the latest ones of runs; a notebook that is saved with the state of widgets stays small."""
        room = _MAX_FINAL
        for shown in reversed([shown for shown in self._shown.values() if shown.log is not self._silence]):
            room -= len(shown.view.final)
            if room < 0 and shown.view.final:
                shown.view.final = ""

    def _drop(self, key: tuple[int, str]) -> None:
        told = self._told.pop(key)
        self._pump.remove(told.channel)
        for shown in self._shown.values():
            if shown.view.session == told.session.model_id:
                shown.view.live = False
        told.session.close()

    # -------------------------------------------------------------------------- from the front end, on any thread

    def _hear_view(self, content: dict[str, Any]) -> None:
        if content.get("do") == "hello" and not self.is_seen.is_set():
            with self._lock:
                self.is_seen.set()
                for shown in list(self._shown.values()):
                    self._go_live(shown)
                self._end_greeting()

    def _hear(self, told: _Told, content: dict[str, Any]) -> None:
        told.channel.heard(at_any_time=threading.current_thread() is not threading.main_thread())
        match content.get("do"):
            case "ping":
                told.channel.say("pong", id=content.get("id"))
            case "resync":
                told.channel.resync()
                self._pump.wake()
            case "cancel":
                self._cancel(str(content.get("stream") or ""), str(content.get("source") or ""))

    def _cancel(self, stream: str, source: str) -> None:
        run = self._runs.get(source or stream.rpartition(".")[0])
        if run is not None:
            run.cancel(stream) if stream else run.cancel()


def _key(shown: Shown) -> tuple[int, str]:
    return id(shown.log), shown.engine


def desk_of(shell: InteractiveShell) -> Desk:
    """The shell's desk, made when it is first asked for. Unloading the extension clears it."""
    desk: Desk | None = shell.__dict__.get(DESK)
    if desk is None:
        desk = shell.__dict__[DESK] = Desk()
        state = state_of(shell)
        if state.undo:  # else the extension is not loaded: there is nothing to be undone
            state.undo.append(partial(clear_desk, shell))
    return desk


def clear_desk(shell: InteractiveShell) -> None:
    """End what the desk does, and forget it."""
    desk: Desk | None = shell.__dict__.pop(DESK, None)
    if desk is not None:
        desk.close()
