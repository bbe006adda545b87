"""Which requests run, and how many tokens of each are computed in the next step.

One pool serves cached and running tokens. Running decodes come first, then running prefills, then
admissions in the order of the policy. A request that shares an uncomputed prefix with one that is
computing it waits for it. When the pool is full, least recently used leaves of the tree are evicted,
then the youngest request is preempted: its computed tokens stay in the tree as long as they can.

Not here: tensors and the model; a plan is counts only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from nbsglang.engine.config import Policy
from nbsglang.engine.radix import Ints, Match, RadixTree, common_prefix
from nbsglang.engine.request import Request
from nbsglang.engine.slots import SlotList
from nbsglang.events import Admitted, Body, Preempted


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a step and of admission.

    `max_batch` requests run at once; a step computes at most `chunk_tokens` prompt tokens. `lookahead`
    generated tokens of each running request are counted as taken when another is admitted. At most
    `max_passed` later arrivals overtake a request. The `window` oldest waiting requests are ordered. A step with
    prompt tokens left over has a multiple of `tile` rows in all.
    """

    max_batch: int
    chunk_tokens: int
    lookahead: int = 64
    max_passed: int = 64
    window: int = 256
    tile: int = 1


class Scheduler:
    """Owner of the queue, the running set, the tree and the free slots."""

    def __init__(
        self,
        tree: RadixTree,
        slots: SlotList,
        limits: Limits,
        policy: Policy = "prefix",
        emit: Callable[[Body], object] = lambda body: None,
        caching: bool = True,
    ) -> None:
        self.tree = tree
        self.slots = slots
        self.limits = limits
        self.waiting: list[Request] = []  # by arrival, preempted ones at their old place
        self.running: list[Request] = []  # by admission: the last is the youngest
        self.n_preempted = 0
        self.chunk_tokens = limits.chunk_tokens  # prompt tokens of the next step
        self._policy = policy
        self._emit = emit
        self._caching = caching
        self._random = random.Random(0)

    # ------------------------------------------------------------------------------------- the plan

    def plan(self) -> list[Request]:
        """Choose the next step: sets `n_planned`, reserves slots, returns the requests that compute.

        Those with few tokens come first in it: decodes, then the ends of prompts, then long chunks.
        """
        decoding: list[Request] = []
        extending: list[Request] = []
        for request in self.running:
            n = request.n_missing
            if n:
                (decoding if n == 1 else extending).append(request)
        self._reserve_one_each(decoding)
        budget = self._budget(len(decoding))
        for request in extending:
            if budget and request.node is not None:  # not preempted by an earlier one of this loop
                n = min(request.n_missing, budget)
                budget -= n if self._reserve(request, n) else 0
        n_before = len(self.running)
        self._admit(budget)
        each = (*decoding, *extending, *self.running[n_before:])
        return sorted((request for request in each if request.n_planned), key=lambda request: request.n_planned)

    def _budget(self, n_decoding: int) -> int:
        """Prompt tokens of a step in which so many requests decode."""
        n_rows, tile = self.chunk_tokens + n_decoding, self.limits.tile
        return self.chunk_tokens - (n_rows % tile if self.chunk_tokens > tile else 0)

    @property
    def is_tight(self) -> bool:
        """Whether the next plan may have to preempt: the running requests want more slots than the cache can give."""
        n_room = self.slots.n_free + self.tree.n_evictable
        if n_room >= len(self.running) + self.chunk_tokens:
            return False
        return n_room < sum(request.n_missing for request in self.running)

    def _reserve_one_each(self, requests: list[Request]) -> None:
        """A slot for each of many decodes: at once where there is room, which is nearly always."""
        n = len(requests)
        if self.slots.n_free < n:
            self._evict(n - self.slots.n_free)
        if self.slots.n_free < n:
            for request in requests:
                if request.node is not None:  # not preempted by an earlier one of this loop
                    self._reserve(request, 1)
            return
        for request, slot in zip(requests, self.slots.take(n).tolist(), strict=True):
            at = request.n_computed
            if at == len(request.slots):
                request.make_room(at + 1)
            request.slots[at] = slot
            request.n_planned = 1

    def _reserve(self, request: Request, n: int) -> bool:
        """Give the request slots for `n` more tokens, at the cost of the cache, then of younger requests."""
        while self.slots.n_free < n:
            self._evict(n - self.slots.n_free)
            if self.slots.n_free >= n:
                break
            victim = self.running[-1]
            self.preempt(victim)
            if victim is request:
                return False
        at = request.n_computed
        request.make_room(at + n)
        request.slots[at : at + n] = self.slots.take(n)
        request.n_planned = n
        return True

    def _evict(self, n: int) -> None:
        freed = self.tree.evict(n)
        if len(freed):
            self.slots.give(freed)

    # ------------------------------------------------------------------------------------ admission

    def _admit(self, budget: int) -> None:
        if not self.waiting or budget <= 0 or len(self.running) >= self.limits.max_batch:
            return
        matched = {r.id: self._match(r).n for r in self.waiting[: self.limits.window]}
        order = self._order(self.waiting[: self.limits.window], matched)
        n_later: dict[int, int] = {}  # how many admissions of this step overtook a request, by id
        while order and budget > 0 and len(self.running) < self.limits.max_batch:
            request = self._next(order, matched, n_later)
            if request is None or not self._fits(request):
                break
            order.remove(request)
            for other in order:
                if other.id < request.id:
                    n_later[other.id] = n_later.get(other.id, 0) + 1
            budget -= self._start(request, budget)
        for request in self.waiting:
            request.n_passed += n_later.get(request.id, 0)

    def _next(self, order: list[Request], matched: dict[int, int], n_later: dict[int, int]) -> Request | None:
        """The first of `order` that may start now; the oldest, once it was passed over too often."""
        oldest = min(order, key=lambda r: r.id)
        if oldest.n_passed + n_later.get(oldest.id, 0) >= self.limits.max_passed:
            return oldest
        leaders = [r for r in self.running if r.n_computed < r.n_prompt - 1] if self._caching else []
        return next((r for r in order if not _waits_for_prefix(r, matched[r.id], leaders)), None)

    def _fits(self, request: Request) -> bool:
        """Whether the pool can hold it beside what the running requests will still need."""
        match = self._match(request)
        ahead = sum(min(r.max_new - (r.n_tokens - r.n_prompt), self.limits.lookahead) for r in self.running)
        ahead += sum(r.n_missing - r.n_planned for r in self.running)
        own = request.goal - match.n + min(request.max_new, self.limits.lookahead)
        room = self.slots.n_free + self.tree.n_evictable - self.tree.n_unlocked(match)
        return own + ahead <= room or (not self.running and request.goal - match.n <= room)

    def _start(self, request: Request, budget: int) -> int:
        """Admit: lock its prefix, plan its first chunk. Returns how much of the budget that takes."""
        node, slots = self.tree.lock_prefix(self._cacheable(request), request.id)
        request.node = node
        request.n_tree = request.n_computed = len(slots)
        request.slots[: len(slots)] = slots
        if not request.admitted:
            request.admitted = True
            request.n_cached = len(slots)
        self.waiting.remove(request)
        self.running.append(request)
        self._emit(Admitted(request.id, request.call_id, len(slots), request.n_missing, node.id))
        n = min(request.n_missing, budget)
        if n:
            self._reserve(request, n)
        return n

    def _cacheable(self, request: Request) -> Ints:
        """The tokens that may come from the cache: one whose logits are wanted must be computed."""
        return request.tokens[: request.want_from if self._caching else 0]

    def _match(self, request: Request) -> Match:
        return self.tree.match(self._cacheable(request))

    def _order(self, waiting: list[Request], matched: dict[int, int]) -> list[Request]:
        if self._policy == "random":
            return self._random.sample(waiting, len(waiting))
        if self._policy == "fcfs" or not self._caching:
            return list(waiting)
        if self._policy == "dfs_weight":
            return self._by_weight(waiting)
        return sorted(waiting, key=lambda r: -matched[r.id])

    def _by_weight(self, waiting: list[Request]) -> list[Request]:
        """Depth-first through the tree, subtrees with more waiting requests first."""
        paths = {r.id: self._match(r).node.path() for r in waiting}
        weight: dict[int, int] = {}
        for path in paths.values():
            for node in path:
                weight[node.id] = weight.get(node.id, 0) + 1

        def key(request: Request) -> tuple[tuple[int, int], ...]:
            return (*((-weight[node.id], node.id) for node in paths[request.id]), (1, 0))

        return sorted(waiting, key=key)

    # ------------------------------------------------------------------------------ life of a request

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.waiting.append(request)

    def computed(self, request: Request) -> None:
        """The planned tokens are computed; what is new of the prompt goes into the tree."""
        request.n_computed += request.n_planned
        request.n_planned = 0
        if request.n_tree < min(request.n_prompt, request.n_computed):
            self.share(request, min(request.n_prompt, request.n_computed))

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
        request.node, canonical = self.tree.insert(request.node, request.row[start:n].copy(), own, request.id)
        request.slots[start:n] = canonical
        request.n_tree = n
        duplicates = own[own != canonical]
        if len(duplicates):
            self.slots.give(duplicates)

    def preempt(self, request: Request) -> None:
        """Take a running request's memory back and queue it again, before all that arrived later."""
        assert not request.n_pending, "a token on its way has no place in a request that starts anew"
        request.drop_drafts()
        self.n_preempted += 1
        self._emit(Preempted(request.id, request.call_id, request.n_computed))
        self._give_back(request)
        self.running.remove(request)
        request.n_lost = max(request.n_lost, request.n_computed)
        request.n_computed = request.n_planned = request.n_tree = 0
        place = next((i for i, other in enumerate(self.waiting) if other.id > request.id), len(self.waiting))
        self.waiting.insert(place, request)

    def finish(self, request: Request) -> None:
        """Remove a request that has ended or is given up; its slots and locks are returned."""
        if request.node is None:
            self.waiting.remove(request)
            return
        self._give_back(request)
        self.running.remove(request)

    def unplan(self, request: Request) -> None:
        """The planned tokens were not computed: their slots go back."""
        at = request.n_computed
        if request.n_planned:
            self.slots.give(request.slots[at : at + request.n_planned].copy())
            request.n_planned = 0

    def retract(self, request: Request, n: int) -> None:
        """The last `n` computed tokens turned out wrong: their slots go back."""
        request.n_computed -= n
        request.want_from = request.n_computed
        self.slots.give(request.slots[request.n_computed : request.n_computed + n].copy())

    def _give_back(self, request: Request) -> None:
        """Computed tokens become the tree's, the rest is freed, the lock ends."""
        assert request.node is not None
        self.unplan(request)
        self.share(request, request.n_settled)
        private = request.slots[request.n_tree : request.n_computed].copy()
        if len(private):
            self.slots.give(private)
        self.tree.unlock(request.node)
        request.node = None

    def flush(self) -> int:
        """Empty the tree but for what running requests hold. Returns the number of freed slots."""
        n_before = self.slots.n_free
        self._evict(self.tree.n_evictable)
        return self.slots.n_free - n_before

    def check(self) -> None:
        """Assert the pool's invariant: free, tree and private slots are disjoint and together all but 0."""
        held: list[int] = self.slots.free().tolist()
        n_nodes = 0
        for node in self.tree.nodes():
            assert node.parent is not None
            assert len(node.key) == len(node.slots) > 0
            assert node.parent.children[int(node.key[0])] is node
            n_nodes += len(node.key)
            held.extend(node.slots.tolist())
        for request in self.running:
            held.extend(request.slots[request.n_tree : request.n_computed + request.n_planned].tolist())
            shared = [int(s) for n in request.node.path() for s in n.slots] if request.node else []
            assert request.slots[: request.n_tree].tolist() == shared, "a row does not match its path"
        assert sorted(held) == list(range(1, self.slots.n_slots + 1)), "slots are lost or held twice"
        assert n_nodes == self.tree.n_tokens
        assert self.tree.n_locked == sum(len(n.key) for n in self.tree.nodes() if n.locks)
        if not self.running:
            assert self.tree.n_locked == 0, "locks are left without a running request"


def _waits_for_prefix(request: Request, n_matched: int, leaders: list[Request]) -> bool:
    """One of `leaders`, which compute their prompts, is computing a longer prefix of the request than the tree has."""
    tokens = request.tokens[: request.want_from]
    if n_matched >= len(tokens):
        return False
    for leader in leaders:
        prompt = leader.row[: leader.n_prompt]
        differs_at_once = n_matched >= len(prompt) or prompt[n_matched] != tokens[n_matched]
        if not differs_at_once and common_prefix(prompt, tokens) > n_matched:
            return True
    return False
