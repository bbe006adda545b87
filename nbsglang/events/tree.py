"""The radix tree of the KV cache: each change of it, and the whole for who comes late.

Not here: the tree that these make (`viz/tree.py`), the tree that says them (`engine/radix.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from nbsglang.events.fields import TokenIds


class NodeAdded(NamedTuple):
    """`node` hangs under `parent` (0 is the root) with these token ids on its edge."""

    node: int
    parent: int
    tokens: TokenIds
    tick: int
    request: int


class NodeExtended(NamedTuple):
    """The edge of the leaf `node` grows by these token ids."""

    node: int
    tokens: TokenIds
    tick: int
    request: int


class NodeSplit(NamedTuple):
    """`node` keeps its edge from `at` on; a new node `upper` takes the part before it and its place."""

    node: int
    upper: int
    at: int
    request: int


class NodeTouched(NamedTuple):
    """The nodes of a path were used at logical time `tick`, by a hit of `request`."""

    nodes: tuple[int, ...]
    tick: int
    request: int


class NodeLocked(NamedTuple):
    """Each node on the way from `node` to the root has `delta` more locks."""

    node: int
    delta: int


class NodeEvicted(NamedTuple):
    """The leaf `node` and its KV are gone."""

    node: int
    n_tokens: int


class Snapshot(NamedTuple):
    """The whole tree, for a reader that comes late: (id, parent, tokens, locks, tick) of each node but the root."""

    nodes: tuple[tuple[int, int, TokenIds, int, int], ...]


TreeBody = NodeAdded | NodeExtended | NodeSplit | NodeTouched | NodeLocked | NodeEvicted | Snapshot
