"""The one thread that tells the views of a front end what happens in the logs: ten times a second, or not at all.

It sleeps until somebody looks, and it never gets in a run's way: a channel whose sending fails is dropped.

Not here: what is sent (`channel.py`).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from nbsglang.notebook.channel import Channel

_PERIOD_S = 0.1
_JOIN_S = 2.0


class Pump:
    """See the module. The thread starts with the first channel, and ends with `stop`.

    `failures` says why channels were dropped; `cpu_s` is the processor time that the thread has taken.
    """

    def __init__(self, period_s: float = _PERIOD_S) -> None:
        self._period_s = period_s
        self._lock = threading.Lock()
        self._channels: tuple[Channel, ...] = ()
        self._wake = threading.Event()
        self._over = False
        self._thread: threading.Thread | None = None
        self.failures: dict[Channel, str] = {}
        self.cpu_s = 0.0

    def add(self, channel: Channel) -> None:
        """Let the channel go on."""
        with self._lock:
            self._channels = (*self._channels, channel)
            if self._thread is None and not self._over:
                self._thread = threading.Thread(target=self._loop, name="nbsglang-pump", daemon=True)
                self._thread.start()

    def remove(self, channel: Channel) -> None:
        """Send nothing more of it."""
        with self._lock:
            self._channels = tuple(other for other in self._channels if other is not channel)
            self.failures.pop(channel, None)

    def wake(self) -> None:
        """Somebody looks: go on at once."""
        self._wake.set()

    def stop(self) -> None:
        """End the thread."""
        self._over = True
        self._wake.set()
        with self._lock:
            self._channels = ()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _loop(self) -> None:
        while not self._over:
            for channel in self._channels:
                self._tick(channel)
            is_idle = not any(channel.is_open for channel in self._channels)
            self.cpu_s = time.thread_time()
            self._wake.wait(None if is_idle else self._period_s)
            self._wake.clear()

    def _tick(self, channel: Channel) -> None:
        try:
            channel.tick()
        except Exception as failure:
            with suppress(Exception), self._lock:
                self._channels = tuple(other for other in self._channels if other is not channel)
                self.failures[channel] = f"{type(failure).__name__}: {failure}"
