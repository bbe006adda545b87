"""Tokens that end inside a character, after whole characters or none: which of them can follow.

Not here: tokens that begin inside one (`index.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.reached import Reached
from nbsglang.engine.grammar.table import Table
from nbsglang.engine.grammar.trie import Indices
from nbsglang.engine.grammar.vocab import Vocab

_NONE = np.zeros(0, np.intp)


class Ends(NamedTuple):
    """Tokens with the states of the automaton after their whole characters."""

    tokens: Indices
    states: Indices


class Tails:
    """The tokens of a vocabulary with a tail and no head, for one automaton."""

    def __init__(self, vocab: Vocab, table: Table) -> None:
        self._table = table
        self._begun = begun = vocab.begun
        self._classes = table.classes.within(begun.firsts, begun.lasts)  # [tails, n_classes]
        some: npt.NDArray[np.bool_] = np.any(self._classes, axis=0)
        self._any: list[bool] = some.tolist()
        self._live: dict[int, npt.NDArray[np.bool_] | None] = {}
        self._is_node = begun.is_node.tobytes()

    def of(self, reached: Reached, base: int = 0) -> Ends:
        """Those that can follow what has been reached from a node, or it."""
        begun = self._begun
        first, behind = np.searchsorted(begun.nodes, [base, base + 1])
        found: list[tuple[Indices, int]] = [(np.arange(first, behind), reached.start)]
        for stretch, chain in reached.parts:
            found += [(at, chain[depth]) for depth, at in stretch.shape.begun if depth < len(chain)]
        others = np.flatnonzero(begun.is_node.take(reached.nodes)) if len(reached.nodes) else _NONE
        for node, state in zip(reached.nodes[others].tolist(), reached.states[others].tolist(), strict=True):
            first, behind = np.searchsorted(begun.nodes, [node, node + 1])
            found.append((np.arange(first, behind), state))
        ends = [self._of(at, state) for at, state in found if self._after(state) is not None]
        if not ends:
            return Ends(_NONE, _NONE)
        return Ends(np.concatenate([end.tokens for end in ends]), np.concatenate([end.states for end in ends]))

    def beside(self, nodes: Iterable[tuple[int, int]]) -> list[int]:
        """Those at some nodes, with the state at each, that can follow."""
        found: list[int] = []
        for node, state in nodes:
            if self._is_node[node] and self._after(state) is not None:
                first, behind = np.searchsorted(self._begun.nodes, [node, node + 1])
                found += self._of(np.arange(first, behind), state).tokens.tolist()
        return found

    def after(self, state: int, begun: Sequence[tuple[int, int]]) -> list[int]:
        """Those of some tokens, given with the numbers of their tails, that a character after a state goes on from."""
        live = self._after(state) if begun else None
        return [] if live is None else [token for token, tail in begun if live[tail]]

    def within(self, classes: Iterable[int], begun: Sequence[tuple[int, int]]) -> list[int]:
        """Those of some tokens, as for `after`, that a character of some classes goes on from."""
        some = [cls for cls in classes if self._any[cls]] if begun else []
        return [token for token, tail in begun if self._classes[tail, some].any()] if some else []

    def _of(self, at: Indices, state: int) -> Ends:
        live = self._after(state)
        assert live is not None, "a state that has some"
        tokens = self._begun.tokens[at[live[self._begun.tails[at]]]]
        return Ends(tokens, np.full(len(tokens), state))

    def _after(self, state: int) -> npt.NDArray[np.bool_] | None:
        """Which tails some character that can follow begins with, None if there is no such tail. [tails]"""
        if state not in self._live:
            few = self._table.few(state)
            if few is None:
                live = (cls for cls, after in enumerate(self._table.after(state)) if after >= 0)
            else:
                live = (self._table.classes.of(point) for point, _ in few)
            classes = [cls for cls in live if self._any[cls]]
            self._live[state] = np.any(self._classes[:, classes], axis=1) if classes else None
        return self._live[state]
