"""What can follow a state that few nodes of a vocabulary's trie can, by the classes of the characters on the way.

States that the same classes lead on from have the same nodes after them, as those of `[0-9a-f]{24}`: these are looked
for once.

Not here: states that many nodes can follow (`walk.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from nbsglang.engine.grammar.partition import FEW
from nbsglang.engine.grammar.table import Table
from nbsglang.engine.grammar.trie import Indices, plain, spread
from nbsglang.engine.grammar.vocab import Vocab

_MOST = 512  # nodes: no more are worth lists
_MOST_FIRST = 64  # of these right below the root, which have many more below them
_SMALL = 128  # nodes: no more are looked at one by one
_KEPT = 20_000  # nodes
_Ints: TypeAlias = tuple[int, ...]


class Level:
    """Nodes of the trie that texts over the same classes lead to.

    `tokens` are those of the nodes; at the nodes of `open` tokens go on, at those of `begun` some end inside a
    character. With `is_wide` they are too many, and left out.
    """

    __slots__ = ("begun", "below", "is_wide", "nodes", "open", "tokens")

    def __init__(self, nodes: _Ints, tokens: _Ints, open_: _Ints, begun: _Ints) -> None:
        self.nodes, self.tokens, self.open, self.begun = nodes, tokens, open_, begun
        self.is_wide = False
        self.below: dict[_Ints, Level] = {}


class Narrow:
    """Looks for one automaton over one vocabulary. Not for several threads at once."""

    def __init__(self, vocab: Vocab, table: Table) -> None:
        self._vocab, self._table = vocab, table
        self._trie, self._paths = vocab.trie, vocab.paths
        self._children, self._point_of = plain(vocab.trie.children), plain(vocab.point_of)
        self._roots: dict[int, Level] = {}
        self._n_kept = 0

    def after(self, state: int, base: int = 0) -> list[tuple[Level, int]] | None:
        """All nodes that can follow a state, with the states there, below the node that led to it; None where they
        are many."""
        if self._n_kept > _KEPT:
            self._roots.clear()
            self._n_kept = 0
        root = self._roots.get(base)
        if root is None:
            root = self._roots[base] = Level((base,), (), (base,), ())
        found: list[tuple[Level, int]] = []
        todo = [(root, state)]
        n_nodes = 0
        while todo:
            level, at = todo.pop()
            for there, classes in self._table.moves(at):
                key = tuple(classes)
                below = level.below.get(key)
                if below is None:
                    below = level.below[key] = self._made(level, key)
                if below.is_wide:
                    return None
                if below.nodes:
                    found.append((below, there))
                    n_nodes += len(below.nodes)
                    if below.open:
                        todo.append((below, there))
            if n_nodes > _MOST:
                return None
        return found

    # ------------------------------------------------------------------------------ levels

    def _made(self, level: Level, classes: _Ints) -> Level:
        """The nodes below those of a level that some classes lead to."""
        sizes, small = self._table.classes.sizes, self._table.classes.small
        if sum(sizes[cls] for cls in classes) <= FEW:
            points = [point for cls in classes for point in small.get(cls, ())]
            found = [self._paths.child(node, point) for node in level.open for point in points]
            nodes = [node for node in found if node >= 0]
        elif level.open == (0,):
            nodes = [node for cls in classes for node in self._firsts[cls]]
            if len(nodes) > _MOST_FIRST:
                return _wide()
        else:
            nodes = self._chosen(level.open, classes)
            if len(nodes) > _MOST:
                return _wide()
        self._n_kept += 10 + len(nodes)
        open_ = [node for node in nodes if self._paths.goes_on(node)]
        begun_at = self._vocab.begun_at
        tokens = [token for node in nodes for token in self._paths.words(node)]
        return Level(tuple(nodes), tuple(tokens), tuple(open_), tuple(node for node in open_ if node in begun_at))

    def _chosen(self, nodes: Sequence[int], classes: _Ints) -> list[int]:
        """The children of some nodes that some classes lead to."""
        children, point_of, class_of = self._children, self._point_of, self._class_of
        ranges = [range(children[node], children[node + 1]) for node in nodes]
        if sum(map(len, ranges)) <= _SMALL:
            return [at for some in ranges for at in some if class_of[point_of[at]] in classes]
        member = np.zeros(self._table.n_classes, bool)
        member[list(classes)] = True
        below, _ = spread(self._trie.children, np.array(nodes, np.intp))
        found: list[int] = below[member.take(self._point_classes.take(self._vocab.point_of.take(below)))].tolist()
        return found

    @cached_property
    def _point_classes(self) -> Indices:
        """The class of each code point that the trie has."""
        return self._table.classes.of_all(self._vocab.points)

    @cached_property
    def _class_of(self) -> list[int]:
        found: list[int] = self._point_classes.tolist()
        return found

    @cached_property
    def _firsts(self) -> list[list[int]]:
        """The root's children of each class."""
        found: list[list[int]] = [[] for _ in range(self._table.n_classes)]
        for node in range(1, self._children[1]):
            found[self._class_of[self._point_of[node]]].append(node)
        return found


def _wide() -> Level:
    level = Level((), (), (), ())
    level.is_wide = True
    return level
