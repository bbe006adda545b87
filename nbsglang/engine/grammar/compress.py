"""The compressed automaton: chains of states that one character alone can follow are one edge, their text is forced.

Not here: how a forced text becomes tokens, drawing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.labels import label_of
from nbsglang.engine.grammar.table import Table

MAX_FORCED = 10_000  # characters that are looked at ahead


class Edge(NamedTuple):
    """From one node to another: `label` is for people, `text` what is forced along a chain ("" for a choice)."""

    source: int
    target: int
    label: str
    text: str


class Graph(NamedTuple):
    """A compressed automaton as plain values. `is_whole` is false where some of it was left out for its size."""

    start: int
    nodes: tuple[int, ...]
    edges: tuple[Edge, ...]
    accepting: frozenset[int]
    is_whole: bool


class Compressed:
    """The chains of an automaton, each found once. Any thread may use it."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[int, tuple[str, int, int]] = {}  # a chain's text, where in it the state is, the chain's end

    def forced_text(self, state: int) -> str:
        """What must come next, whatever is chosen; "" where there is a choice or the text may end."""
        text, start, _ = self._chain(state)
        return text[start:]

    def graph(self, n_nodes: int = 200, n_edges: int = 1000) -> Graph:
        """The states that can be reached without those inside chains, as far as `n_nodes` and `n_edges` go."""
        nodes = {self._table.start: None}  # in order of discovery
        queue = deque(nodes)
        edges: list[Edge] = []
        labels: dict[bytes, str] = {}
        is_whole = True
        while queue:
            source = queue.popleft()
            for target, text, chosen in self._ways(source):
                if len(edges) >= n_edges or (target not in nodes and len(nodes) >= n_nodes):
                    is_whole = False
                    continue
                if target not in nodes:
                    nodes[target] = None
                    queue.append(target)
                edges.append(Edge(source, target, repr(text)[1:-1] if text else self._label(chosen, labels), text))
        accepting = frozenset(filter(self._table.accepts, nodes))
        return Graph(self._table.start, tuple(nodes), tuple(edges), accepting, is_whole)

    def _chain(self, state: int) -> tuple[str, int, int]:
        known = self._known.get(state)
        if known is not None:
            return known
        path: list[int] = [state]
        points: list[int] = []
        while len(points) < MAX_FORCED:
            step = self._only_step(path[-1])
            if step is None:
                break
            points.append(step[0])
            path.append(step[1])
        text = "".join(map(chr, points))
        for at, passed in enumerate(path if len(points) < MAX_FORCED else path[:1]):
            self._known[passed] = (text, at, path[-1])
        return text, 0, path[-1]

    def _only_step(self, state: int) -> tuple[int, int] | None:
        """The character that must come next, with the state after it."""
        if self._table.accepts(state):
            return None
        few = self._table.few(state)
        return few[0] if few is not None and len(few) == 1 else None

    def _ways(self, source: int) -> Iterator[tuple[int, str, npt.NDArray[np.bool_]]]:
        """Where it goes from a node: the next one, the text that is forced, the classes that lead there without one."""
        text, at, end = self._chain(source)
        row = np.asarray(self._table.after(source))
        if at < len(text):
            yield end, text[at:], row >= 0
            return
        for target in dict.fromkeys(row[row >= 0].tolist()):
            yield target, "", row == target

    def _label(self, classes: npt.NDArray[np.bool_], known: dict[bytes, str]) -> str:
        key = classes.tobytes()
        if key not in known:  # a large class takes milliseconds, and often stands at many edges
            known[key] = label_of(self._table.classes.runs(classes))
        return known[key]
