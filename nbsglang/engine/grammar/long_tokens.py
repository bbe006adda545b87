"""The tokens of a vocabulary by the number of their characters, a character that has begun counted.

Not here: which of them fit somewhere (`too_long.py`).
"""

from __future__ import annotations

import numpy as np

from nbsglang.engine.grammar.begun import Begun
from nbsglang.engine.grammar.trie import Indices, Trie


class LongTokens:
    """The tokens that do not begin inside a character. Never changes."""

    def __init__(self, trie: Trie, begun: Begun) -> None:
        whole = np.flatnonzero(trie.ends)
        nodes = np.concatenate([trie.ends.take(whole), begun.nodes])
        lengths = np.searchsorted(trie.levels, nodes, "right") - 1
        lengths[len(whole) :] += 1
        order = np.argsort(lengths, kind="stable")
        self._lengths = lengths.take(order)
        self._tokens = np.concatenate([whole, begun.tokens]).take(order)
        self._nodes = nodes.take(order)
        self._tails = np.concatenate([np.full(len(whole), -1), begun.tails]).take(order)

    def than(self, n_chars: int) -> tuple[Indices, Indices, Indices]:
        """Those of more characters: the tokens, the nodes of their whole characters, and the numbers of their tails,
        -1 for none."""
        first = int(np.searchsorted(self._lengths, n_chars, "right"))
        return self._tokens[first:], self._nodes[first:], self._tails[first:]
