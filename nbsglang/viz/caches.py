"""Prefix caches that are replayed: which tokens are kept when a pool of slots is full.

`NodeCache` evicts whole leaves of a radix tree as the engine's tree does, the least recently used or the oldest first.

Not here: the best that any cache could do (`farthest.py`), the engine's own tree (`nbsglang/engine/radix.py`), who asks
for what (`record.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

NEVER = 1 << 60


class Wish(NamedTuple):
    """The tokens of a request; the first `n_cacheable` of them may come from the cache."""

    tokens: Sequence[int]
    n_cacheable: int


class Cache(Protocol):
    """A cache for the requests 0, 1, ... of a record. `n_over` is by how many slots the pool was too small at worst."""

    n_evicted: int
    n_over: int

    def begin(self, request: int, wish: Wish) -> int:
        """Look the request's prefix up and lock it; how many tokens are there."""
        ...

    def reserve(self, request: int, upto: int) -> None:
        """Take slots for its tokens up to this position, at the cost of what is not locked."""
        ...

    def share(self, request: int, upto: int) -> None:
        """Keep its tokens up to this position, for others too; twins give their slots back."""
        ...

    def end(self, request: int) -> None:
        """Let go of its locks and of slots that nobody shares."""
        ...

    def flush(self) -> None:
        """Drop all that is not locked."""
        ...


# ------------------------------------------------------------------------------------------- leaves of a tree


@dataclass(slots=True, eq=False)
class _Node:
    id: int
    tokens: Sequence[int]
    parent: _Node | None
    tick: int
    born: int
    children: dict[int, _Node] = field(default_factory=dict)
    locks: int = 0
    writer: int = -1

    def path(self) -> list[_Node]:
        """The nodes from this one up to below the root."""
        nodes, node = [], self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes


@dataclass(slots=True)
class _Held:
    """A request that runs: where its path in the tree ends, how many tokens the tree has, how many have slots."""

    node: _Node
    tokens: Sequence[int]
    n_tree: int
    n_held: int


class NodeCache:
    """See the module. With `first_in` the oldest leaf goes first, else the least recently used."""

    def __init__(self, n_slots: int, *, first_in: bool = False) -> None:
        self.n_evicted = self.n_over = 0
        self._first_in = first_in
        self._n_free = n_slots
        self._root = _Node(0, (), None, 0, 0)
        self._last_id = self._tick = 0
        self._held: dict[int, _Held] = {}
        self._leaves: list[tuple[int, int, _Node]] = []  # heap; stale entries are skipped when popped

    def begin(self, request: int, wish: Wish) -> int:
        """See `Cache`."""
        node, n, wanted = self._root, 0, wish.tokens[: wish.n_cacheable]
        while n < len(wanted) and (child := node.children.get(wanted[n])) is not None:
            shared = _common(child.tokens, wanted[n:])
            n += shared
            if shared < len(child.tokens):
                node = self._split(child, shared)
                break
            node = child
        self._touch(node)
        self._lock(node, 1)
        self._held[request] = _Held(node, wish.tokens, n, n)
        return n

    def reserve(self, request: int, upto: int) -> None:
        """See `Cache`."""
        held = self._held[request]
        if upto > held.n_held:
            self._evict(upto - held.n_held - self._n_free)
            self._n_free -= upto - held.n_held
            held.n_held = upto
            self.n_over = max(self.n_over, -self._n_free)

    def share(self, request: int, upto: int) -> None:
        """See `Cache`."""
        held = self._held[request]
        upto = min(upto, len(held.tokens))
        if upto <= held.n_tree:
            return
        self.reserve(request, upto)
        new = held.tokens[held.n_tree : upto]
        held.n_tree = upto
        node = held.node
        if node.writer == request and not node.children and node.locks == 1:  # its own leaf grows
            node.tokens = [*node.tokens, *new]
            self._touch(node)
            return
        end, n_known = self._descend(node, new)
        self._n_free += n_known
        if n_known < len(new):
            end = self._add(end, new[n_known:], request)
        self._touch(end)
        self._lock(end, 1)
        self._lock(node, -1)
        held.node = end

    def end(self, request: int) -> None:
        """See `Cache`."""
        held = self._held.pop(request)
        self._n_free += held.n_held - held.n_tree
        self._lock(held.node, -1)

    def flush(self) -> None:
        """See `Cache`."""
        self._evict(NEVER)

    def _descend(self, node: _Node, tokens: Sequence[int]) -> tuple[_Node, int]:
        n = 0
        while n < len(tokens) and (child := node.children.get(tokens[n])) is not None:
            shared = _common(child.tokens, tokens[n:])
            node = child if shared == len(child.tokens) else self._split(child, shared)
            n += shared
        return node, n

    def _add(self, parent: _Node, tokens: Sequence[int], request: int) -> _Node:
        self._tick += 1
        self._last_id += 1
        node = _Node(self._last_id, tokens, parent, self._tick, self._last_id, writer=request)
        parent.children[tokens[0]] = node
        return node

    def _split(self, node: _Node, at: int) -> _Node:
        parent = node.parent
        assert parent is not None
        self._last_id += 1
        upper = _Node(
            self._last_id, node.tokens[:at], parent, node.tick, node.born, {node.tokens[at]: node}, node.locks
        )
        parent.children[node.tokens[0]] = upper
        node.parent, node.tokens, node.writer = upper, node.tokens[at:], -1
        return upper

    def _touch(self, node: _Node) -> None:
        self._tick += 1
        for at in node.path():
            at.tick = self._tick

    def _lock(self, node: _Node, delta: int) -> None:
        for at in node.path():
            at.locks += delta
            self._offer(at)

    def _offer(self, node: _Node) -> None:
        if node.parent is not None and not node.children and not node.locks:
            heapq.heappush(self._leaves, (self._age(node), node.id, node))

    def _age(self, node: _Node) -> int:
        return node.born if self._first_in else node.tick

    def _evict(self, n: int) -> None:
        while n > 0 and self._leaves:
            age, _, node = heapq.heappop(self._leaves)
            parent = node.parent
            if parent is None or node.children or node.locks or age != self._age(node):
                continue
            del parent.children[node.tokens[0]]
            node.parent = None
            n -= len(node.tokens)
            self._n_free += len(node.tokens)
            self.n_evicted += len(node.tokens)
            self._offer(parent)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
