"""How much may be sent: the server of a notebook drops what comes too fast, whoever sends it.

Not here: what is sent (`channel.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# A second of the server's takes what is saved up and what comes meanwhile: 20 messages and 300 kB in all.
_MESSAGES, _MESSAGES_PER_S = 5.0, 15.0
_BYTES, _BYTES_PER_S = 100_000.0, 200_000.0


class Budget:
    """For all messages of a kernel, from any thread. What has no room waits; a large message may take it in advance."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._n_messages = _MESSAGES
        self._n_bytes = _BYTES
        self._at = clock()

    def has_room(self, n_messages: int = 1) -> bool:
        """Whether so many messages may be sent now."""
        with self._lock:
            self._refill()
            return self._n_messages >= n_messages and self._n_bytes > 0

    def take(self, n_bytes: int) -> None:
        """A message of this size is being sent."""
        with self._lock:
            self._refill()
            self._n_messages -= 1
            self._n_bytes -= n_bytes

    def _refill(self) -> None:
        now = self._clock()
        since, self._at = now - self._at, now
        self._n_messages = min(_MESSAGES, self._n_messages + since * _MESSAGES_PER_S)
        self._n_bytes = min(_BYTES, self._n_bytes + since * _BYTES_PER_S)
