"""A part of a trie whose characters are all of certain classes: long runs of one class, taken in one operation.

Where an automaton goes from state to state by one set of classes (`\\w+`, `[^"]{1,16}`), all nodes of a depth that
consist of such characters are in one state. Which nodes these are depends on the characters and the node above them
alone, so it is found once for all automata.

Not here: the other nodes (`walk.py`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.preorder import Preorder
from nbsglang.engine.grammar.table import DEAD, Table
from nbsglang.engine.grammar.trie import Indices
from nbsglang.engine.grammar.vocab import Vocab, pack

_INSIDE, _BEYOND, _OUT = 0, 1, 2  # kinds of nodes: in a shape, leaving it, any other
_KEPT = 64  # shapes of a vocabulary


class Shape:
    """The nodes below `base` to which only some characters lead. Depths count from there; the base is not among them.

    `out_nodes` are the nodes below them that other characters lead to, by depth, with `out_depths`. `begun` are the
    tokens in it that end inside a character, as depths with places in `Vocab.begun`. It is the same for all automata.
    """

    def __init__(self, vocab: Vocab, base: int, is_own: npt.NDArray[np.bool_]) -> None:
        self._vocab = vocab
        self._rows: dict[int, MaskRow] = {}
        order, above = vocab.preorder, vocab.depths.item(base)
        first = order.places.item(base) + 1
        below = slice(first, order.ends.item(first - 1))
        kinds = _kinds(order, below, is_own.take(vocab.point_in_order[below]))
        of_node = np.full(len(order.nodes), _BEYOND, np.uint8)
        of_node[order.nodes[below]] = kinds
        self._nodes, self.out_nodes = np.flatnonzero(of_node == _INSIDE), np.flatnonzero(of_node == _OUT)
        self.out_depths = vocab.depths.take(self.out_nodes) - above
        self.out_points = vocab.point_of.take(self.out_nodes)
        self._starts = np.searchsorted(self._nodes, vocab.trie.levels[above:]).tolist()  # of each depth
        deepest = [int(nodes[-1]) for nodes in (self._nodes, self.out_nodes) if len(nodes)]
        self.depth = max(vocab.depths.item(node) - above for node in deepest) if deepest else 0
        words = slice(order.owners.item(below.start), order.owners.item(below.stop))
        self._tokens = order.words[words][kinds.take(order.word_places[words] - first) == _INSIDE]
        self._token_depths = vocab.depths.take(vocab.trie.ends.take(self._tokens)) - above
        begun = np.flatnonzero(of_node.take(vocab.begun.nodes) == _INSIDE)
        depths = vocab.begun.depths.take(begun) - above
        self.begun = [(int(depth), begun[depths == depth]) for depth in np.unique(depths)]

    def nodes(self, depth: int) -> Indices:
        """The nodes of one depth."""
        return self._nodes[self._starts[depth] : self._starts[depth + 1]]

    def row(self, depth: int) -> MaskRow:
        """The mask of the tokens down to a depth; shared, not to be changed."""
        found = self._rows.get(depth)
        if found is None:
            tokens = self._tokens if depth >= self.depth else self._tokens[self._token_depths <= depth]
            found = self._rows[depth] = pack(tokens, self._vocab.n_words)
        return found

    @cached_property
    def word_depths(self) -> list[int]:
        """The depths that have tokens."""
        return [int(depth) for depth in np.unique(self._token_depths)]

    def row_of(self, depths: list[int]) -> MaskRow:
        """The mask of the tokens of some depths."""
        return pack(self._tokens[np.isin(self._token_depths, depths)], self._vocab.n_words)


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


def _kinds(order: Preorder, below: slice, is_own: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """The kind of each place that is below a node, by whether its character is one of the shape's."""
    first, size = below.start, below.stop - below.start
    other = np.flatnonzero(~is_own)
    steps = np.zeros(size + 1, np.int32)
    steps[other] = 1
    np.subtract.at(steps, order.ends.take(first + other) - first, 1)
    n_others = np.cumsum(steps[:-1], dtype=np.int32)  # on the way there
    kinds = (n_others > 0).view(np.uint8)
    kinds[other[n_others.take(other) == 1]] = _OUT
    return kinds
