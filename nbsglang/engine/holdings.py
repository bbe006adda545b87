"""Whose each slot of the pool is: the tree's, a request's own, or free.

A request's first `n_tree` tokens are the tree's, and locked; the slots of those after them, up to `n_computed` and
`n_planned` more, are its own.

Not here: which request gets slots, and at whose cost (`scheduler.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nbsglang.engine.radix import RadixTree
from nbsglang.engine.request import Request
from nbsglang.engine.slots import Ints, SlotList


class Holdings:
    """Moves slots between the free ones, the tree and requests. Without `caching` the tree gets none."""

    def __init__(self, tree: RadixTree, slots: SlotList, caching: bool) -> None:
        self._tree = tree
        self._slots = slots
        self._caching = caching
        self.n_evicted = 0  # tokens, ever

    def make_room(self, n: int) -> bool:
        """Whether `n` slots are free, if need be at the cost of what is cached."""
        if self._slots.n_free < n:
            self._evict(n - self._slots.n_free)
        return self._slots.n_free >= n

    def _evict(self, n: int) -> None:
        freed = self._tree.evict(n)
        self.n_evicted += len(freed)
        if len(freed):
            self._slots.give(freed)

    def begin(self, request: Request, tokens: Ints) -> None:
        """Let the request use what is cached of `tokens`, its first ones."""
        request.node, slots = self._tree.lock_prefix(tokens, request.id)
        request.n_tree = request.n_computed = len(slots)
        request.slots[: len(slots)] = slots

    def plan(self, request: Request, n: int) -> None:
        """Give the request free slots for its next `n` tokens."""
        at = request.n_computed
        request.make_room(at + n)
        request.slots[at : at + n] = self._slots.take(n)
        request.n_planned = n

    def plan_one_each(self, requests: Sequence[Request]) -> None:
        """`plan` for the next token of each of many requests, at once."""
        for request, slot in zip(requests, self._slots.take(len(requests)).tolist(), strict=True):
            at = request.n_computed
            if at == len(request.slots):
                request.make_room(at + 1)
            request.slots[at] = slot
            request.n_planned = 1

    def unplan(self, request: Request) -> None:
        """The planned tokens were not computed: their slots go back."""
        at = request.n_computed
        if request.n_planned:
            self._slots.give(request.slots[at : at + request.n_planned].copy())
            request.n_planned = 0

    def retract(self, request: Request, n: int) -> None:
        """The last `n` computed tokens turned out wrong: their slots go back."""
        request.n_computed -= n
        request.want_from = request.n_computed
        self._slots.give(request.slots[request.n_computed : request.n_computed + n].copy())

    def share(self, request: Request, n: int) -> None:
        """Let the tree own the first `n` tokens of the request, all computed.

        The order matters: first the request's row takes the canonical slots, only then are its
        duplicates freed.
        """
        start = request.n_tree
        if n <= start or not self._caching:
            return
        assert request.node is not None
        own = request.slots[start:n].copy()
        request.node, canonical = self._tree.insert(request.node, request.row[start:n].copy(), own, request.id)
        request.slots[start:n] = canonical
        request.n_tree = n
        duplicates = own[own != canonical]
        if len(duplicates):
            self._slots.give(duplicates)

    def end(self, request: Request) -> None:
        """Computed tokens become the tree's, the rest is freed, the lock ends."""
        assert request.node is not None
        self.unplan(request)
        self.share(request, request.n_settled)
        private = request.slots[request.n_tree : request.n_computed].copy()
        if len(private):
            self._slots.give(private)
        self._tree.unlock(request.node)
        request.node = None

    def flush(self) -> int:
        """Empty the tree but for what requests hold. Returns the number of freed slots."""
        n_before = self._slots.n_free
        self._evict(self._tree.n_evictable)
        return self._slots.n_free - n_before

    def check(self, running: Iterable[Request]) -> None:
        """Assert that free, tree and private slots are disjoint and together all but 0; `running` hold some."""
        held: list[int] = self._slots.free().tolist()
        n_nodes, n_locked, is_held = 0, 0, False
        for node in self._tree.nodes():
            assert node.parent is not None
            assert len(node.key) == len(node.slots) > 0
            assert node.parent.children[int(node.key[0])] is node
            n_nodes += len(node.key)
            n_locked += len(node.key) if node.locks else 0
            held.extend(node.slots.tolist())
        for request in running:
            is_held = True
            held.extend(request.slots[request.n_tree : request.n_computed + request.n_planned].tolist())
            shared = [int(s) for n in request.node.path() for s in n.slots] if request.node else []
            assert request.slots[: request.n_tree].tolist() == shared, "a row does not match its path"
        assert sorted(held) == list(range(1, self._slots.n_slots + 1)), "slots are lost or held twice"
        assert n_nodes == self._tree.n_tokens
        assert n_locked == self._tree.n_locked
        assert is_held or not n_locked, "locks are left without a running request"
