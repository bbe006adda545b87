"""One edge of the radix tree.

Not here: the tree (`radix.py`), which of its leaves go first (`leaves.py`).
"""

from __future__ import annotations

from nbsglang.engine.slots import Ints


class RadixNode:
    """One edge of the tree: `key` int32 [n] token ids, `slots` int32 [n]; ids are never used twice.

    `writer` is the request whose tokens the edge holds, -1 where they are shared.
    """

    __slots__ = ("children", "id", "key", "locks", "parent", "slots", "tick", "writer")

    def __init__(self, id: int, key: Ints, slots: Ints, parent: RadixNode | None, tick: int) -> None:  # noqa: A002
        self.id = id
        self.key = key
        self.slots = slots
        self.parent = parent
        self.children: dict[int, RadixNode] = {}
        self.locks = 0
        self.tick = tick
        self.writer = -1

    def path(self) -> list[RadixNode]:
        """The nodes from below the root down to this one."""
        nodes = []
        node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    @property
    def is_free_leaf(self) -> bool:
        """It is in the tree, nothing hangs under it and nobody holds it: it may be evicted."""
        return self.parent is not None and not self.children and self.locks == 0
