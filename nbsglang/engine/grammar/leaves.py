"""How tokens go on in a part without places for others, whatever it goes back to.

Not here: its masks (`parts.py`), parts with places for others (`ways.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbsglang.engine.grammar.asked import Asked
from nbsglang.engine.grammar.counted import CountedStrings
from nbsglang.engine.grammar.lengths import Lengths
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.merged import Merged
from nbsglang.engine.grammar.others import Without
from nbsglang.engine.grammar.partition import Classes
from nbsglang.engine.grammar.parts import Part, Parts, parts_of
from nbsglang.engine.grammar.rules import Counted, Others, Shared
from nbsglang.engine.grammar.tails import Tails
from nbsglang.engine.grammar.vocab import Vocab, plain
from nbsglang.engine.grammar.ways import keep


class Left(NamedTuple):
    """A part, and the tokens that are no way of it after all, neither in it nor beyond."""

    part: Part
    left_out: Container[int]

    def kept(self, tokens: Sequence[int]) -> Sequence[int]:
        """Those of some tokens that are none of these."""
        left_out = self.left_out
        return [token for token in tokens if token not in left_out] if left_out else tokens


class Read(NamedTuple):
    """What follows in a small trie: tokens, and nodes with the states there and whether the part may end."""

    tokens: Sequence[int]
    downs: Sequence[tuple[Merged, int, bool]]


class Leaf:
    """A part for one vocabulary; with `alone` its automaton is no other grammar's. Not for several threads at once."""

    def __init__(self, vocab: Vocab, asked: Asked, classes: Classes, tails: Tails, alone: bool) -> None:
        self._vocab, self._asked = vocab, asked
        self._class_of, self._tails = classes.of, tails
        self._alone = alone
        self._left: dict[tuple[int, int], Left] = {}
        self._read: dict[tuple[Merged, int], Read] = {}

    def part(self, node: int, state: int) -> Left:
        """What follows a state at a node of the vocabulary's trie."""
        found = self._left.get((node, state))
        return found if found is not None else keep(self._left, (node, state), self._made(node, state))

    def small(self, at: Merged, state: int) -> Read:
        """What follows a state at a node of a small trie."""
        found = self._read.get((at, state))
        return found if found is not None else keep(self._read, (at, state), self._found(at, state))

    def _made(self, node: int, state: int) -> Left:
        piece = self._asked.piece
        if isinstance(piece, CountedStrings):
            return self._counted(node, piece, state)
        if not isinstance(piece, Without):
            return Left(self._parts.part(state, node), ())
        state, begun = piece.pair(state)
        part = self._parts.part(state, node)
        left_out = {token for points in piece.endings(begun) for token in self._with(node, points)}
        if not left_out:
            return Left(part, ())
        own = [token for token in part.tokens if token not in left_out]
        return Left(Part(_without(part.row, left_out), own, part.beyond), [*left_out])

    @cached_property
    def _parts(self) -> Parts:
        rule = self._asked.rule.shared if isinstance(self._asked.rule, Others) else self._asked.rule
        if isinstance(rule, Shared) and not self._alone:
            return parts_of(self._vocab, rule)
        piece = self._asked.piece
        return Parts(self._vocab, piece.inner if isinstance(piece, Without) else piece, self._asked.lock)

    def _counted(self, node: int, piece: CountedStrings, state: int) -> Left:
        """Strings of so many characters are those of as many as are left."""
        rule = self._asked.rule
        assert isinstance(rule, Counted), "what the piece is of"
        with self._asked.lock:
            at, n_chars = piece.pair(state)
            lengths = self._lengths(rule.shared, piece)
            least = min(max(piece.least - n_chars, 0), lengths.longest)
            most = lengths.longest if piece.most is None else min(piece.most - n_chars, lengths.longest)
            if node == 0 and at == piece.body:
                return Left(Part(lengths.row(least, most), (), lengths.beyond), lengths.outside(least, most))
            parts = parts_of(self._vocab, Counted(rule.shared, least, most))
            left = parts.piece
            assert isinstance(left, CountedStrings), "the same with other bounds"
            return Left(parts.part(left.state_of((piece.inner.key(at), 0)), node), ())

    def _lengths(self, shared: Shared, piece: CountedStrings) -> Lengths:
        found = self._vocab.lengths.get(shared)
        if found is None:
            found = self._vocab.lengths[shared] = Lengths(self._vocab, piece)
        return found

    def _with(self, node: int, points: Iterable[int]) -> Iterable[int]:
        """All tokens that have these characters after a node."""
        trie = self._vocab.trie
        children, all_points = plain(trie.children), plain(trie.points)
        for point in points:
            first, behind = children[node], children[node + 1]
            node = bisect_left(all_points, point, first, behind)
            if node == behind or all_points[node] != point:
                return
        todo = [node]
        while todo:
            node = todo.pop()
            yield from trie.words[trie.owners[node] : trie.owners[node + 1]].tolist()
            yield from (token for token, _ in self._vocab.begun_at.get(node, ()))
            todo += range(children[node], children[node + 1])

    def _found(self, at: Merged, state: int) -> Read:
        nexts = self._asked.after(state)
        tokens = self._tails.within(nexts, at.begun)
        downs: list[tuple[Merged, int, bool]] = []
        for point, below in at.children.items():
            after = nexts.get(self._class_of(point))
            if after is not None:
                tokens += below.tokens
                if not below.is_empty:
                    downs.append((below, after, self._asked.accepts(after)))
        return Read(tokens, downs)


def _without(row: MaskRow | None, tokens: Iterable[int]) -> MaskRow | None:
    if row is None:
        return None
    row = row.copy()
    data = plain(row.view(np.uint8))
    for token in tokens:
        data[token >> 3] &= ~(1 << (token & 7)) & 255
    return row
