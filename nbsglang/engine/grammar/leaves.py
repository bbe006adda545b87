"""How tokens go on in a part without places for others, whatever it goes back to.

Not here: its masks (`parts.py`), parts with places for others (`ways.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbsglang.engine.grammar.asked import Asked
from nbsglang.engine.grammar.counted import CountedStrings
from nbsglang.engine.grammar.lengths import Lengths
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.measured import MeasuredStrings
from nbsglang.engine.grammar.merged import Merged
from nbsglang.engine.grammar.multiples import Residues
from nbsglang.engine.grammar.others import Without
from nbsglang.engine.grammar.paired import Paired
from nbsglang.engine.grammar.partition import Classes
from nbsglang.engine.grammar.parts import Part, Parts, parts_of
from nbsglang.engine.grammar.rules import Counted, Derived, Measured, Shared
from nbsglang.engine.grammar.tails import Tails
from nbsglang.engine.grammar.too_long import TooLong
from nbsglang.engine.grammar.trie import plain
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.engine.grammar.ways import KEPT_ROWS, keep

_NONE: frozenset[int] = frozenset()


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
        self._less: dict[tuple[int, frozenset[int]], tuple[MaskRow, MaskRow]] = {}  # with what the keys are of

    def part(self, node: int, state: int) -> Left:
        """What follows a state at a node of the vocabulary's trie."""
        found = self._left.get((node, state))
        return found if found is not None else keep(self._left, (node, state), self._made(node, state))

    @property
    def beyonds(self) -> Iterable[Merged]:
        """What tokens have beyond the part's end, from where it has been looked at."""
        return {left.part.beyond for left in self._left.values() if left.part.beyond is not None}

    def small(self, at: Merged, state: int) -> Read:
        """What follows a state at a node of a small trie."""
        found = self._read.get((at, state))
        return found if found is not None else keep(self._read, (at, state), self._found(at, state))

    def _made(self, node: int, state: int) -> Left:
        piece = self._asked.piece
        if isinstance(piece, Without):
            at, begun = piece.pair(state)
            return self._but(self._parts.part(at, node), self._those_of(piece, begun, node))
        if isinstance(piece, CountedStrings):
            return self._counted(node, piece, state)
        if isinstance(piece, MeasuredStrings):
            return self._measured(node, piece, state)
        parts = self._own_parts if isinstance(piece, Residues) else self._parts
        return Left(parts.part(state, node), ())

    @cached_property
    def _parts(self) -> Parts:
        rule = self._asked.rule.shared if isinstance(self._asked.rule, Derived) else self._asked.rule
        if isinstance(rule, Shared) and not self._alone:
            return parts_of(self._vocab, rule)
        piece = self._asked.piece
        return Parts(self._vocab, piece.inner if isinstance(piece, Paired) else piece, self._asked.lock)

    @cached_property
    def _own_parts(self) -> Parts:
        return Parts(self._vocab, self._asked.piece, self._asked.lock)

    @cached_property
    def _too_long(self) -> TooLong:
        return TooLong(self._vocab, self._asked, self._class_of, self._tails)

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

    def _measured(self, node: int, piece: MeasuredStrings, state: int) -> Left:
        """Strings of a pattern of up to so many characters: those of the pattern but for what is too long."""
        rule = self._asked.rule
        assert isinstance(rule, Measured), "what the piece is of"
        with self._asked.lock:
            room = piece.most - piece.n_chars(state) - rule.farthest
            left_out = self._too_long.of(node, state, room)
            if left_out is None:
                return Left(self._own_parts.part(state, node), ())
            return self._but(self._parts.part(piece.pair(state)[0], node), left_out)

    def _lengths(self, shared: Shared, piece: CountedStrings) -> Lengths:
        found = self._vocab.lengths.get(shared)
        if found is None:
            found = self._vocab.lengths[shared] = Lengths(self._vocab, piece)
        return found

    def _those_of(self, piece: Without, begun: int, node: int) -> frozenset[int]:
        """All tokens that have one of the texts left out, of which so much has been read, after a node."""
        found = _NONE
        todo = [(begun, node)]
        while todo:
            begun, node = todo.pop()
            if piece.is_one(begun):
                below = self._vocab.paths.below(node)
                found = found | below if found else below
            for point, after in piece.nexts(begun):
                child = self._vocab.paths.child(node, point)
                if child >= 0:
                    todo.append((after, child))
        return found

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

    def _but(self, part: Part, left_out: frozenset[int]) -> Left:
        """A part without some tokens."""
        if not left_out:
            return Left(part, ())
        row = None if part.row is None else self._without(part.row, left_out)
        own = tuple([token for token in part.tokens if token not in left_out])
        return Left(Part(row, own, part.beyond), left_out)

    def _without(self, row: MaskRow, tokens: frozenset[int]) -> MaskRow:
        """A row without some tokens: the same object for the same ones, so that masks can be told apart by it."""
        known = self._less.get((id(row), tokens))
        if known is None:
            less = row.copy()
            data = plain(less.view(np.uint8))
            for token in tokens:
                data[token >> 3] &= ~(1 << (token & 7)) & 255
            known = keep(self._less, (id(row), tokens), (less, row), KEPT_ROWS)
        return known[0]
