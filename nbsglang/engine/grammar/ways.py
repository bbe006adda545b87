"""How tokens go on from a position of a part with places for others, whatever the part goes back to.

Not here: parts without places for others (`leaves.py`), what they lead to together (`composed.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from nbsglang.engine.grammar.merged import Merged
from nbsglang.engine.grammar.spots import NO_CHAR, Spots
from nbsglang.engine.grammar.vocab import Vocab, plain

_KEPT = 10_000  # results of a part, of each kind
_K = TypeVar("_K")
_V = TypeVar("_V")


class Way(NamedTuple):
    """Tokens that end on the way; nodes that it goes on from, with the positions there.

    `calls` are other parts that begin at the node `here`, with the positions after them; with `ends` the part may end
    there.
    """

    tokens: Sequence[int]
    downs: Sequence[tuple[int, int]]
    here: int
    calls: Sequence[tuple[int, int]]
    ends: bool


class SmallWay(NamedTuple):
    """The same in a small trie."""

    tokens: Sequence[int]
    downs: Sequence[tuple[Merged, int]]
    calls: Sequence[tuple[int, int]]
    ends: bool


class Ways:
    """The ways of one part. Not for several threads at once."""

    def __init__(self, vocab: Vocab, spots: Spots) -> None:
        self._vocab, self._spots = vocab, spots
        trie = vocab.trie
        self._points, self._children = plain(trie.points), plain(trie.children)
        self._owners, self._words = plain(trie.owners), plain(trie.words)
        self._known: dict[tuple[int, int], Way] = {}
        self._small: dict[tuple[Merged, int], SmallWay] = {}

    def way(self, node: int, position: int) -> Way:
        """What follows a position at a node of the vocabulary's trie."""
        found = self._known.get((node, position))
        return found if found is not None else keep(self._known, (node, position), self._way(node, position))

    def small(self, at: Merged, position: int) -> SmallWay:
        """What follows a position at a node of a small trie."""
        found = self._small.get((at, position))
        return found if found is not None else keep(self._small, (at, position), self._small_way(at, position))

    def _way(self, node: int, at: int) -> Way:
        forced, points, children = self._spots.forced, self._points, self._children
        tokens: list[int] = []
        while (point := forced[at]) != NO_CHAR:
            if point >= 0x80:
                tokens += self._vocab.going_on(self._vocab.begun_at.get(node, ()), point)
            behind = children[node + 1]
            node = bisect_left(points, point, children[node], behind)
            if node == behind or points[node] != point:
                return Way(tokens, (), 0, (), False)
            tokens += self._words[self._owners[node] : self._owners[node + 1]]
            at += 1
        if not self._vocab.goes_on.item(node):
            return Way(tokens, (), 0, (), False)
        chars, calls, ends = self._spots.next(at)
        pairs = [(self._step(node, point, tokens), after) for point, after in chars]
        downs = [(child, after) for child, after in pairs if child >= 0 and self._vocab.goes_on.item(child)]
        return Way(tokens, downs, node, calls, ends)

    def _step(self, node: int, point: int, tokens: list[int]) -> int:
        """The child with a code point, -1 if there is none; adds the tokens that end in or with the character."""
        if point >= 0x80:
            tokens += self._vocab.going_on(self._vocab.begun_at.get(node, ()), point)
        first, behind = self._children[node], self._children[node + 1]
        child = bisect_left(self._points, point, first, behind)
        if child == behind or self._points[child] != point:
            return -1
        tokens += self._words[self._owners[child] : self._owners[child + 1]]
        return child

    def _small_way(self, at: Merged, position: int) -> SmallWay:
        chars, calls, ends = self._spots.next(position)
        tokens: list[int] = []
        downs: list[tuple[Merged, int]] = []
        for point, after in chars:
            if point >= 0x80:
                tokens += self._vocab.going_on(at.begun, point)
            below = at.children.get(point)
            if below is not None:
                tokens += below.tokens
                if not below.is_empty:
                    downs.append((below, after))
        return SmallWay(tokens, downs, calls, ends)


def keep(known: dict[_K, _V], key: _K, value: _V) -> _V:
    """Have a value in a dict that does not grow without end."""
    if len(known) >= _KEPT:
        known.clear()
    known[key] = value
    return value
