"""Where texts lead in a vocabulary's trie, and the tokens on the way.

They are remembered: the same names and values come again in many places of a schema, and in other schemas.

Not here: which texts must follow (`spots.py`), what comes after them (`ways.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from nbsglang.engine.grammar.trie import Trie, plain

_KEPT = 20_000  # texts
_KEPT_BELOW = 500  # nodes, that is quotes and what stands before them


# The tokens along a text, also those that end inside one of its characters; and the node at its end, -1 where no token
# goes on after the text, or as far. Tuples of numbers alone cost the garbage collector nothing.
Path: TypeAlias = tuple[tuple[int, ...], int]


class Paths:
    """The paths of one vocabulary. Any thread may ask.

    `begun_at` are the tokens that end inside a character, by the node before it, with the places in `tails` of the
    bytes that they have of it.
    """

    def __init__(self, trie: Trie, begun_at: Mapping[int, Iterable[tuple[int, int]]], tails: Sequence[bytes]) -> None:
        self._points, self._children = plain(trie.points), plain(trie.children)
        self._owners, self._words = plain(trie.owners), plain(trie.words)
        self._begun_at, self._tails = begun_at, tails
        self._firsts = {self._points[node]: node for node in range(1, self._children[1])}
        self._known: dict[tuple[int, str], Path] = {}
        self._below: dict[int, frozenset[int]] = {}

    def path(self, node: int, text: str) -> Path:
        """The way of a text from a node on."""
        found = self._known.get((node, text))
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[node, text] = self._walked(node, text)
        return found

    def child(self, node: int, point: int) -> int:
        """The node that a character leads to, -1 if there is none."""
        if node == 0:
            return self._firsts.get(point, -1)
        first, behind = self._children[node], self._children[node + 1]
        child = bisect_left(self._points, point, first, behind)
        return child if child < behind and self._points[child] == point else -1

    def step(self, node: int, point: int, tokens: list[int]) -> int:
        """The same; adds the tokens that end in or with the character."""
        if point >= 0x80:
            tokens += self.going_on(self._begun_at.get(node, ()), point)
        child = self.child(node, point)
        if child >= 0:
            tokens += self._words[self._owners[child] : self._owners[child + 1]]
        return child

    def words(self, node: int) -> Iterable[int]:
        """The tokens of a node."""
        return self._words[self._owners[node] : self._owners[node + 1]]

    def below(self, node: int) -> frozenset[int]:
        """The tokens that begin with the text of a node; the same object for one node, mostly."""
        found = self._below.get(node)
        if found is None:
            if len(self._below) >= _KEPT_BELOW:
                self._below.clear()
            tokens: list[int] = []
            todo = [node]
            for at in todo:
                tokens += self._words[self._owners[at] : self._owners[at + 1]]
                tokens += (token for token, _ in self._begun_at.get(at, ()))
                todo += range(self._children[at], self._children[at + 1])
            found = self._below[node] = frozenset(tokens)
        return found

    def going_on(self, begun: Iterable[tuple[int, int]], point: int) -> list[int]:
        """Those of some tokens, given with the numbers of their tails, that the bytes of a character go on from."""
        data = chr(point).encode()
        return [token for token, tail in begun if data.startswith(self._tails[tail])]

    def goes_on(self, node: int) -> bool:
        """Whether tokens have more after a node, whole characters or not."""
        return self._children[node] < self._children[node + 1] or node in self._begun_at

    def _walked(self, node: int, text: str) -> Path:
        tokens: list[int] = []
        for char in text:
            node = self.step(node, ord(char), tokens)
            if node < 0:
                return tuple(tokens), -1
        return tuple(tokens), node if self.goes_on(node) else -1
