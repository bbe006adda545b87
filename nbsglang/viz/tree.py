"""The radix tree of one engine, rebuilt from its changes alone; it equals the live one.

A reader that comes late, or whose log dropped events, waits for the next Snapshot (`complete` is False until then).

Not here: streams and requests (`streams.py`), how a tree looks (`dot.py`, `icicle.py`).
"""

from __future__ import annotations

from nbsglang import events as ev
from nbsglang.viz.marks import Marks
from nbsglang.viz.state import Node, Totals

TREE = (
    ev.NodeAdded,
    ev.NodeExtended,
    ev.NodeSplit,
    ev.NodeTouched,
    ev.NodeLocked,
    ev.NodeEvicted,
    ev.Snapshot,
)


class TreeState:
    """See the module. `marks` are those of the latest step that changed the tree, `watched` those of longer spans."""

    def __init__(self, totals: Totals) -> None:
        self.nodes: dict[int, Node] = {}
        self.complete = True
        self.marks = Marks()
        self.watched: list[Marks] = []
        self.version = 0  # counts what may change a picture
        self._totals = totals
        self.step_is_over = False

    def begin_anew(self) -> None:
        """An engine has begun: its tree is empty."""
        self.nodes, self.complete = {}, True
        self.marks.clear()
        self.version += 1

    def step_ended(self) -> None:
        """The marks stay until the next change."""
        self.step_is_over = True

    def apply(self, body: ev.Body) -> None:
        """Take an event of one of the kinds in TREE."""
        self.version += 1
        if isinstance(body, ev.Snapshot):
            self.nodes = {row[0]: Node(row[0], row[1], list(row[2]), row[3], row[4]) for row in body.nodes}
            self.complete = True
            return
        if not self.complete:
            return
        if self.step_is_over:
            self.step_is_over = False
            self.marks.clear()
        try:
            self._change(body)
        except KeyError:  # a log that does not fit together, such as one that was edited: wait for a Snapshot
            self.complete = False

    def path(self, node: int) -> list[Node]:
        """The nodes from below the root down to this one."""
        nodes: list[Node] = []
        while node in self.nodes and len(nodes) < len(self.nodes):  # a log from elsewhere may hold a circle
            nodes.append(self.nodes[node])
            node = self.nodes[node].parent
        return nodes[::-1]

    def _change(self, body: ev.Body) -> None:
        match body:
            case ev.NodeAdded():
                if body.node in self.nodes or (body.parent and body.parent not in self.nodes):
                    raise KeyError(body.node)
                self.nodes[body.node] = Node(body.node, body.parent, list(body.tokens), 0, body.tick)
                self._mark_new(body.node)
            case ev.NodeExtended():
                self.nodes[body.node].tokens += body.tokens
                self.nodes[body.node].tick = body.tick
                self._mark_new(body.node)
            case ev.NodeSplit():
                self._split(body)
            case ev.NodeTouched():
                self._touch(body)
            case ev.NodeLocked():
                for at in self.path(body.node):
                    at.locks += body.delta
            case ev.NodeEvicted():
                node = self.nodes.pop(body.node)
                self._totals.n_evicted += body.n_tokens
                for marks in (self.marks, *self.watched):
                    marks.gone(node)

    def _mark_new(self, node: int) -> None:
        for marks in (self.marks, *self.watched):
            marks.new.add(node)

    def _touch(self, body: ev.NodeTouched) -> None:
        for node in body.nodes:
            self.nodes[node].tick = body.tick
            if body.request >= 0:
                for marks in (self.marks, *self.watched):
                    marks.hit(node)

    def _split(self, body: ev.NodeSplit) -> None:
        node = self.nodes[body.node]
        if body.upper in self.nodes:
            raise KeyError(body.upper)
        self.nodes[body.upper] = Node(body.upper, node.parent, node.tokens[: body.at], node.locks, node.tick)
        node.parent, node.tokens = body.upper, node.tokens[body.at :]
        self._totals.n_splits += 1
        for marks in (self.marks, *self.watched):
            marks.split(body.node, body.upper)
