"""What has changed in the radix tree since some moment: nodes that are new, hit, or evicted.

A view keeps the marks of the latest step; who watches a longer span, such as a cell, adds marks of its own.

Not here: how marks look (`paint.py`).
"""

from __future__ import annotations

from nbsglang.viz.state import Node

MAX_EVICTED = 1000  # nodes that are remembered after they are gone; the oldest go first


class Marks:
    """See the module. `hits` counts the requests that hit a node; `evicted` has the nodes as they were."""

    def __init__(self) -> None:
        self.new: set[int] = set()
        self.hits: dict[int, int] = {}
        self.evicted: dict[int, Node] = {}

    def clear(self) -> None:
        """Begin anew."""
        self.new, self.hits, self.evicted = set(), {}, {}

    def hit(self, node: int) -> None:
        """A request found this node."""
        self.hits[node] = self.hits.get(node, 0) + 1

    def split(self, node: int, upper: int) -> None:
        """`upper` took the first part of `node`, and with it what is true of both."""
        if node in self.new:
            self.new.add(upper)
        if node in self.hits:
            self.hits[upper] = self.hits[node]

    def gone(self, node: Node) -> None:
        """The node was evicted."""
        self.evicted[node.id] = node
        self.new.discard(node.id)
        self.hits.pop(node.id, None)
        if len(self.evicted) > MAX_EVICTED:
            del self.evicted[next(iter(self.evicted))]
