"""From the events of one source to the state that views show: `View.apply` is the one reducer in Python.

The radix tree is rebuilt from its changes alone and equals the live one. A reader that comes late, or whose log
dropped events, waits for the next Snapshot (`complete` is False until then). Marks (new, hit, evicted) are those of
the latest step that changed the tree.

Not here: what the state consists of (`state.py`), how it looks (`still.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from nbsglang import events as ev
from nbsglang.viz.state import Node, RequestView, StreamView, Totals

MAX_KEPT = 2000  # finished requests and ended streams that are remembered

_K = TypeVar("_K")
_V = TypeVar("_V")


class View:
    """The state after some events. `source` None takes the events of all sources (of one engine, then)."""

    def __init__(self, source: str | None = None) -> None:
        self.source = source
        self.seq = 0
        self.complete = True
        self.nodes: dict[int, Node] = {}
        self.new: set[int] = set()
        self.hits: dict[int, int] = {}  # node -> requests of the step that hit it
        self.evicted: dict[int, Node] = {}
        self.requests: dict[int, RequestView] = {}
        self.streams: dict[str, StreamView] = {}
        self.texts: dict[int, str] = {}
        self.loading: ev.Loading | None = None
        self.ready: ev.Ready | None = None
        self.step: ev.Step | None = None
        self.totals = Totals()
        self.errors: list[str] = []
        self.controls: list[str] = []
        self._step_is_over = False

    def apply(self, event: ev.Event) -> None:
        """Take the next event. Events must come in order; a gap makes the tree wait for a Snapshot."""
        if event.seq != self.seq + 1:
            self.complete = False
        self.seq = event.seq
        if self.source is not None and event.source != self.source:
            return
        body = event.body
        if isinstance(body, _TREE):
            self._apply_to_tree(body)
        elif isinstance(body, _REQUESTS):
            self._apply_to_requests(body)
        elif isinstance(body, _STREAMS):
            self._apply_to_streams(body)
        else:
            self._apply_to_engine(body)

    def tree_as_tuples(self) -> tuple[tuple[int, int, tuple[int, ...], int, int], ...]:
        """The tree as `Snapshot.nodes` has it: (id, parent, tokens, locks, tick), by id."""
        return tuple((n.id, n.parent, tuple(n.tokens), n.locks, n.tick) for _, n in sorted(self.nodes.items()))

    def children(self) -> dict[int, list[Node]]:
        """The nodes below each node (0 is the root), oldest first."""
        below: dict[int, list[Node]] = {}
        for _, node in sorted(self.nodes.items()):
            below.setdefault(node.parent, []).append(node)
        return below

    def text_of(self, tokens: Iterable[int]) -> str:
        """The texts of token ids; an id that the log has not named is shown by its number."""
        return "".join(self.texts.get(token, f"<{token}>") for token in tokens)

    def path(self, node: int) -> list[Node]:
        """The nodes from below the root down to this one."""
        nodes: list[Node] = []
        while node in self.nodes and len(nodes) < len(self.nodes):  # a log from elsewhere may hold a circle
            nodes.append(self.nodes[node])
            node = self.nodes[node].parent
        return nodes[::-1]

    # ----------------------------------------------------------------------------------------- the tree

    def _apply_to_tree(self, body: ev.Body) -> None:
        if isinstance(body, ev.Snapshot):
            self.nodes = {row[0]: Node(row[0], row[1], list(row[2]), row[3], row[4]) for row in body.nodes}
            self.complete = True
            return
        if not self.complete:
            return
        if self._step_is_over:
            self._step_is_over = False
            self.new, self.hits, self.evicted = set(), {}, {}
        try:
            self._change(body)
        except KeyError:  # a log that does not fit together, such as one that was edited: wait for a Snapshot
            self.complete = False

    def _change(self, body: ev.Body) -> None:
        match body:
            case ev.NodeAdded():
                if body.node in self.nodes or (body.parent and body.parent not in self.nodes):
                    raise KeyError(body.node)
                self.nodes[body.node] = Node(body.node, body.parent, list(body.tokens), 0, body.tick)
                self.new.add(body.node)
            case ev.NodeExtended():
                self.nodes[body.node].tokens += body.tokens
                self.nodes[body.node].tick = body.tick
                self.new.add(body.node)
            case ev.NodeSplit():
                self._split(body)
            case ev.NodeTouched():
                for node in body.nodes:
                    self.nodes[node].tick = body.tick
                    if body.request >= 0:
                        self.hits[node] = self.hits.get(node, 0) + 1
            case ev.NodeLocked():
                for at in self.path(body.node):
                    at.locks += body.delta
            case ev.NodeEvicted():
                self.evicted[body.node] = self.nodes.pop(body.node)
                self.new.discard(body.node)
                self.hits.pop(body.node, None)
                self.totals.n_evicted += body.n_tokens

    def _split(self, body: ev.NodeSplit) -> None:
        node = self.nodes[body.node]
        if body.upper in self.nodes:
            raise KeyError(body.upper)
        self.nodes[body.upper] = Node(body.upper, node.parent, node.tokens[: body.at], node.locks, node.tick)
        node.parent, node.tokens = body.upper, node.tokens[body.at :]
        self.totals.n_splits += 1
        if body.node in self.new:
            self.new.add(body.upper)
        if body.node in self.hits:
            self.hits[body.upper] = self.hits[body.node]

    # ------------------------------------------------------------------- requests, streams and the rest

    def _apply_to_requests(self, body: ev.Body) -> None:
        match body:
            case ev.Queued():
                self.requests[body.request] = RequestView(body.request, body.call_id, body.n_prompt)
            case ev.Admitted():
                request = self._request(body.request, body.call_id)
                request.state, request.n_hit, request.n_new = "running", body.n_hit, body.n_new
            case ev.Tokens():
                for number, ids in zip(body.requests, body.ids, strict=False):
                    self._request(number, "").generated += ids
            case ev.Preempted():
                self._request(body.request, body.call_id).state = "preempted"
                self.totals.n_preempted += 1
            case ev.Finished():
                request = self._request(body.request, body.call_id)
                request.state, request.ended, request.n_prompt = body.reason, True, body.n_prompt
                self.totals.n_requests += 1
                self.totals.n_prompt += body.n_prompt
                self.totals.n_cached += body.n_cached
                self.totals.n_generated += body.n_generated
                _forget(self.requests, lambda old: old.ended)

    def _request(self, number: int, call_id: str) -> RequestView:
        """The request, also where its beginning was not seen."""
        return self.requests.setdefault(number, RequestView(number, call_id))

    def _apply_to_streams(self, body: ev.Body) -> None:
        if isinstance(body, ev.StreamBegan):
            self.streams[body.stream] = StreamView(body.stream, body.parent, body.branch, body.label)
            return
        assert isinstance(body, ev.StreamEnded | ev.StreamText | ev.CallBegan | ev.CallEnded | ev.VariableSet)
        stream = self.streams.setdefault(body.stream, StreamView(body.stream))
        match body:
            case ev.StreamEnded():
                stream.state = body.how
                _forget(self.streams, lambda old: old.state != "running")
            case ev.StreamText():
                stream.parts.append(("", body.text))
            case ev.CallBegan():
                stream.calls[body.call_id] = "running"
            case ev.CallEnded():
                stream.calls[body.call_id] = body.error or "done"
            case ev.VariableSet():
                stream.parts.append((body.name, body.text))

    def _apply_to_engine(self, body: ev.Body) -> None:
        match body:
            case ev.Loading():
                self.loading = body
            case ev.Ready():
                self.ready, self.loading = body, None
            case ev.Step():
                self.step = body
                self._step_is_over = True
            case ev.TokenTexts():
                self.texts.update(zip(body.ids, body.texts, strict=False))
            case ev.Failed():
                self.errors = [*self.errors[-99:], body.message]
            case ev.Control():
                self.controls = [*self.controls[-99:], f"{body.what}: {body.detail}" if body.detail else body.what]


def fold(events: Iterable[ev.Event], source: str | None = None) -> View:
    """The state after these events."""
    view = View(source)
    for event in events:
        view.apply(event)
    return view


_TREE = (
    ev.NodeAdded,
    ev.NodeExtended,
    ev.NodeSplit,
    ev.NodeTouched,
    ev.NodeLocked,
    ev.NodeEvicted,
    ev.Snapshot,
)
_REQUESTS = (ev.Queued, ev.Admitted, ev.Tokens, ev.Preempted, ev.Finished)
_STREAMS = (ev.StreamBegan, ev.StreamEnded, ev.StreamText, ev.CallBegan, ev.CallEnded, ev.VariableSet)


def _forget(kept: dict[_K, _V], is_over: Callable[[_V], bool]) -> None:
    """Drop the oldest that are over, once there are many."""
    if len(kept) > 2 * MAX_KEPT:
        over = [key for key, value in kept.items() if is_over(value)]
        for key in over[: len(kept) - MAX_KEPT]:
            del kept[key]
