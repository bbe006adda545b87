"""The nodes of a trie in the order in which all that is below one comes right after it.

What holds for whole subtrees is then said of stretches, in a few operations.

Not here: the trie and its own order (`trie.py`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nbsglang.engine.grammar.trie import Indices, Trie, spread


class Preorder(NamedTuple):
    """`nodes` in that order, `places` of the nodes in it, and `ends`: of each place the one behind all below it.

    `words[owners[i] : owners[i + 1]]` are the tokens of the node in place i, `word_places` the place of each of them.
    """

    nodes: Indices  # [n_nodes]
    places: Indices  # [n_nodes]
    ends: Indices  # [n_nodes]
    words: Indices
    word_places: Indices
    owners: Indices  # [n_nodes + 1]


def preorder_of(trie: Trie) -> Preorder:
    """The order of a trie."""
    n_nodes = len(trie.points)
    sizes = np.ones(n_nodes, np.intp)
    levels = list(pairwise(trie.levels[1:].tolist()))
    for start, end in reversed(levels):
        parents = trie.parents[start:end]
        first, behind = int(parents.min()), int(parents.max()) + 1
        sizes[first:behind] += np.bincount(parents - first, sizes[start:end], behind - first).astype(np.intp)
    places = np.zeros(n_nodes, np.intp)
    for start, end in levels:
        before = np.cumsum(sizes[start:end]) - sizes[start:end]
        parents = trie.parents[start:end]
        places[start:end] = places.take(parents) + 1 + before - before.take(trie.children.take(parents) - start)
    nodes = np.empty(n_nodes, np.intp)
    nodes[places] = np.arange(n_nodes)
    at, counts = spread(trie.owners, nodes)
    owners = np.concatenate([[0], np.cumsum(counts)])
    word_places = np.repeat(np.arange(n_nodes), counts)
    return Preorder(nodes, places, np.arange(n_nodes) + sizes.take(nodes), trie.words.take(at), word_places, owners)
