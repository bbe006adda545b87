"""The radix tree over token ids that owns the cached part of the KV pool.

Each edge carries token ids and the pool slots that hold their keys and values. Requests lock the path
they use; what is not locked may be evicted, least recently used leaves first. Time is a logical tick, so
that eviction is reproducible. Source: the SGLang paper (arXiv 2312.07104), section 3.

Not here: an edge (`radix_node.py`), the order of leaves (`leaves.py`), free slots (`slots.py`) and tensors (`pool.py`):
the tree moves plain integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nbsglang.engine.leaves import Leaves
from nbsglang.engine.radix_node import RadixNode
from nbsglang.engine.slots import Ints
from nbsglang.events import (
    Body,
    NodeAdded,
    NodeEvicted,
    NodeExtended,
    NodeLocked,
    NodeSplit,
    NodeTouched,
    Snapshot,
)

_EMPTY: Ints = np.empty(0, np.int32)


def common_prefix(a: Ints, b: Ints) -> int:
    """The number of leading elements that two arrays share."""
    n = min(len(a), len(b))
    differs = a[:n] != b[:n]
    first = int(differs.argmax()) if n else 0
    return first if n and differs[first] else n


class Match(NamedTuple):
    """The longest prefix in the tree: `n` tokens, ending `offset` tokens into the edge of `node`."""

    node: RadixNode
    offset: int
    n: int


class RadixTree:
    """The tree; `emit` receives an event for every change, from which a view can rebuild it."""

    def __init__(self, emit: Callable[[Body], object] = lambda body: None) -> None:
        self.root = RadixNode(0, _EMPTY, _EMPTY, None, 0)
        self.n_tokens = 0
        self.n_locked = 0
        self._emit = emit
        self._next_id = 1
        self._tick = 0
        self._leaves = Leaves()

    @property
    def n_evictable(self) -> int:
        """Tokens that eviction could free now."""
        return self.n_tokens - self.n_locked

    # --------------------------------------------------------------------------------------- reading

    def match(self, tokens: Ints) -> Match:
        """Find the longest cached prefix of `tokens`; changes nothing."""
        node, n = self.root, 0
        while n < len(tokens):
            child = node.children.get(int(tokens[n]))
            if child is None:
                break
            shared = common_prefix(child.key, tokens[n:])
            n += shared
            if shared < len(child.key):
                return Match(child, shared, n)
            node = child
        return Match(node, len(node.key), n)

    def n_unlocked(self, match: Match) -> int:
        """Tokens of the match that are evictable now and would not be once it is locked."""
        total, node, taken = 0, match.node, match.offset
        while node.parent is not None and node.locks == 0:
            total += taken
            node = node.parent
            taken = len(node.key)
        return total

    def nodes(self) -> Iterator[RadixNode]:
        """All nodes but the root, parents before children."""
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def snapshot(self) -> Snapshot:
        """The whole tree as plain values, by id."""
        rows = ((n.id, n.parent.id if n.parent else 0, tuple(n.key.tolist()), n.locks, n.tick) for n in self.nodes())
        return Snapshot(tuple(sorted(rows)))

    # --------------------------------------------------------------------------------------- changing

    def lock_prefix(self, tokens: Ints, request: int = -1) -> tuple[RadixNode, Ints]:
        """Lock the longest cached prefix of `tokens` and mark it used.

        Returns the node where it ends (an edge that is matched in part is split there) and its slots,
        int32 [n]. The caller owes one `unlock` of the node.
        """
        match = self.match(tokens)
        node = match.node
        if match.offset < len(node.key):
            node = self._split(node, match.offset, request)
        self._touch(node, request)
        self.lock(node)
        path = node.path()
        return node, np.concatenate([n.slots for n in path]) if path else _EMPTY

    def insert(self, node: RadixNode, tokens: Ints, slots: Ints, request: int = -1) -> tuple[RadixNode, Ints]:
        """Put `tokens` with their `slots` below `node`, on which the caller holds a lock.

        The lock moves to the node where the tokens now end. Returns that node and the canonical slots,
        int32 [n]: where the tree had the tokens already, its own slots; the caller must use these from
        now on and only then free its duplicates.
        """
        if len(tokens) == 0:
            return node, slots
        if node.writer == request != -1 and not node.children and node.locks == 1:
            self._extend(node, tokens, slots, request)
            self._touch(node, request, quiet=True)
            return node, slots
        end, known = self._descend(node, tokens, request)
        n_known = len(known)
        if n_known < len(tokens):
            end = self._add(end, tokens[n_known:].copy(), slots[n_known:].copy(), request)
        self._touch(end, request, quiet=n_known == 0)
        self.lock(end)
        self.unlock(node)
        return end, np.concatenate([known, slots[n_known:]])

    def lock(self, node: RadixNode) -> None:
        """Protect the path to `node` from eviction until `unlock`."""
        self._emit(NodeLocked(node.id, 1))
        at: RadixNode | None = node
        while at is not None and at.parent is not None:
            if at.locks == 0:
                self.n_locked += len(at.key)
            at.locks += 1
            at = at.parent

    def unlock(self, node: RadixNode) -> None:
        """Undo one `lock` of the node."""
        self._emit(NodeLocked(node.id, -1))
        at: RadixNode | None = node
        while at is not None and at.parent is not None:
            assert at.locks > 0, f"node {at.id} is not locked"
            at.locks -= 1
            if at.locks == 0:
                self.n_locked -= len(at.key)
                self._leaves.offer(at)
            at = at.parent

    def evict(self, n_tokens: int) -> Ints:
        """Remove least recently used unlocked leaves until at least `n_tokens` slots are free or none is left.

        Returns the freed slots.
        """
        freed: list[Ints] = []
        n_freed = 0
        while n_freed < n_tokens and (node := self._leaves.pop()) is not None:
            n_freed += len(node.key)
            freed.append(self._remove(node))
        return np.concatenate(freed) if freed else _EMPTY

    # ------------------------------------------------------------------------------------ inner parts

    def _descend(self, node: RadixNode, tokens: Ints, request: int) -> tuple[RadixNode, Ints]:
        """Follow `tokens` below `node` as far as the tree has them, splitting the last edge where needed."""
        known: list[Ints] = [_EMPTY]
        n = 0
        while n < len(tokens):
            child = node.children.get(int(tokens[n]))
            if child is None:
                break
            shared = common_prefix(child.key, tokens[n:])
            node = child if shared == len(child.key) else self._split(child, shared, request)
            known.append(node.slots)
            n += shared
        return node, np.concatenate(known)

    def _add(self, parent: RadixNode, key: Ints, slots: Ints, request: int) -> RadixNode:
        self._tick += 1
        node = RadixNode(self._next_id, key, slots, parent, self._tick)
        self._next_id += 1
        node.writer = request
        parent.children[int(key[0])] = node
        self.n_tokens += len(key)
        self._emit(NodeAdded(node.id, parent.id, tuple(key.tolist()), node.tick, request))
        return node

    def _extend(self, node: RadixNode, tokens: Ints, slots: Ints, request: int) -> None:
        """Let the leaf that the request itself added grow: what one request computes is one edge."""
        node.key = np.concatenate([node.key, tokens])
        node.slots = np.concatenate([node.slots, slots])
        self.n_tokens += len(tokens)
        self.n_locked += len(tokens)
        self._emit(NodeExtended(node.id, tuple(tokens.tolist()), self._tick, request))

    def _split(self, node: RadixNode, at: int, request: int) -> RadixNode:
        """Cut the edge of `node` after `at` tokens; the new upper node is returned, `node` keeps the rest."""
        assert node.parent is not None
        assert 0 < at < len(node.key)
        upper = RadixNode(self._next_id, node.key[:at].copy(), node.slots[:at].copy(), node.parent, node.tick)
        self._next_id += 1
        upper.locks = node.locks
        node.writer = -1
        upper.children[int(node.key[at])] = node
        node.parent.children[int(node.key[0])] = upper
        node.parent, node.key, node.slots = upper, node.key[at:].copy(), node.slots[at:].copy()
        self._emit(NodeSplit(node.id, upper.id, at, request))
        return upper

    def _touch(self, node: RadixNode, request: int, quiet: bool = False) -> None:
        """Give the path to `node` a new tick; `quiet` where the event of an added edge says it already."""
        self._tick += 1
        path = node.path()
        for at in path:
            at.tick = self._tick
        if path:
            self._emit(NodeTouched(tuple(n.id for n in path), self._tick, -1 if quiet else request))

    def _remove(self, node: RadixNode) -> Ints:
        parent = node.parent
        assert parent is not None
        del parent.children[int(node.key[0])]
        node.parent = None
        self.n_tokens -= len(node.key)
        self._emit(NodeEvicted(node.id, len(node.key)))
        self._leaves.offer(parent)
        return node.slots
