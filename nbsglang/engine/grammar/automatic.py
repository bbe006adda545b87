"""A `Matcher` over our own automaton: where one text stands, and how it got there.

An automaton whose states have become too many is left for a new one, which goes on from the state of the text: so a
text may meet any number of states, while only some are kept.

Not here: masks and what may follow (`index.py`), forced text (`compress.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from nbsglang.engine.grammar.limits import OutgrownError
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.moves import State
from nbsglang.errors import ConstraintError

if TYPE_CHECKING:
    from nbsglang.engine.grammar.compiled import Grammar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _renewing(
    ask: Callable[Concatenate[AutomatonMatcher, _P], _T],
) -> Callable[Concatenate[AutomatonMatcher, _P], _T]:
    """Ask again with a new automaton where there is no room for more states. What asks changes nothing before."""

    @wraps(ask)
    def asked(matcher: AutomatonMatcher, /, *args: _P.args, **options: _P.kwargs) -> _T:
        is_new = False
        while True:
            try:
                return ask(matcher, *args, **options)
            except OutgrownError:
                if is_new:  # this one place needs more than there may be
                    raise
                is_new = matcher._renew()

    return asked


class AutomatonMatcher:
    """A `Matcher` at the beginning of a grammar. Its rows are those of states: others share them, and read only."""

    def __init__(self, grammar: Grammar) -> None:
        self._set_grammar(grammar)
        self._state: State = self._index.start
        self._past: list[State] = []  # before each accepted token that was text, in this automaton
        self._before: list[tuple[Hashable, bytes]] = []  # those of earlier automata, by their keys
        self._n_eos = 0  # accepted after the text

    def _set_grammar(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._index = grammar.index
        self._eos_ids = frozenset(grammar.vocab.eos_ids)

    @property
    @_renewing
    def row(self) -> int:
        """See `Matcher.row`: the index of `mask()` in `Grammar.rows`."""
        return self._grammar.eos_row if self._n_eos else self._index.row(self._state)

    @property
    @_renewing
    def done(self) -> bool:
        """See `Matcher.done`."""
        return self._n_eos > 0 or self._index.accepts(self._state)

    @property
    @_renewing
    def ended(self) -> bool:
        """See `Matcher.ended`."""
        return self._n_eos > 0 or (self._index.accepts(self._state) and not self._index.has_text(self._state))

    def mask(self) -> MaskRow:
        """See `Matcher.mask`. Nobody can write to it."""
        if self._n_eos:
            return self._grammar.rows.views[self._grammar.eos_row]
        try:
            return self._index.mask(self._state)  # straight: mostly there is room
        except OutgrownError:
            return self._mask()

    @_renewing
    def _mask(self) -> MaskRow:
        return self._index.mask(self._state)

    @_renewing
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

    @_renewing
    def rollback(self, n_tokens: int) -> None:
        """See `Matcher.rollback`."""
        assert 0 <= n_tokens <= len(self._past) + len(self._before) + self._n_eos, "more tokens than were accepted"
        n_text = n_tokens - min(n_tokens, self._n_eos)
        n_before = n_text - len(self._past)
        if n_before > 0:
            key, begun = self._before[-n_before]
            self._state = self._index.table.state_of(key), begun
            del self._before[-n_before:]
            self._past.clear()
        elif n_text:
            self._state = self._past[-n_text]
            del self._past[-n_text:]
        self._n_eos -= n_tokens - n_text

    @_renewing
    def forced(self) -> str:
        """See `Matcher.forced`."""
        at, begun = self._state
        return "" if begun or self._n_eos else self._grammar.compressed.forced_text(at)

    def fork(self) -> AutomatonMatcher:
        """See `Matcher.fork`."""
        other = AutomatonMatcher(self._grammar)
        other._state, other._n_eos = self._state, self._n_eos
        other._past, other._before = self._past.copy(), self._before.copy()
        return other

    def seed(self, prefix: bytes) -> None:
        """See `Matcher.seed`."""
        if self._past or self._before or self._n_eos:
            raise ConstraintError("a required prefix must be given before the first token")
        self._set_grammar(self._grammar.after(prefix))
        self._state = self._index.start

    def _renew(self) -> bool:
        """Go on in an automaton with room for the state; whether it had none so far."""
        keys = [(self._index.table.key(at), begun) for at, begun in (*self._past, self._state)]
        grammar, is_new = self._grammar.renewed()
        while True:
            try:
                at = grammar.index.table.state_of(keys[-1][0])
                break
            except OutgrownError:
                if is_new:
                    raise
                grammar, is_new = grammar.renewed()
        self._set_grammar(grammar)
        self._before += keys[:-1]
        self._past, self._state = [], (at, keys[-1][1])
        return is_new

    def close(self) -> None:
        """See `Matcher.close`: there is nothing to give back."""
