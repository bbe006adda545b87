"""What a log says about who used the cache and when: the token path of each request, and what it did in which order.

A request begins (its prefix is looked up and locked), reserves slots, shares what is computed with the tree, and ends.
Its tokens are those on its path in the tree when it ends. Positions are counts of tokens from the start of its prompt.

Two things a log does not say, and are concluded: of a request for the probability of a choice, from where on logits
were wanted (what the best hit among the choices of its call was); and when exactly slots of a later piece of a long
prompt were reserved (right after the piece before). Requests that score their prompt (`logprob_start_len`) may seem to
hit more than they could.

Not here: another cache for the same requests (`caches.py`, `whatif.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from nbsglang import events as ev
from nbsglang.viz.state import Totals
from nbsglang.viz.tree import TREE, TreeState

ActKind = Literal["begin", "reserve", "share", "preempt", "end", "flush"]


@dataclass(slots=True)
class Use:
    """A request as the cache saw it: its first `n_cacheable` tokens could come from the cache; `n_hit` did."""

    number: int
    call_id: str
    n_prompt: int = 0
    tokens: tuple[int, ...] = ()
    n_cacheable: int = 0
    n_hit: int = 0
    finished: bool = False


@dataclass(slots=True)
class Act:
    """`use` (its place in the record) does something, up to the position `upto` of its tokens."""

    kind: ActKind
    use: int = -1
    upto: int = 0


class Record(NamedTuple):
    """See the module. `n_slots` is the pool's size, 0 if unknown; `is_whole` is false where the log has lost events."""

    uses: tuple[Use, ...]
    acts: tuple[Act, ...]
    n_slots: int
    is_whole: bool
    n_evicted: int

    @property
    def n_prompt(self) -> int:
        """Prompt tokens of the requests that finished."""
        return sum(use.n_prompt for use in self.uses if use.finished)

    @property
    def n_hit(self) -> int:
        """Those that were found in the cache."""
        return sum(use.n_hit for use in self.uses if use.finished)

    @property
    def is_sequential(self) -> bool:
        """Whether no request began before the one before had ended."""
        n_open = 0
        for act in self.acts:
            n_open += (act.kind == "begin") - (act.kind in ("end", "preempt"))
            if n_open > 1:
                return False
        return True


def record(events: Iterable[ev.Event], source: str = "") -> Record:
    """The record of one engine's events, those of `source` or of all; it begins with the engine's Ready."""
    reader = _Reader()
    seq = 0
    for event in events:
        if seq and event.seq != seq + 1:
            reader.lost()
        seq = event.seq
        if not source or event.source == source:
            reader.take(event.body)
    return reader.record()


@dataclass(slots=True)
class _Open:
    """A request that was admitted: where its path ends, how many of its tokens are known, what it reserves next."""

    use: int
    node: int
    n_known: int
    n_asked: int  # of them have slots, or will with `reserve`
    reserve: Act | None


@dataclass(slots=True)
class _Reader:
    totals: Totals = field(default_factory=Totals)
    uses: list[Use] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    n_slots: int = 0
    is_whole: bool = False
    _tree: TreeState = field(init=False)
    _queued: dict[int, Use] = field(default_factory=dict)
    _jumped: dict[int, int] = field(default_factory=dict)  # tokens that were forced before the first admission
    _places: dict[int, int] = field(default_factory=dict)
    _open: dict[int, _Open] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tree = TreeState(self.totals)
        self._tree.complete = False

    def lost(self) -> None:
        """Events are missing: what was under way is of no use, and the tree waits for a snapshot."""
        self.is_whole = False
        self._tree.complete = False
        self._open.clear()
        self._queued.clear()

    def take(self, body: ev.Body) -> None:
        """Take the next event."""
        if isinstance(body, TREE):
            self._tree.apply(body)
            self._follow(body)
            return
        match body:
            case ev.Ready():
                self._tree.complete, self.is_whole, self.n_slots = True, True, body.n_slots
            case ev.Queued():
                self._queued[body.request] = Use(body.request, body.call_id, body.n_prompt)
            case ev.Admitted():
                self._admit(body)
            case ev.Tokens():
                for number, ids in zip(body.requests, body.ids, strict=False):
                    self._grow(number, len(ids))
            case ev.Jumped():
                if body.request in self._open:
                    self._grow(body.request, len(body.ids))
                else:
                    self._jumped[body.request] = self._jumped.get(body.request, 0) + len(body.ids)
            case ev.Step():
                self._plan()
            case ev.Preempted():
                self._close(body.request, "preempt")
            case ev.Finished():
                self._finish(body)
            case ev.Control() if body.what == "flush":
                self.acts.append(Act("flush"))

    def record(self) -> Record:
        """What was found; requests that have not ended are as far as they came."""
        for number in list(self._open):
            self._close(number, "end")
        for use in self.uses:
            use.n_cacheable = self._cacheable(use)
        return Record(tuple(self.uses), tuple(self.acts), self.n_slots, self.is_whole, self.totals.n_evicted)

    # ------------------------------------------------------------------------------------- requests

    def _admit(self, body: ev.Admitted) -> None:
        use = self._queued.get(body.request)
        if use is None or not self._tree.complete:
            return
        if body.request not in self._places:
            self._places[body.request] = len(self.uses)
            self.uses.append(use)
            use.n_hit = body.n_hit
            total = body.n_hit + body.n_new
            # The last token of a scored text is looked up only; of a prompt it is computed, as its logits are wanted.
            use.n_cacheable = total - 1 if total >= use.n_prompt else -1
        place = self._places[body.request]
        reserve = Act("reserve", place, body.n_hit)
        self.acts += [Act("begin", place, body.n_hit + body.n_new), reserve]
        n_known = use.n_prompt + self._jumped.pop(body.request, 0)
        n_known = max(n_known, body.n_hit + body.n_new)
        self._open[body.request] = _Open(place, body.node, n_known, n_known, reserve)

    def _grow(self, number: int, n: int) -> None:
        """So many more tokens of the request are known; their slots are reserved by the next plan."""
        if (request := self._open.get(number)) is not None:
            request.n_known += n

    def _plan(self) -> None:
        """A step is over: the next one reserves a slot for each token that is known and not computed."""
        for request in self._open.values():
            if request.n_known > request.n_asked:
                request.n_asked = request.n_known
                self.acts.append(Act("reserve", request.use, request.n_known))

    def _follow(self, body: ev.Body) -> None:
        """A change of the tree by a request moves the end of its path: it shares what it has computed."""
        if isinstance(body, ev.NodeAdded | ev.NodeExtended):
            node = body.node
        elif isinstance(body, ev.NodeTouched) and body.nodes:
            node = body.nodes[-1]
        else:
            return
        request = self._open.get(body.request)
        if request is None or not self._tree.complete:
            return
        request.node = node
        upto, use = self._depth(node), self.uses[request.use]
        if request.reserve is not None:
            request.reserve.upto = max(request.reserve.upto, upto)
        self.acts.append(Act("share", request.use, upto))
        request.reserve = None
        if upto < use.n_prompt - 1:  # the rest of a long prompt
            request.reserve = Act("reserve", request.use, upto)
            self.acts.append(request.reserve)

    def _finish(self, body: ev.Finished) -> None:
        if (place := self._places.get(body.request)) is not None:
            use = self.uses[place]
            use.finished, use.n_prompt, use.n_hit = True, body.n_prompt, body.n_cached
            if body.reason == "prefix" and use.n_cacheable >= 0:  # a hint: no logits are wanted
                use.n_cacheable = body.n_prompt
        self._close(body.request, "end")
        for known in (self._queued, self._places, self._jumped):
            known.pop(body.request, None)

    def _close(self, number: int, kind: ActKind) -> None:
        """The request lets go; its tokens are what its path has now."""
        request = self._open.pop(number, None)
        if request is None:
            return
        tokens = tuple(token for node in self._tree.path(request.node) for token in node.tokens)
        use = self.uses[request.use]
        if len(tokens) >= len(use.tokens):
            use.tokens = tokens
        self.acts.append(Act(kind, request.use, len(tokens)))

    def _depth(self, node: int) -> int:
        return sum(len(at.tokens) for at in self._tree.path(node))

    def _cacheable(self, use: Use) -> int:
        if use.n_cacheable >= 0:
            return use.n_cacheable
        siblings = (other for other in self.uses if other.call_id == use.call_id)
        return max(other.n_hit for other in siblings if other.tokens[: other.n_hit] == use.tokens[: other.n_hit])
