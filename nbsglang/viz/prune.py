"""Which nodes of a radix tree are drawn: all of a small tree; of a large one those that matter, the rest folded.

What matters is what is marked, then what holds more tokens. Below a cell a tree is soon large, and only what is marked
is drawn then: what other cells have left in the cache would hide what this one has done.

Not here: drawing (`dot.py`, `icicle.py`, `terminal.py`).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks
from nbsglang.viz.state import Node
from nbsglang.viz.text import n_short


class Drawn(NamedTuple):
    """A node in its place, or (`node` is None) what is folded away under `parent`."""

    node: Node | None
    parent: int
    depth: int
    n_nodes: int = 1
    n_tokens: int = 0

    @property
    def words(self) -> str:
        """What is folded away."""
        return f"+{self.n_nodes} node{'s'[: self.n_nodes > 1]}, {n_short(self.n_tokens)} tokens"


class _Below(NamedTuple):
    """A subtree: nodes, tokens, and nodes with marks."""

    n_nodes: int
    n_tokens: int
    n_marked: int


def pruned(view: View, marks: Marks, limit: int, calm: int | None = None) -> list[Drawn]:
    """At most `limit` things to draw (at least one where there is a node), each after its parent, oldest first.

    Of a tree with more than `calm` nodes, nodes with no mark in or below them are not drawn.
    """
    below = _children(view, marks)
    sizes = _sizes(below, marks)
    kept = _kept(below, sizes, limit, calm)
    drawn: list[Drawn] = []
    stack = _at(0, 0, below, kept, sizes)
    while stack:
        drawn.append(stack.pop())
        if (node := drawn[-1].node) is not None:
            stack += _at(node.id, drawn[-1].depth + 1, below, kept, sizes)
    return drawn


def _at(parent: int, depth: int, below: dict[int, list[Node]], kept: set[int], sizes: dict[int, _Below]) -> list[Drawn]:
    """What is drawn right below a node, last first: what is folded, then the nodes."""
    nodes = below.get(parent, [])
    hidden = [sizes[node.id] for node in nodes if node.id not in kept]
    folded = [Drawn(None, parent, depth, sum(s.n_nodes for s in hidden), sum(s.n_tokens for s in hidden))]
    return folded[: bool(hidden)] + [Drawn(node, parent, depth) for node in reversed(nodes) if node.id in kept]


def _children(view: View, marks: Marks) -> dict[int, list[Node]]:
    """The nodes below each node; those that were evicted at their old places."""
    below = view.children()
    for node in marks.evicted.values():
        if node.id not in view.nodes:  # a log from elsewhere may use a number twice
            below.setdefault(node.parent, []).append(node)
    return below


def _sizes(below: dict[int, list[Node]], marks: Marks) -> dict[int, _Below]:
    order, stack = [], list(below.get(0, []))
    while stack:
        order.append(stack.pop())
        stack += below.get(order[-1].id, [])
    sizes: dict[int, _Below] = {}
    for node in reversed(order):
        parts = [sizes[child.id] for child in below.get(node.id, [])]
        marked = node.id in marks.new or node.id in marks.hits or node.id in marks.evicted
        sizes[node.id] = _Below(
            1 + sum(part.n_nodes for part in parts),
            len(node.tokens) + sum(part.n_tokens for part in parts),
            marked + sum(part.n_marked for part in parts),
        )
    return sizes


def _kept(below: dict[int, list[Node]], sizes: dict[int, _Below], limit: int, calm: int | None) -> set[int]:
    """The nodes to draw: from the root down, the weightiest first, while they and the folds fit."""
    if len(sizes) <= (limit if calm is None else min(calm, limit)):
        return set(sizes)
    kept: set[int] = set()
    heap: list[tuple[int, int, int, int]] = []

    def offer(parent: int) -> int:
        for node in below.get(parent, []):
            size = sizes[node.id]
            heapq.heappush(heap, (-min(size.n_marked, 1), -size.n_tokens, node.id, parent))
        return len(below.get(parent, []))

    left = {0: offer(0)}
    n_folds = 1
    while heap:
        rank, _, node, parent = heapq.heappop(heap)
        n_children = len(below.get(node, []))
        after = n_folds - (left[parent] == 1) + (n_children > 0)
        if len(kept) + 1 + after > limit or (calm is not None and not rank):
            break
        kept.add(node)
        left[parent] -= 1
        n_folds = after
        left[node] = offer(node)
    return kept
