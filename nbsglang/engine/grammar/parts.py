"""Masks of parts without places for others, such as strings: what tokens do up to the end of the part.

What comes after its end is left to who knows it. So a part that occurs in many places, or in many grammars, is looked
at once.

Not here: how they make a mask with those of other parts (`composed.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.limits import Limits
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.merged import Merged, merged
from nbsglang.engine.grammar.moves import Moves
from nbsglang.engine.grammar.reached import Reached
from nbsglang.engine.grammar.rules import Counted, Piece, Shared, piece_of
from nbsglang.engine.grammar.table import Table
from nbsglang.engine.grammar.trie import Indices
from nbsglang.engine.grammar.vocab import Vocab, pack

_MANY = 64  # tokens: from here on they are a row
_KEPT = 512  # of a part, fewer where the rows of a large vocabulary would take more than this:
_MAX_BYTES = 4 << 20
_KEPT_PARTS = 128  # of a vocabulary


class Part(NamedTuple):
    """Tokens that stay in a part to their end, as a row and others; and what tokens have that go beyond it."""

    row: MaskRow | None
    tokens: Sequence[int]
    beyond: Merged | None


class Parts:
    """The parts of one automaton for one vocabulary, from each of its states. Any thread may ask."""

    def __init__(self, vocab: Vocab, automaton: Piece, lock: threading.RLock) -> None:
        self.piece = automaton
        self._vocab = vocab
        self._lock = lock
        self._table = Table(automaton, lock)
        self._moves = Moves(vocab, self._table)
        self._known: dict[tuple[int, int], Part] = {}
        self._rows: dict[bytes, MaskRow] = {}  # by content: many states have one
        self._most = min(_KEPT, _MAX_BYTES // max(4 * vocab.n_words, 1))

    def part(self, state: int, node: int) -> Part:
        """What follows a state at a node of the trie, which led to it."""
        found = self._known.get((state, node))
        if found is None:
            with self._lock:
                if len(self._known) >= self._most:
                    self._known.clear()
                    self._rows.clear()
                found = self._known[state, node] = self._made(state, node)
        return found

    def _made(self, state: int, node: int) -> Part:
        narrow = self._moves.narrow((state, b""), node)
        if narrow is not None:
            ends = [node for level, at in narrow[1] if level.open and self._table.accepts(at) for node in level.open]
            return self._of(narrow[0], self._beyond(np.array(ends, np.intp)))
        reached, words, broken = self._moves.reach((state, b""), node)
        tokens = np.concatenate([words.tokens, broken.tokens])
        row: MaskRow | None = None
        if reached.parts or len(tokens) > _MANY:
            row = pack(tokens, self._vocab.n_words)
            for stretch, chain in reached.parts:
                row |= stretch.shape.row(len(chain) - 1)
            row = self._rows.setdefault(row.tobytes(), row)
        return Part(row, tokens.tolist() if row is None else (), self._beyond(self._ends(reached)))

    def _of(self, tokens: list[int], beyond: Merged | None) -> Part:
        """A part of some tokens. Many are put into a mask faster as a row, and a mask may have many parts."""
        if len(tokens) <= _MANY:
            return Part(None, tokens, beyond)
        return Part(pack(np.array(tokens, np.intp), self._vocab.n_words), (), beyond)

    def _members(self, classes: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Whether each code point that the trie has is of some of the classes."""
        member = np.zeros(self._table.n_classes, bool)
        member[list(classes)] = True
        return member.take(self._point_classes)

    @cached_property
    def _point_classes(self) -> Indices:
        """The class of each code point that the trie has."""
        return self._table.classes.of_all(self._vocab.points)

    def _beyond(self, nodes: Indices) -> Merged | None:
        return merged(self._vocab, np.sort(nodes)) if len(nodes) else None

    def _ends(self, reached: Reached) -> Indices:
        """The nodes at which the part can end, of those that tokens go on from."""
        may_end = np.flatnonzero(self._vocab.goes_on.take(reached.nodes))
        if isinstance(self.piece, Automaton):
            member = self._members(self.piece.last_classes)
            may_end = may_end[member.take(self._vocab.point_of.take(reached.nodes.take(may_end)))]
        found = [reached.nodes.take(may_end[self._accepting(reached.states.take(may_end))])]
        for stretch, chain in reached.parts:
            nodes = [stretch.shape.nodes(d) for d in range(1, len(chain)) if self._table.accepts(chain[d])]
            found += [at[self._vocab.goes_on.take(at)] for at in nodes]
        return np.concatenate(found)

    def _accepting(self, states: Indices) -> Indices:
        kinds, numbers = np.unique(states, return_inverse=True)
        accepts = np.array([self._table.accepts(state) for state in kinds.tolist()], bool)
        return np.flatnonzero(accepts.take(numbers)) if len(kinds) else numbers


def parts_of(vocab: Vocab, shared: Shared | Counted) -> Parts:
    """The parts of a shared automaton, or of strings that are counted, which all grammars have together."""
    found = vocab.parts.get(shared)
    if found is None:
        for other in list(vocab.parts)[: max(len(vocab.parts) + 1 - _KEPT_PARTS, 0)]:
            vocab.parts.pop(other, None)  # another thread may have been here
        lock = shared.shared.lock if isinstance(shared, Counted) else shared.lock
        with lock:
            found = vocab.parts[shared] = Parts(vocab, piece_of(shared, Limits(), alone=False), lock)
    return found
