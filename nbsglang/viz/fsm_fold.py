"""The automaton of a constraint made small for the eye: equal states are one, and states that only count are folded.

States from which the same may follow are one. Of those that only count, four in a row are one edge `\\d{4}`, and up to
fifteen more of a class are a loop `[a-z]{0,15}`.

Not here: pictures of it (`fsm.py`), how an automaton comes about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nbsglang.events import ConstraintGraph

MAX_NODES, MAX_EDGES = 200, 600  # of what a log may say
_ESCAPED = {"\\n": "\n", "\\t": "\t", "\\r": "\r", **{f"\\{char}": char for char in "\\]^-["}}  # single characters


class FsmEdge(NamedTuple):
    """From a node to another: `text` is a class of characters, or what is forced; `times` how often, as in `a{4}`."""

    source: int
    target: int
    text: str
    is_forced: bool
    times: str = ""


class Fsm(NamedTuple):
    """What is drawn of a graph: nodes from 0 on in its order, those in which the text may end, and edges."""

    n_nodes: int
    start: int | None
    accepting: frozenset[int]
    edges: tuple[FsmEdge, ...]


def folded(graph: ConstraintGraph) -> Fsm:
    """The graph with equal states made one and states that only count folded, in bounds whatever the log says."""
    nodes = list(dict.fromkeys(graph.nodes))[:MAX_NODES]
    accepting = set(graph.accepting).intersection(nodes)
    edges = [FsmEdge(a, b, text, n > 0) for a, b, text, n in graph.edges[:MAX_EDGES] if {a, b}.issubset(nodes)]
    same = _same(nodes, accepting, edges) if graph.is_whole else {node: node for node in nodes}
    edges = [e._replace(target=same[e.target]) for e in edges if same[e.source] == e.source]
    nodes = list(dict.fromkeys(same.values()))
    start = same.get(graph.start, -1)
    folding = _Folding(start, accepting, edges, graph.is_whole)
    folding.fold_limits(nodes)
    folding.fold_rows(nodes)
    number = {node: n for n, node in enumerate(node for node in nodes if node not in folding.gone)}
    return Fsm(
        len(number),
        number.get(start),
        frozenset(number[node] for node in folding.accepting if node in number),
        tuple(e._replace(source=number[e.source], target=number[e.target]) for e in folding.edges()),
    )


def _same(nodes: list[int], accepting: set[int], edges: list[FsmEdge]) -> dict[int, int]:
    """For each node the first one from which the same may follow."""
    out: dict[int, list[FsmEdge]] = {}
    for edge in edges:
        out.setdefault(edge.source, []).append(edge)
    # What a label only counts may be different characters under one name.
    own = {e.source: e.source for e in edges if "…" in e.text or e.text.endswith(" more")}
    same: dict[int, object] = {node: (node in accepting, own.get(node)) for node in nodes}
    n_before = 0
    while (n_now := len(set(same.values()))) > n_before:  # those that are told apart by where they lead to
        n_before = n_now
        ways = {
            node: (same[node], frozenset((e.text, e.is_forced, same[e.target]) for e in out.get(node, ())))
            for node in nodes
        }
        number = {way: n for n, way in enumerate(dict.fromkeys(ways.values()))}
        same = {node: number[ways[node]] for node in nodes}
    firsts: dict[object, int] = {}
    return {node: firsts.setdefault(same[node], node) for node in nodes}


class _Folding:
    """Edges by their sources, while states that only count go."""

    def __init__(self, start: int, accepting: set[int], edges: Iterable[FsmEdge], is_whole: bool) -> None:
        self.accepting = accepting
        self.gone: set[int] = set()
        self._start = start
        self._is_whole = is_whole
        self._out: dict[int, list[FsmEdge]] = {}
        self._n_in: dict[int, int] = {}
        for edge in edges:
            self._out.setdefault(edge.source, []).append(edge)
            self._n_in[edge.target] = self._n_in.get(edge.target, 0) + 1

    def edges(self) -> list[FsmEdge]:
        """What is left."""
        return [edge for source, edges in self._out.items() if source not in self.gone for edge in edges]

    def fold_rows(self, nodes: list[int]) -> None:
        """Make one edge of several with the same characters, where nothing else happens at the nodes between."""
        for node in nodes:
            if node in self.gone:
                continue
            for n, edge in enumerate(self._out.get(node, [])):
                count = 1
                while (after := self._same_again(edge)) is not None:
                    self.gone.add(edge.target)
                    count += 1
                    edge = after._replace(source=node, times=f"{{{count}}}")
                self._out[node][n] = edge

    def _same_again(self, edge: FsmEdge) -> FsmEdge | None:
        """The only edge from the target, if it has the same characters and the target is worth no circle."""
        after = self._out.get(edge.target, [])
        if edge.is_forced or len(after) != 1 or edge.target in self.accepting or edge.target == edge.source:
            return None
        if not self._is_inner(edge.target) or after[0].is_forced or after[0].text != edge.text or after[0].times:
            return None
        return after[0]

    def fold_limits(self, nodes: list[int]) -> None:
        """Make a loop of nodes after each other that differ only in how many of the same characters may still come."""
        for node in nodes:
            if node in self.gone:
                continue
            for n, edge in enumerate(self._out.get(node, [])):
                row = self._counted(edge)
                if len(row) > 1:
                    self._drop(row)
                    more = "" if self._is_whole else "…"
                    self._out[node][n] = FsmEdge(node, node, edge.text, False, f"{{0,{len(row)}{more}}}")
                    break

    def _drop(self, row: list[int]) -> None:
        """Take the nodes out, but a last one to which other ways lead as well."""
        gone = [node for node in row if self._is_inner(node)]
        self.gone.update(gone)
        for edge in (edge for node in gone for edge in self._out.get(node, [])):
            self._n_in[edge.target] -= edge.target not in self.gone

    def _counted(self, edge: FsmEdge) -> list[int]:
        """The nodes after the first that do as it does, up to one from which the edge's characters do not go on."""
        first, row = edge.source, list[int]()
        others = self._others(first, edge.text)
        if edge.is_forced or (not others and first not in self.accepting):
            return []
        while True:
            here = edge.target
            if here == first or (here in self.accepting) != (first in self.accepting):
                return []
            row.append(here)
            if self._others(here, edge.text) != others:
                return row if self._leads_on(here, others) else []
            after = next((e for e in self._out.get(here, []) if not e.is_forced and e.text == edge.text), None)
            if after is None:
                return row
            if not self._is_inner(here):
                return []
            edge = after

    def _leads_on(self, node: int, others: set[tuple[int, str]]) -> bool:
        """The node has one way, a forced text, and the only one of `others` is the same, perhaps in two edges."""
        (target, begin), *more = others or {(-1, "")}
        after, rest = self._out.get(node, []), self._out.get(target, [])
        if more or len(after) != 1 or not after[0].is_forced:
            return False
        begin = _ESCAPED.get(begin, begin)
        if (after[0].target, after[0].text) == (target, begin):
            return True
        return len(rest) == 1 and (after[0].target, after[0].text) == (rest[0].target, begin + rest[0].text)

    def _others(self, node: int, text: str) -> set[tuple[int, str]]:
        """Where it goes from a node with other characters than these."""
        return {(e.target, e.text) for e in self._out.get(node, []) if e.is_forced or e.text != text}

    def _is_inner(self, node: int) -> bool:
        return node != self._start and self._n_in.get(node) == 1
