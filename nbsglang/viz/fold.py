"""From the events of some sources to the state that views show: `View.apply` is the one reducer in Python.

A view takes the events of one engine and of any number of runs: ids of requests and nodes are unique in an engine only.

Not here: what the state consists of (`state.py`), its two halves (`tree.py`, `streams.py`), how it looks.
"""

from __future__ import annotations

from collections.abc import Iterable

from nbsglang import events as ev
from nbsglang.viz.history import History
from nbsglang.viz.marks import Marks
from nbsglang.viz.state import Node, RequestView, StreamView, Totals
from nbsglang.viz.streams import REQUESTS, STREAMS, StreamsState
from nbsglang.viz.tree import TREE, TreeState

_MAX_GRAPHS = 32  # automata that are remembered


class View:
    """The state after some events. Without `sources` it takes those of all (of one engine, then)."""

    def __init__(self, *sources: str) -> None:
        self.sources = set(sources)
        self.seq = 0
        self.n_lost = 0  # events that the log no longer had
        self.version = 0  # counts the events that were taken
        self.now_ns = 0  # when the latest of them happened
        self.texts: dict[int, str] = {}
        self.loading: ev.Loading | None = None
        self.ready: ev.Ready | None = None
        self.step: ev.Step | None = None
        self.totals = Totals()
        self.errors: list[str] = []
        self.controls: list[str] = []
        self.graphs: dict[tuple[str, str], ev.ConstraintGraph] = {}  # by kind and text of the constraint
        self.history = History()
        self.tree = TreeState(self.totals)
        self._streams = StreamsState(self.totals, self.text_of)

    def apply(self, event: ev.Event) -> None:
        """Take the next event. Events must come in order; a gap makes the tree wait for a Snapshot."""
        if event.seq <= self.seq:  # seen before
            return
        if event.seq != self.seq + 1:
            self.n_lost += event.seq - self.seq - 1
            self.tree.complete = False
        self.seq = event.seq
        if self.sources and event.source not in self.sources:
            return
        self.version += 1
        self.now_ns = event.t_ns
        self.history.apply(event)
        body = event.body
        if isinstance(body, TREE):
            self.tree.apply(body)
        elif isinstance(body, REQUESTS):
            self._streams.apply_request(body, event.t_ns)
        elif isinstance(body, STREAMS):
            self._streams.apply_stream(body, event.t_ns, event.source)
        else:
            self._apply_to_engine(body)

    # ------------------------------------------------------------------------------------------- reading

    @property
    def complete(self) -> bool:
        """Whether the tree is known; else it waits for a Snapshot."""
        return self.tree.complete

    @property
    def nodes(self) -> dict[int, Node]:
        """The nodes of the radix tree by id, without the root."""
        return self.tree.nodes

    @property
    def marks(self) -> Marks:
        """What the latest step that changed the tree did to it."""
        return self.tree.marks

    @property
    def requests(self) -> dict[int, RequestView]:
        """The requests by number, the oldest that ended left out."""
        return self._streams.requests

    @property
    def streams(self) -> dict[str, StreamView]:
        """The streams by id, the oldest that ended left out."""
        return self._streams.streams

    def streams_of(self, source: str) -> list[StreamView]:
        """The streams of one run, each after its parent, branches in their order."""
        below: dict[str, list[StreamView]] = {}
        mine = {key: stream for key, stream in self.streams.items() if stream.source == source}
        for stream in mine.values():
            below.setdefault(stream.parent if stream.parent in mine else "", []).append(stream)
        order: list[StreamView] = []
        stack = below.get("", [])[::-1]
        while stack:
            order.append(stack.pop())
            stack += below.get(order[-1].id, [])[::-1]
        return order

    def live_text(self, stream: StreamView) -> str:
        """What the stream's open call has written so far."""
        return self._streams.live_text(stream)

    def caller(self, call_id: str) -> StreamView | None:
        """The stream that made a call, if its beginning was seen."""
        return self._streams.caller(call_id)

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
        return self.tree.path(node)

    # --------------------------------------------------------------------------------------- the rest

    def _apply_to_engine(self, body: ev.Body) -> None:
        match body:
            case ev.Loading():
                self.loading = body
            case ev.Ready():
                self.ready, self.loading = body, None
                self.tree.begin_anew()
            case ev.Step():
                self.step = body
                self.tree.step_ended()
            case ev.TokenTexts():
                self.texts.update(zip(body.ids, body.texts, strict=False))
            case ev.Failed():
                self.errors = [*self.errors[-99:], body.message]
            case ev.ConstraintGraph():
                self.graphs.pop((body.kind, body.text), None)
                self.graphs = dict([*self.graphs.items()][-_MAX_GRAPHS + 1 :]) | {(body.kind, body.text): body}
            case ev.Control():
                self.controls = [*self.controls[-99:], f"{body.what}: {body.detail}" if body.detail else body.what]


def fold(events: Iterable[ev.Event], *sources: str) -> View:
    """The state after these events, of these sources or of all."""
    view = View(*sources)
    for event in events:
        view.apply(event)
    return view
