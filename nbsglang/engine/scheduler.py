"""Which requests run, and how many tokens of each are computed in the next step.

One pool serves cached and running tokens. Running decodes come first, then running prefills, then
admissions in the order of the policy. A request that shares an uncomputed prefix with one that is
computing it waits for it. When the pool is full, least recently used leaves of the tree are evicted,
then the youngest request is preempted: its computed tokens stay in the tree as long as they can.

Not here: tensors and the model; a plan is counts only. Nor whose each slot is (`holdings.py`), and the policies
(`order.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from nbsglang.engine.config import Policy
from nbsglang.engine.holdings import Holdings
from nbsglang.engine.limits import Limits
from nbsglang.engine.order import Order, waits_for_prefix
from nbsglang.engine.radix import Match, RadixTree
from nbsglang.engine.request import Request
from nbsglang.engine.slots import Ints, SlotList
from nbsglang.events import Admitted, Body, Preempted

__all__ = ["Limits", "Scheduler"]


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
        self._holdings = Holdings(tree, slots, caching)
        self._order = Order(policy if caching or policy == "random" else "fcfs")
        self._emit = emit
        self._caching = caching

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
        if self._holdings.make_room(len(requests)):
            self._holdings.plan_one_each(requests)
            return
        for request in requests:
            if request.node is not None:  # not preempted by an earlier one of this loop
                self._reserve(request, 1)

    def _reserve(self, request: Request, n: int) -> bool:
        """Give the request slots for `n` more tokens, at the cost of the cache, then of younger requests."""
        while not self._holdings.make_room(n):
            victim = self.running[-1]
            self.preempt(victim)
            if victim is request:
                return False
        self._holdings.plan(request, n)
        return True

    # ------------------------------------------------------------------------------------ admission

    def _admit(self, budget: int) -> None:
        if not self.waiting or budget <= 0 or len(self.running) >= self.limits.max_batch:
            return
        window = self.waiting[: self.limits.window]
        matches = {r.id: self._match(r) for r in window}
        order = self._order.of(window, matches, lambda: self._has_room(matches), self.chunk_tokens)
        n_later: dict[int, int] = {}  # how many admissions of this step overtook a request, by id
        while order and budget > 0 and len(self.running) < self.limits.max_batch:
            request = self._next(order, matches, n_later)
            if request is None or not self._fits(request):
                break
            order.remove(request)
            n_evicted = self._holdings.n_evicted
            for other in order:
                if other.id < request.id:
                    n_later[other.id] = n_later.get(other.id, 0) + 1
            budget -= self._start(request, budget)
            if self._holdings.n_evicted > n_evicted:
                matches = {r.id: self._match(r) for r in order}
        for request in self.waiting:
            request.n_passed += n_later.get(request.id, 0)

    def _next(self, order: list[Request], matches: dict[int, Match], n_later: dict[int, int]) -> Request | None:
        """The first of `order` that may start now; the oldest, once it was passed over too often."""
        oldest = min(order, key=lambda r: r.id)
        if oldest.n_passed + n_later.get(oldest.id, 0) >= self.limits.max_passed:
            return oldest
        leaders = [r for r in self.running if r.n_computed < r.n_prompt - 1] if self._caching else []
        return next((r for r in order if not waits_for_prefix(r, matches[r.id].n, leaders)), None)

    def _fits(self, request: Request) -> bool:
        """Whether the pool can hold it beside what the running requests will still need."""
        match = self._match(request)
        own = request.goal - match.n + min(request.max_new, self.limits.lookahead)
        room = self.slots.n_free + self.tree.n_evictable - self.tree.n_unlocked(match)
        return own + self._ahead <= room or (not self.running and request.goal - match.n <= room)

    def _has_room(self, matches: dict[int, Match]) -> bool:
        """Whether all that waits, of which `matches` has what is cached of some, fits into free slots."""
        room = self.slots.n_free - self._ahead
        for request in self.waiting:
            match = matches.get(request.id)
            room -= request.goal + min(request.max_new, self.limits.lookahead) - (0 if match is None else match.n)
            if room < 0:
                return False
        return True

    @property
    def _ahead(self) -> int:
        """Slots that the running requests will still need."""
        generated = sum(min(r.max_new - (r.n_tokens - r.n_prompt), self.limits.lookahead) for r in self.running)
        return generated + sum(r.n_missing - r.n_planned for r in self.running)

    def _start(self, request: Request, budget: int) -> int:
        """Admit: lock its prefix, plan its first chunk. Returns how much of the budget that takes."""
        self._holdings.begin(request, self._cacheable(request))
        assert request.node is not None
        n_hit = request.n_computed
        if not request.admitted:
            request.admitted = True
            request.n_cached = n_hit
        self.waiting.remove(request)
        self.running.append(request)
        self._emit(Admitted(request.id, request.call_id, n_hit, request.n_missing, request.node.id))
        n = min(request.n_missing, budget)
        if n:
            self._reserve(request, n)
        return n

    def _cacheable(self, request: Request) -> Ints:
        """The tokens that may come from the cache: one whose logits are wanted must be computed."""
        return request.tokens[: request.want_from if self._caching else 0]

    def _match(self, request: Request) -> Match:
        return self.tree.match(self._cacheable(request))

    # ------------------------------------------------------------------------------ life of a request

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.waiting.append(request)

    def computed(self, request: Request) -> None:
        """The planned tokens are computed; what is new of the prompt goes into the tree."""
        request.n_computed += request.n_planned
        request.n_planned = 0
        if request.n_tree < min(request.n_prompt, request.n_computed):
            self._holdings.share(request, min(request.n_prompt, request.n_computed))

    def preempt(self, request: Request) -> None:
        """Take a running request's memory back and queue it again, before all that arrived later."""
        assert not request.n_pending, "a token on its way has no place in a request that starts anew"
        request.drop_drafts()
        self.n_preempted += 1
        self._emit(Preempted(request.id, request.call_id, request.n_computed))
        self._holdings.end(request)
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
        self._holdings.end(request)
        self.running.remove(request)

    def unplan(self, request: Request) -> None:
        """The planned tokens were not computed: their slots go back."""
        self._holdings.unplan(request)

    def retract(self, request: Request, n: int) -> None:
        """The last `n` computed tokens turned out wrong: their slots go back."""
        self._holdings.retract(request, n)

    def flush(self) -> int:
        """Empty the tree but for what running requests hold. Returns the number of freed slots."""
        return self._holdings.flush()

    def check(self) -> None:
        """Assert the pool's invariant: free, tree and private slots are disjoint and together all but 0."""
        self._holdings.check(self.running)
