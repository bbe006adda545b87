"""The tokens that have more characters than a string of a pattern has room for.

Most tokens are short, so only those are looked at that could be too long.

Not here: the states of such strings (`measured.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nbsglang.engine.grammar.asked import Asked
from nbsglang.engine.grammar.tails import Tails
from nbsglang.engine.grammar.trie import plain
from nbsglang.engine.grammar.vocab import Vocab

_MOST = 512  # tokens that are looked at one by one


class TooLong:
    """What does not fit in a part of strings of bounded lengths. Not for several threads at once."""

    def __init__(self, vocab: Vocab, asked: Asked, class_of: Callable[[int], int], tails: Tails) -> None:
        self._vocab, self._asked = vocab, asked
        self._class_of, self._tails = class_of, tails
        self._points, self._parents = plain(vocab.trie.points), plain(vocab.trie.parents)

    def of(self, node: int, state: int, room: int) -> frozenset[int] | None:
        """The tokens below a node of the trie that are too long in a state, where none of up to `room` characters
        is; None if too many would have to be looked at. Tokens that are no text of the part may be among them."""
        order, depth = self._vocab.preorder, self._vocab.depths.item(node)
        tokens, nodes, tails = self._vocab.long_tokens.than(max(room, 0) + depth)
        if node:
            first = order.places.item(node)
            places = order.places.take(nodes)
            below = np.flatnonzero((places >= first) & (places < order.ends.item(first)))
            tokens, nodes, tails = tokens.take(below), nodes.take(below), tails.take(below)
        if len(tokens) > _MOST:
            return None
        some = zip(tokens.tolist(), nodes.tolist(), tails.tolist(), strict=True)
        return frozenset(
            [token for token, at, tail in some if not self._fits(state, self._text(at, node), token, tail)]
        )

    def _text(self, node: int, above: int) -> list[int]:
        """The code points from a node down to another."""
        found = []
        while node != above:
            found.append(self._points[node])
            node = self._parents[node]
        return found[::-1]

    def _fits(self, state: int, text: list[int], token: int, tail: int) -> bool:
        asked = self._asked
        for point in text:
            after = asked.after(state).get(self._class_of(point))
            if after is None:
                return False
            if asked.accepts(after):
                return True  # what comes behind the string is for others
            state = after
        return tail < 0 or bool(self._tails.within(asked.after(state), [(token, tail)]))
