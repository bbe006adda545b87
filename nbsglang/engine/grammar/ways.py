"""How tokens go on from a position of a part with places for others, whatever the part goes back to.

Not here: parts without places for others (`leaves.py`), what they lead to together (`composed.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from nbsglang.engine.grammar.merged import Merged
from nbsglang.engine.grammar.spots import Spots
from nbsglang.engine.grammar.vocab import Vocab

KEPT = 10_000  # results of a part, of each kind
KEPT_ROWS = 1_000  # fewer of what holds rows
_K = TypeVar("_K")
_V = TypeVar("_V")


class Way(NamedTuple):  # of tuples, which the garbage collector need not go through
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
    here: Merged
    calls: Sequence[tuple[int, int]]
    ends: bool


class Ways:
    """The ways of one part. Not for several threads at once."""

    def __init__(self, vocab: Vocab, spots: Spots) -> None:
        self._paths, self._spots = vocab.paths, spots
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
        paths, spots = self._paths, self._spots
        tokens: Sequence[int] = ()
        while text := spots.text(at):
            more, node = paths.path(node, text)
            tokens = [*tokens, *more] if tokens else more
            if node < 0:
                return Way(tokens, (), 0, (), False)
            at += len(text)
        texts, calls, ends = spots.next(at)
        if not texts:
            return Way(tokens, (), node, calls, ends)
        downs: list[tuple[int, int]] = []
        for text, positions in texts:
            more, child = paths.path(node, text)
            tokens = [*tokens, *more] if tokens else more
            if child >= 0:
                downs += [(child, after) for after in positions]
        return Way(tuple(tokens), tuple(downs), node, calls, ends)

    def _small_way(self, at: Merged, position: int) -> SmallWay:
        tokens: list[int] = []
        while text := self._spots.text(position):
            below = self._below(at, text, tokens)
            if below is None:
                return SmallWay(tuple(tokens), (), at, (), False)
            at = below
            position += len(text)
        texts, calls, ends = self._spots.next(position)
        downs: list[tuple[Merged, int]] = []
        for text, positions in texts:
            below = self._below(at, text, tokens)
            if below is not None and not below.is_empty:
                downs += [(below, after) for after in positions]
        return SmallWay(tuple(tokens), tuple(downs), at, calls, ends)

    def _below(self, at: Merged, text: str, tokens: list[int]) -> Merged | None:
        """Where a text leads in a small trie; adds the tokens that end on the way."""
        for char in text:
            if at.begun and char >= "\x80":
                tokens += self._paths.going_on(at.begun, ord(char))
            below = at.children.get(ord(char))
            if below is None:
                return None
            tokens += below.tokens
            at = below
        return at


def keep(known: dict[_K, _V], key: _K, value: _V, most: int = KEPT) -> _V:
    """Have a value in a dict that does not grow without end."""
    if len(known) >= most:
        known.clear()
    known[key] = value
    return value
