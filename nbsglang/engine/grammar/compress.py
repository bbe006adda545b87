"""The compressed automaton: chains of states that one character alone can follow are one edge, their text is forced.

Not here: how a forced text becomes tokens, drawing.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from nbsglang.engine.grammar.partition import Run
from nbsglang.engine.grammar.table import Table

MAX_FORCED = 10_000  # characters that are looked at ahead
_MAX_SHOWN = 6  # runs of characters in a label


class Edge(NamedTuple):
    """From one node to another: `label` is for people, `text` what is forced along a chain ("" for a choice)."""

    source: int
    target: int
    label: str
    text: str


class Graph(NamedTuple):
    """A compressed automaton as plain values. `is_whole` is false where states were left out for their number."""

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

    def graph(self, n_nodes: int = 200) -> Graph:
        """The states that can be reached without those inside chains, as far as `n_nodes` go."""
        nodes = {self._table.start: None}  # in order of discovery
        queue = deque(nodes)
        edges: list[Edge] = []
        is_whole = True
        while queue:
            source = queue.popleft()
            for edge in self._edges(source):
                if edge.target not in nodes:
                    if len(nodes) >= n_nodes:
                        is_whole = False
                        continue
                    nodes[edge.target] = None
                    queue.append(edge.target)
                edges.append(edge)
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

    def _edges(self, source: int) -> list[Edge]:
        text, at, end = self._chain(source)
        if at < len(text):
            return [Edge(source, end, repr(text[at:])[1:-1], text[at:])]
        row = np.asarray(self._table.after(source))
        targets = dict.fromkeys(row[row >= 0].tolist())
        return [Edge(source, target, _shown(self._table.classes.runs(row == target)), "") for target in targets]


def _shown(runs: list[Run]) -> str:
    """Some characters as a class of a regular expression; what is not shown is counted."""
    if len(runs) == 1 and runs[0].first == runs[0].last:
        return _char(runs[0].first)
    outside = _outside(runs)
    if len(outside) < len(runs):
        return _listed(outside, "[^") if outside else "any"
    return _listed(runs, "[")


def _listed(runs: list[Run], begin: str) -> str:
    parts = [_char(first) if first == last else f"{_char(first)}-{_char(last)}" for first, last in runs[:_MAX_SHOWN]]
    left_out = sum(last - first + 1 for first, last in runs[_MAX_SHOWN:])
    return f"{begin}{''.join(parts)}]" + (f" and {left_out} more" * bool(left_out))


def _outside(runs: list[Run]) -> list[Run]:
    """The characters that are in none of the runs; surrogates count for neither."""
    outside, begin = [], 0
    for first, last in [*runs, Run(0x110000, 0x110000)]:
        if begin < first and not (begin >= 0xD800 and first <= 0xE000):
            outside.append(Run(begin, first - 1))
        begin = last + 1
    return outside


def _char(point: int) -> str:
    char = chr(point)
    if char in "\\]^-[":
        return "\\" + char
    return char if char.isprintable() else repr(char)[1:-1]
