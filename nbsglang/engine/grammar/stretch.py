"""A part of a trie whose characters are all of certain classes: long runs of one class, taken in one operation.

Where an automaton goes from state to state by one set of classes (`\\w+`, `[^"]{1,16}`), all nodes of a depth that
consist of such characters are in one state. Which nodes these are depends on the characters and the node above them
alone, so it is found once for all automata.

Not here: the other nodes (`walk.py`).
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.table import DEAD, Table
from nbsglang.engine.grammar.trie import Indices
from nbsglang.engine.grammar.vocab import Vocab

_NOWHERE = np.iinfo(np.int32).max
_KEPT = 64  # shapes of a vocabulary


class Shape:
    """The nodes below `base` to which only some characters lead. Depths count from there; the base is not among them.

    `out_nodes` are the nodes below them that other characters lead to, by depth, with `out_depths`. `begun` are the
    tokens in it that end inside a character, as depths with places in `Vocab.begun`. It is the same for all automata.
    """

    def __init__(self, vocab: Vocab, base: int, is_own: npt.NDArray[np.bool_]) -> None:
        trie = vocab.trie
        self._vocab = vocab
        self._rows: dict[int, MaskRow] = {}
        self._inside = np.zeros(len(trie.points), bool)
        self._inside[base] = True
        leaves = np.zeros(len(trie.points), bool)
        self._levels = [(base, base + 1)]
        while True:
            start, end = trie.children[list(self._levels[-1])].tolist()
            below = self._inside.take(trie.parents[start:end])
            if not below.any():
                break
            own = is_own.take(vocab.point_of[start:end])
            np.logical_and(below, own, out=self._inside[start:end])
            np.greater(below, own, out=leaves[start:end])
            self._levels.append((start, end))
        self._inside[base] = False
        self.depth = len(self._levels) - 1  # of the deepest nodes that are in it or leave it
        self.out_nodes = np.flatnonzero(leaves)
        starts = np.array([start for start, _ in self._levels], np.intp)
        self.out_depths = np.searchsorted(starts, self.out_nodes, "right") - 1
        self.out_points = vocab.point_of.take(self.out_nodes)
        # depth of each token that is in it, above all depths for the others
        above = int(np.searchsorted(trie.levels, base, "right")) - 1
        self._token_depths = np.where(self._inside.take(trie.ends), vocab.word_depths - above, _NOWHERE)
        begun = np.flatnonzero(self._inside.take(vocab.begun.nodes))
        depths = vocab.begun.depths.take(begun) - above
        self.begun = [(int(depth), begun[depths == depth]) for depth in np.unique(depths)]

    def nodes(self, depth: int) -> Indices:
        """The nodes of one depth."""
        start, end = self._levels[depth]
        nodes: Indices = start + np.flatnonzero(self._inside[start:end])
        return nodes

    def row(self, depth: int) -> MaskRow:
        """The mask of the tokens down to a depth; shared, not to be changed."""
        found = self._rows.get(depth)
        if found is None:
            bits = np.zeros(32 * self._vocab.n_words, bool)
            np.less_equal(self._token_depths, depth, out=bits[: self._vocab.n_vocab])
            found = self._rows[depth] = np.packbits(bits, bitorder="little").view(np.int32)
        return found

    @cached_property
    def around(self) -> npt.NDArray[np.bool_]:
        """Whether a node leaves it, is below one that does, or leads to one. [n_nodes]"""
        trie = self._vocab.trie
        found = np.zeros(len(trie.points), bool)
        found[self.out_nodes] = True
        levels = list(pairwise(trie.levels[1:].tolist()))
        for start, end in levels:
            found[start:end] |= found[trie.parents[start:end]]
        for start, end in reversed(levels):
            found[trie.parents[start:end][found[start:end]]] = True
        return found

    @cached_property
    def word_depths(self) -> list[int]:
        """The depths that have tokens."""
        return [int(depth) for depth in np.unique(self._token_depths) if depth < _NOWHERE]

    def row_of(self, depths: list[int]) -> MaskRow:
        """The mask of the tokens of some depths."""
        bits = np.zeros(32 * self._vocab.n_words, bool)
        bits[: self._vocab.n_vocab] = np.isin(self._token_depths, depths)
        return np.packbits(bits, bitorder="little").view(np.int32)


class Stretch:
    """A shape with the classes of an automaton: those of its characters, and in `out_classes` of what leaves it."""

    def __init__(self, shape: Shape, point_classes: Indices, is_member: npt.NDArray[np.bool_]) -> None:
        self.shape = shape
        self.out_classes = point_classes.take(shape.out_points)
        self._classes: list[int] = np.flatnonzero(is_member).tolist()
        self._targets: dict[int, int] = {}

    def goes_on(self, state: int, table: Table) -> bool:
        """Whether some of its classes can follow a state."""
        row = table.after(state)
        return any(row[cls] >= 0 for cls in self._classes)

    def target(self, state: int, table: Table) -> int:
        """The state that all of its classes lead to from a state, `DEAD` if there is none."""
        found = self._targets.get(state)
        if found is None:
            row = table.after(state)
            targets = {row[cls] for cls in self._classes}
            found = self._targets[state] = targets.pop() if len(targets) == 1 else DEAD
        return found


def shape_of(vocab: Vocab, base: int, is_own: npt.NDArray[np.bool_]) -> Shape:
    """The shape below a node of the characters that are marked (by their places in `Vocab.points`); a few are kept."""
    key = base, is_own.tobytes()
    shape = vocab.shapes.get(key)
    if shape is None:
        for other in list(vocab.shapes)[: max(len(vocab.shapes) + 1 - _KEPT, 0)]:  # each takes about a megabyte
            vocab.shapes.pop(other, None)  # another thread may have been here
        shape = vocab.shapes[key] = Shape(vocab, base, is_own)
    return shape
