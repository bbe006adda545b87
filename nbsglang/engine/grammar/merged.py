"""What tokens have after some nodes of a trie, in a small trie of its own: `",` and ` a",` have the same after a quote.

Not here: where the nodes come from (`parts.py`), what can follow them (`composed.py`).
"""

from __future__ import annotations

from nbsglang.engine.grammar.trie import Indices, plain
from nbsglang.engine.grammar.vocab import Vocab

_KEPT = 256  # tries of a vocabulary


class Merged:
    """A node: those below it by code points, the tokens that end here, and those that have begun a character here."""

    __slots__ = ("begun", "children", "tokens")

    def __init__(self) -> None:
        self.children: dict[int, Merged] = {}
        self.tokens: list[int] = []
        self.begun: list[tuple[int, int]] = []  # with the numbers of their tails

    @property
    def is_empty(self) -> bool:
        """There is nothing after the nodes."""
        return not (self.children or self.begun)


def merged(vocab: Vocab, nodes: Indices) -> Merged:
    """What tokens have after the nodes. The same object for the same nodes, not to be changed."""
    key = nodes.tobytes()
    found = vocab.merged.get(key)
    if found is None:
        for other in list(vocab.merged)[: max(len(vocab.merged) + 1 - _KEPT, 0)]:
            vocab.merged.pop(other, None)  # another thread may have been here
        found = vocab.merged[key] = _made(vocab, nodes.tolist())
    return found


def _made(vocab: Vocab, nodes: list[int]) -> Merged:
    trie = vocab.trie
    children, points, owners, words = plain(trie.children), plain(trie.points), plain(trie.owners), plain(trie.words)
    root = Merged()
    todo = [(root, node) for node in nodes]
    while todo:
        at, node = todo.pop()
        at.begun += vocab.begun_at.get(node, ())
        for child in range(children[node], children[node + 1]):
            below = at.children.get(points[child])
            if below is None:
                below = at.children[points[child]] = Merged()
            below.tokens += words[owners[child] : owners[child + 1]]
            todo.append((below, child))
    return root
