"""Inboxes for callers that wait in place, on a thread or in a coroutine.

Not here: the contract of an inbox (`calls.py`), programs' own waiting (`lang/hub.py`).
"""

from __future__ import annotations

import asyncio
import queue
from contextlib import suppress

from nbsglang.calls import Chunk, Failure, Reply

_SLICE_S = 0.05  # waits are cut, so that an interrupt is noticed at once on every system
Item = Chunk | Reply | Failure


class Waiting:
    """An inbox that a thread reads."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()

    def put(self, item: Item, /) -> None:
        """From any thread."""
        self._items.put(item)

    def get(self) -> Item:
        """Wait for the next item; an interrupt gets through."""
        while True:
            with suppress(queue.Empty):
                return self._items.get(timeout=_SLICE_S)


class Awaiting:
    """An inbox that a coroutine of the current event loop reads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[Item] = asyncio.Queue()

    def put(self, item: Item, /) -> None:
        """From any thread."""
        with suppress(RuntimeError):  # the event loop is closed: nobody reads any more
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    async def get(self) -> Item:
        """The next item."""
        return await self._items.get()
