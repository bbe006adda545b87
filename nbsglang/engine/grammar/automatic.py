"""A `Matcher` over our own automaton: where one text stands, and how it got there.

Not here: masks and what may follow (`index.py`), forced text (`compress.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.moves import State
from nbsglang.errors import ConstraintError

if TYPE_CHECKING:
    from nbsglang.engine.grammar.compiled import Grammar


class AutomatonMatcher:
    """A `Matcher` at the beginning of a grammar. Its rows are those of states: others share them, and read only."""

    def __init__(self, grammar: Grammar) -> None:
        self._set_grammar(grammar)
        self._state: State = self._index.start
        self._past: list[State] = []  # before each accepted token that was text
        self._n_eos = 0  # accepted after the text

    def _set_grammar(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._index = grammar.index
        self._eos_ids = frozenset(grammar.vocab.eos_ids)

    @property
    def row(self) -> int:
        """See `Matcher.row`: the index of `mask()` in `Grammar.rows`."""
        return self._grammar.eos_row if self._n_eos else self._index.row(self._state)

    @property
    def done(self) -> bool:
        """See `Matcher.done`."""
        return self._n_eos > 0 or self._index.accepts(self._state)

    @property
    def ended(self) -> bool:
        """See `Matcher.ended`."""
        return self._n_eos > 0 or (self._index.accepts(self._state) and not self._index.has_text(self._state))

    def mask(self) -> MaskRow:
        """See `Matcher.mask`. Nobody can write to it."""
        if self._n_eos:
            return self._grammar.rows.view(self._grammar.eos_row)
        return self._index.mask(self._state)

    def accept(self, token: int) -> bool:
        """See `Matcher.accept`."""
        if token in self._eos_ids:
            self._n_eos += self.done
            return self.done
        if self._n_eos or not 0 <= token < self._grammar.vocab.n_vocab:
            return False
        after = self._index.after(self._state, token)
        if after is None:
            return False
        self._past.append(self._state)
        self._state = after
        return True

    def rollback(self, n_tokens: int) -> None:
        """See `Matcher.rollback`."""
        assert 0 <= n_tokens <= len(self._past) + self._n_eos, "more tokens than were accepted"
        n_eos = min(n_tokens, self._n_eos)
        self._n_eos -= n_eos
        n_text = n_tokens - n_eos
        if n_text:
            self._state = self._past[-n_text]
            del self._past[-n_text:]

    def forced(self) -> str:
        """See `Matcher.forced`."""
        at, begun = self._state
        return "" if begun or self._n_eos else self._grammar.compressed.forced_text(at)

    def fork(self) -> AutomatonMatcher:
        """See `Matcher.fork`."""
        other = AutomatonMatcher(self._grammar)
        other._state, other._past, other._n_eos = self._state, self._past.copy(), self._n_eos
        return other

    def seed(self, prefix: bytes) -> None:
        """See `Matcher.seed`."""
        if self._past or self._n_eos:
            raise ConstraintError("a required prefix must be given before the first token")
        self._set_grammar(self._grammar.after(prefix))
        self._state = self._index.start

    def close(self) -> None:
        """See `Matcher.close`: there is nothing to give back."""
