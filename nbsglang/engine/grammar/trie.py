"""The whole-character tokens of a vocabulary as a trie over code points, in arrays that numpy can walk.

Nodes are numbered level by level, in each level by parent and code point, so the children of a node are neighbours
and so are those of neighbouring nodes. Node 0 is the root, the empty text.

Not here: which tokens are text, tokens that are not whole characters (`vocab.py`), walking it (`walk.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Indices: TypeAlias = npt.NDArray[np.intp]


class Trie(NamedTuple):
    """The arrays of a trie.

    `points` are code points of the nodes (0 for the root), `children[i] : children[i + 1]` the children of node i,
    `levels[d] : levels[d + 1]` the nodes of depth d. `words[owners[i] : owners[i + 1]]` are the tokens whose text
    ends at node i, `ends[token]` is that node, 0 for tokens that are in no node.
    """

    points: Indices  # [n_nodes]
    parents: Indices  # [n_nodes]; the root's is the root
    children: Indices  # [n_nodes + 1]
    levels: Indices  # [n_levels + 1]
    words: Indices  # [n_words]
    owners: Indices  # [n_nodes + 1]
    ends: Indices  # [n_vocab]

    @property
    def n_levels(self) -> int:
        """Depths that have nodes, the root's 0 included."""
        return len(self.levels) - 1

    def is_sound(self, n_vocab: int) -> bool:
        """Whether the arrays fit together, so that no index in them can lead outside."""
        n_nodes = len(self.points)
        if n_nodes < 1 or any(part.ndim != 1 or part.dtype != np.intp for part in self):
            return False
        if (len(self.parents), len(self.children), len(self.owners)) != (n_nodes, n_nodes + 1, n_nodes + 1):
            return False
        if len(self.ends) != n_vocab or len(self.levels) < 2 or self.levels[:2].tolist() != [0, 1]:
            return False
        return (
            _cuts(self.children, 1, n_nodes)
            and _cuts(self.levels, 0, n_nodes)
            and _cuts(self.owners, 0, len(self.words))
            and _inside(self.points, 0x110000)
            and _inside(self.words, n_vocab)
            and _inside(self.ends, n_nodes)
            and bool((self.parents[1:] < np.arange(1, n_nodes)).all())
            and _inside(self.parents, n_nodes)
        )


def spread(starts: Indices, at: Indices) -> tuple[Indices, Indices]:
    """The members of ranges: for each i of `at` all of `starts[i] : starts[i + 1]`, and how many each has."""
    return members(starts.take(at), starts.take(at + 1))


def members(firsts: Indices, behind: Indices) -> tuple[Indices, Indices]:
    """The members of ranges, one after the other, and how many each has."""
    counts = behind - firsts
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(firsts - ends + counts, counts) + np.arange(total), counts


def plain(array: npt.NDArray[Any]) -> memoryview[int]:
    """An array of integers that gives plain ones, which are faster one by one."""
    view: Any = array
    return memoryview(view)


def build(words: Mapping[int, str], paths: Mapping[int, str], n_vocab: int) -> tuple[Trie, dict[int, int]]:
    """The trie of `words` (token to text, never empty), in which the `paths` (any key to text) have nodes too.

    The second value has the node of each path.
    """
    texts = sorted({*words.values(), *paths.values()} - {""})  # by code points
    flat = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4").astype(np.intp)
    lengths = np.fromiter(map(len, texts), np.intp, len(texts))
    points, parents, levels, nodes = _grow(flat, lengths)
    node_of = dict(zip(texts, nodes.tolist(), strict=True)) | {"": 0}
    ends = np.zeros(n_vocab, np.intp)
    tokens = np.fromiter(words, np.intp, len(words))
    ends[tokens] = [node_of[text] for text in words.values()]
    by_node = tokens[np.lexsort((tokens, ends[tokens]))]
    n_nodes = len(points)
    # A level's parents ascend, so those of all nodes but the root do.
    children = np.searchsorted(parents[1:], np.arange(n_nodes + 1)) + 1
    owners = np.searchsorted(ends[by_node], np.arange(n_nodes + 1))
    trie = Trie(points, parents, children, levels, by_node, owners, ends)
    return trie, {key: node_of[text] for key, text in paths.items()}


def _grow(flat: Indices, lengths: Indices) -> tuple[Indices, Indices, Indices, Indices]:
    """Code points, parents and levels of the nodes of sorted texts, and the node where each text ends."""
    starts = np.cumsum(lengths) - lengths
    at = np.zeros(len(lengths), np.intp)  # the node that each text has reached
    points, parents, levels = [np.zeros(1, np.intp)], [np.zeros(1, np.intp)], [0, 1]
    active = np.arange(len(lengths))
    depth = 0
    while len(active):
        point, parent = flat[starts[active] + depth], at[active]
        is_new = np.ones(len(active), bool)  # sorted: texts that share a node are neighbours
        is_new[1:] = (point[1:] != point[:-1]) | (parent[1:] != parent[:-1])
        at[active] = levels[-1] - 1 + np.cumsum(is_new)
        points.append(point[is_new])
        parents.append(parent[is_new])
        levels.append(levels[-1] + len(points[-1]))
        depth += 1
        active = active[lengths[active] > depth]
    return np.concatenate(points), np.concatenate(parents), np.array(levels, np.intp), at


def _cuts(starts: Indices, first: int, last: int) -> bool:
    return bool(starts[0] == first and starts[-1] == last and (starts[1:] >= starts[:-1]).all())


def _inside(values: Indices, end: int) -> bool:
    return not len(values) or bool(values.min() >= 0 and values.max() < end)
