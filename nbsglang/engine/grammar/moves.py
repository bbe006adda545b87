"""What tokens do to a state: which can follow over characters, and where they lead.

A state is that of the automaton after whole characters, with the bytes of a character that has begun.

Not here: whether a match can be reached by tokens (`live.py`), masks (`index.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from nbsglang.engine.grammar.begun import Broken
from nbsglang.engine.grammar.narrow import Level, Narrow
from nbsglang.engine.grammar.reached import Reached
from nbsglang.engine.grammar.table import Table
from nbsglang.engine.grammar.tails import Ends, Tails
from nbsglang.engine.grammar.trie import spread
from nbsglang.engine.grammar.utf8 import completions
from nbsglang.engine.grammar.vocab import BROKEN, NEVER, Vocab
from nbsglang.engine.grammar.walk import Walk

State: TypeAlias = tuple[int, bytes]


class Moves:
    """The tokens of one vocabulary on one automaton. Reading a token is safe on any thread, the rest is not."""

    def __init__(self, vocab: Vocab, table: Table) -> None:
        self._vocab = vocab
        self._table = table
        self._walk = Walk(vocab, table)
        self._narrow = Narrow(vocab, table)
        self.tails = Tails(vocab, table)
        self._begun: dict[bytes, list[bool]] = {}

    def read(self, state: State, token: int) -> State | None:
        """The state after a token, if its whole characters can follow; see `can_finish` for one that has begun."""
        kind = self._vocab.kinds.item(token)
        if kind == NEVER:
            return None
        at, begun = state
        if kind == BROKEN:
            return self._read_broken(at, begun, self._vocab.broken_by_id[token])
        if begun:
            return None
        at = self._table.read(at, self._vocab.token_bytes[token].decode())
        return (at, b"") if at >= 0 else None

    def can_finish(self, state: State) -> bool:
        """Whether a character that has begun, if one has, can be one that follows."""
        at, begun = state
        if not begun:
            return True
        classes = self._begun.get(begun)
        if classes is None:
            classes = self._begun[begun] = self._table.classes.begun_by(begun)
        return any(after >= 0 and has for after, has in zip(self._table.after(at), classes, strict=True))

    def finishing(self, state: State) -> Iterator[tuple[int, State]]:
        """The tokens that can follow where a character has begun, with the states after them."""
        for item in self._vocab.finishers:
            after = self._read_broken(*state, item)
            if after is not None and self.can_finish(after):
                yield item.token, after

    def narrow(self, state: State, base: int = 0) -> tuple[list[int], list[tuple[Level, int]]] | None:
        """The tokens that can follow where no character has begun, and the nodes with the states there; None where
        there may be many. `base` is as for `reach`."""
        levels = self._narrow.after(state[0], base)
        if levels is None:
            return None
        tokens = self.tails.beside([(base, state[0]), *((node, at) for level, at in levels for node in level.begun)])
        for level, _ in levels:
            tokens += level.tokens
        return tokens, levels

    def reach(self, state: State, base: int = 0) -> tuple[Reached, Ends, Ends]:
        """Where no character has begun: the nodes that can follow; the tokens there, but for stretches, that are
        whole characters; and all others that can follow. All of it below `base`, a node that led to the state."""
        return self._ends(self._walk.reach(state[0], base), base)

    def _ends(self, reached: Reached, base: int) -> tuple[Reached, Ends, Ends]:
        trie = self._vocab.trie
        at, counts = spread(trie.owners, reached.nodes)
        words = Ends(trie.words.take(at), np.repeat(reached.states, counts))
        return reached, words, self.tails.of(reached, base)

    def after(self, ends: Ends) -> list[State]:
        """The states after some tokens."""
        broken = self._vocab.broken_by_id
        pairs = zip(ends.tokens.tolist(), ends.states.tolist(), strict=True)
        return [(state, broken[token].parts.tail if token in broken else b"") for token, state in pairs]

    def successors(self, state: State) -> set[State]:
        """The states after each token that can follow."""
        if state[1]:
            return {after for _, after in self.finishing(state)}
        reached, words, broken = self.reach(state)
        found = {(at, b"") for at in set(words.states.tolist())} | set(self.after(broken))
        for stretch, chain in reached.parts:
            found |= {(chain[depth], b"") for depth in stretch.shape.word_depths if depth < len(chain)}
        return found

    def _read_broken(self, at: int, begun: bytes, item: Broken) -> State | None:
        head, middle, tail = item.parts
        if bool(begun) != bool(head):
            return None
        if head:
            first = begun + head
            try:
                char = first.decode()
            except UnicodeDecodeError:
                goes_on = not middle and not tail and completions(first) is not None
                return (at, first) if goes_on else None
            middle = char + middle
        at = self._table.read(at, middle)
        return (at, tail) if at >= 0 else None
