"""The leaves of the radix tree that may be evicted, least recently used first.

Not here: evicting (`radix.py`).
"""

from __future__ import annotations

import heapq

from nbsglang.engine.radix_node import RadixNode


class Leaves:
    """An ordered set of free leaves. Who uses, locks or removes one need not tell: stale entries are skipped."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, RadixNode]] = []  # last use, id, node
        self._most = 64  # entries, before the stale ones are looked for

    def offer(self, node: RadixNode) -> None:
        """Take the node in, if it is a free leaf. To be called when one may have become so, or has a new last use."""
        if node.is_free_leaf:
            heapq.heappush(self._heap, (node.tick, node.id, node))
            if len(self._heap) > self._most:  # without eviction nothing else would drop stale entries
                self._heap = sorted({entry for entry in self._heap if _is_fresh(entry)})
                self._most = 2 * len(self._heap) + 64

    def pop(self) -> RadixNode | None:
        """Take the least recently used one out; None when there is none."""
        while self._heap:
            entry = heapq.heappop(self._heap)
            if _is_fresh(entry):
                return entry[2]
        return None


def _is_fresh(entry: tuple[int, int, RadixNode]) -> bool:
    tick, _, node = entry
    return node.is_free_leaf and node.tick == tick
