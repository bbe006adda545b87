"""Which nodes of a vocabulary's trie can follow a state of an automaton, and the state at each.

Three ways, the fastest that fits: a stretch of one set of classes at once, states that few characters can follow
character by character, all others level by level.

Not here: tokens that are not whole characters, and masks (`index.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.reached import Part, Reached
from nbsglang.engine.grammar.stretch import Stretch, shape_of
from nbsglang.engine.grammar.table import Table
from nbsglang.engine.grammar.trie import Indices, spread
from nbsglang.engine.grammar.vocab import MANY, Vocab

_KEPT = 32  # stretches
_SMALL = 16  # nodes: no more are walked one by one
_MOST = 64  # nodes that are found one by one before arrays take over
_Pairs = list[tuple[int, int]]  # nodes with the states there


class Walk:
    """Walks one automaton over one vocabulary. Not for several threads at once."""

    def __init__(self, vocab: Vocab, table: Table) -> None:
        self._vocab = vocab
        self._table = table
        self._trie = vocab.trie
        points: Any = vocab.trie.points
        children: Any = vocab.trie.children
        self._points, self._children = memoryview(points), memoryview(children)  # give plain ints
        self._stretches: dict[tuple[int, bytes], Stretch] = {}

    def reach(self, state: int, base: int = 0) -> Reached:
        """All nodes that can follow a state, below the node that led to it."""
        if self._table.few(state) is not None or (base and not self._vocab.is_heavy.item(base)):
            return Reached(state, [], *self._below(*_arrays([(base, state)])))
        parts: list[Part] = []
        found: list[tuple[Indices, Indices]] = []
        light: list[tuple[Indices, Indices]] = []
        todo = [(base, state)]  # nodes with much below them
        while todo:
            part, nodes, states = self._from(*todo.pop())
            parts += part
            found.append((nodes, states))
            is_heavy = self._vocab.is_heavy.take(nodes)
            if is_heavy.any():
                for node, there in zip(nodes[is_heavy].tolist(), states[is_heavy].tolist(), strict=True):
                    if self._table.few(there) is None:
                        todo.append((node, there))
                    else:
                        light.append(_arrays([(node, there)]))
                nodes, states = nodes[~is_heavy], states[~is_heavy]
            light.append((nodes, states))
        found.append(self._below(*_joined(light)))
        return Reached(state, parts, *_joined(found))

    def _from(self, node: int, state: int) -> tuple[list[Part], Indices, Indices]:
        """The largest stretch under a node, if there is one, and what can follow it, or the node."""
        part = self._stretch(node, state)
        if part is None:
            below = np.arange(self._children[node], self._children[node + 1])
            classes = self._first_classes if node == 0 else self._classes_at(below)
            return [], *self._live(below, classes, np.full(len(below), state))
        stretch, chain = part
        shape, out_classes, depth = stretch.shape, stretch.out_classes, len(chain) - 1
        leaving = int(np.searchsorted(shape.out_depths, depth + 1, "right"))
        before = np.array(chain, np.intp).take(shape.out_depths[:leaving] - 1)
        nodes, states = self._live(shape.out_nodes[:leaving], out_classes[:leaving], before)
        if depth < shape.depth and stretch.goes_on(chain[-1], self._table):
            on = shape.nodes(depth + 1)
            on, there = self._live(on, self._classes_at(on), np.full(len(on), chain[-1]))
            nodes, states = np.concatenate([nodes, on]), np.concatenate([states, there])
        return [part], nodes, states

    # ------------------------------------------------------------------------------ stretches

    @cached_property
    def _point_classes(self) -> Indices:
        """The class of each code point that the trie has."""
        return self._table.classes.of_all(self._vocab.points)

    @cached_property
    def _first_classes(self) -> Indices:
        """The classes of the root's children, which are the nodes from 1 on."""
        return self._classes_at(np.arange(1, self._trie.children[1]))

    @cached_property
    def _weights(self) -> npt.NDArray[np.intp]:
        """The number of nodes of each class, the root apart."""
        return np.bincount(self._point_classes, self._vocab.point_counts, self._table.n_classes).astype(np.intp)

    def _classes_at(self, nodes: Indices) -> Indices:
        return self._point_classes.take(self._vocab.point_of.take(nodes))

    def _stretch(self, node: int, state: int) -> Part | None:
        """The largest stretch that begins at a node in a state, with the states along it."""
        row = np.asarray(self._table.after(state))
        live = row >= 0
        weights = np.bincount(row[live], self._weights[live])
        target = int(weights.argmax())
        if weights[target] < MANY:
            return None
        member = row == target
        key = node, member.tobytes()
        stretch = self._stretches.get(key)
        if stretch is None:
            if len(self._stretches) == _KEPT:
                del self._stretches[next(iter(self._stretches))]
            shape = shape_of(self._vocab, node, member.take(self._point_classes))
            stretch = self._stretches[key] = Stretch(shape, self._point_classes, member)
        chain = [state, target]
        while len(chain) <= stretch.shape.depth:
            target = stretch.target(chain[-1], self._table)
            if target < 0:
                break
            if target == chain[-1]:
                chain += [target] * (stretch.shape.depth + 1 - len(chain))
            else:
                chain.append(target)
        return Part(stretch, chain)

    # ------------------------------------------------------------------------------ other nodes

    def _below(self, nodes: Indices, states: Indices) -> tuple[Indices, Indices]:
        """The nodes under some nodes, which are not among them."""
        all_nodes: list[Indices] = []
        all_states: list[Indices] = []
        while len(nodes):
            if len(nodes) <= _SMALL:
                found, wide = self._one_by_one(list(zip(nodes.tolist(), states.tolist(), strict=True)))
                for part, values in zip((all_nodes, all_states), _arrays(found), strict=True):
                    part.append(values)
                nodes, states = _arrays(wide)
            if len(nodes):
                nodes, states = self._level(nodes, states)
                all_nodes.append(nodes)
                all_states.append(states)
        return np.concatenate(all_nodes or [nodes]), np.concatenate(all_states or [states])

    def _one_by_one(self, todo: _Pairs) -> tuple[_Pairs, _Pairs]:
        """The nodes under some that can be found with little work, and those whose children are left for others."""
        points, children, few, after, class_of = (
            self._points, self._children, self._table.few, self._table.after, self._table.classes.of,
        )  # fmt: skip
        found: _Pairs = []
        wide: _Pairs = []
        while todo:
            node, state = todo.pop()
            start, end = children[node], children[node + 1]
            if start == end:
                continue
            if len(found) >= _MOST:
                wide.append((node, state))
                continue
            nexts = few(state)
            if nexts is not None:
                below = []
                for point, there in nexts:
                    child = bisect_left(points, point, start, end)
                    if child < end and points[child] == point:
                        below.append((child, there))
            elif end - start <= _SMALL:
                row = after(state)
                below = [(child, row[class_of(points[child])]) for child in range(start, end)]
                below = [(child, there) for child, there in below if there >= 0]
            else:
                wide.append((node, state))
                continue
            found += below
            todo += below
        return found, wide

    def _level(self, nodes: Indices, states: Indices) -> tuple[Indices, Indices]:
        """The children that can follow."""
        below, counts = spread(self._trie.children, nodes)
        return self._live(below, self._classes_at(below), np.repeat(states, counts))

    def _live(self, nodes: Indices, classes: Indices, before: Indices) -> tuple[Indices, Indices]:
        """Those nodes, with their states, whose classes can follow the states before them."""
        after = self._table.gather(before, classes)
        live = np.flatnonzero(after >= 0)
        return nodes.take(live), after.take(live)


def _arrays(pairs: _Pairs) -> tuple[Indices, Indices]:
    both = np.array(pairs, np.intp).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _joined(found: list[tuple[Indices, Indices]]) -> tuple[Indices, Indices]:
    if len(found) == 1:
        return found[0]
    return np.concatenate([nodes for nodes, _ in found]), np.concatenate([states for _, states in found])
