"""The cache that hits most: it knows what will be asked, and gives up the tokens that are wanted last of all.

This is Belady's rule, token by token; for requests one after the other nothing can hit more.

Not here: caches that know no future (`caches.py`).
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from nbsglang.viz.caches import NEVER, Wish


@dataclass(slots=True)
class _Taken:
    """A request that runs: its prefixes by number, and as `_Held`."""

    path: Sequence[int]
    n_hit: int
    n_tree: int
    n_held: int


class FarthestCache:
    """See the module; `wishes` are all that will come, in their order. Each token is kept or given up by itself."""

    def __init__(self, n_slots: int, wishes: Sequence[Wish]) -> None:
        self.n_evicted = self.n_over = 0
        self._n_free = n_slots
        self._parents: list[int] = [-1]  # prefixes have numbers; 0 is the empty one
        self._depths: list[int] = [0]
        self._uses: list[list[int]] = [[]]  # which requests can hit the prefix
        known: dict[tuple[int, int], int] = {}
        self._paths = [self._path(n, wish, known) for n, wish in enumerate(wishes)]
        self._locks = [0] * len(self._parents)
        self._cached = bytearray(len(self._parents))
        self._n_below = [0] * len(self._parents)  # cached prefixes that are one token longer
        self._taken: dict[int, _Taken] = {}
        self._heap: list[tuple[int, int, int]] = []
        self._now = -1

    def begin(self, request: int, wish: Wish) -> int:
        """See `Cache`."""
        self._now = max(self._now, request)
        path, n = self._paths[request], 0
        while n < min(wish.n_cacheable, len(path)) and self._cached[path[n]]:
            self._locks[path[n]] += 1
            n += 1
        self._taken[request] = _Taken(path, n, n, n)
        return n

    def reserve(self, request: int, upto: int) -> None:
        """See `Cache`."""
        taken = self._taken[request]
        if upto > taken.n_held:
            self._evict(upto - taken.n_held - self._n_free, taken)
            self._n_free -= upto - taken.n_held
            taken.n_held = upto
            self.n_over = max(self.n_over, -self._n_free)

    def share(self, request: int, upto: int) -> None:
        """See `Cache`."""
        taken = self._taken[request]
        upto = min(upto, len(taken.path))
        if upto <= taken.n_tree:
            return
        self.reserve(request, upto)
        for prefix in taken.path[taken.n_tree : upto]:
            self._locks[prefix] += 1
            if self._cached[prefix]:
                self._n_free += 1
            else:
                self._cached[prefix] = 1
                self._n_below[self._parents[prefix]] += 1
        taken.n_tree = upto

    def end(self, request: int) -> None:
        """See `Cache`."""
        taken = self._taken.pop(request)
        self._n_free += taken.n_held - taken.n_tree
        for prefix in taken.path[: taken.n_tree]:
            self._locks[prefix] -= 1
            self._offer(prefix)

    def flush(self) -> None:
        """See `Cache`."""
        self._evict(NEVER, None)

    def _path(self, request: int, wish: Wish, known: dict[tuple[int, int], int]) -> list[int]:
        path, at = [], 0
        for depth, token in enumerate(wish.tokens, 1):
            number = known.get((at, token))
            if number is None:
                number = known[(at, token)] = len(self._parents)
                self._parents.append(at)
                self._depths.append(depth)
                self._uses.append([])
            if depth <= wish.n_cacheable:
                self._uses[number].append(request)
            path.append(number)
            at = number
        return path

    def _next_use(self, prefix: int) -> int:
        uses = self._uses[prefix]
        at = bisect_right(uses, self._now)
        return uses[at] if at < len(uses) else NEVER

    def _offer(self, prefix: int) -> None:
        if not self._locks[prefix]:
            heapq.heappush(self._heap, (-self._next_use(prefix), -self._depths[prefix], prefix))

    def _evict(self, n: int, taken: _Taken | None) -> None:
        if taken is not None and n > 0:  # what the request itself computes anew is worth nothing
            for prefix in reversed(taken.path[taken.n_tree :]):
                if n > 0 and self._is_loose(prefix):
                    self._drop(prefix)
                    n -= 1
        while n > 0 and self._heap:
            use, _, prefix = heapq.heappop(self._heap)
            if self._is_loose(prefix) and -use == self._next_use(prefix):
                self._drop(prefix)
                n -= 1

    def _is_loose(self, prefix: int) -> bool:
        return bool(self._cached[prefix]) and not self._locks[prefix] and not self._n_below[prefix]

    def _drop(self, prefix: int) -> None:
        self._cached[prefix] = 0
        self._n_below[self._parents[prefix]] -= 1
        self._n_free += 1
        self.n_evicted += 1
