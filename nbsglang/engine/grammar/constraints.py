"""Constraints of calls to matchers: by our own automaton where it can, else by llguidance.

Each constraint is compiled once for its content, on the thread that asks.

Not here: the automaton's compilation (`compiled.py`, `schema.py`), llguidance (`external.py`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.compiled import Grammar, compile_choices, compile_regex
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.grammar.rows import SharedRows
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError

if TYPE_CHECKING:
    from nbsglang.engine.grammar.external import Compiler

_MEMO = 128
_MAX_ROWS = 8192  # of masks that constraints share; older ones go with their last constraint


class Constraints:
    """Makes matchers for one vocabulary; see `Vocab` for the arguments. Any thread may use it."""

    def __init__(
        self,
        token_bytes: Sequence[bytes],
        eos_ids: Iterable[int],
        special_ids: Iterable[int] = (),
        *,
        folder: Path | None = None,
    ) -> None:
        self._token_bytes = token_bytes
        self._eos_ids, self._special_ids = tuple(eos_ids), frozenset(special_ids)
        self._folder = folder
        self._lock = threading.Lock()  # for what follows
        self._vocab: Vocab | None = None
        self._rows: SharedRows | None = None
        self._external: Compiler | None = None
        self._grammars: OrderedDict[Constraint, Grammar | None] = OrderedDict()  # None: llguidance's

    def compile(self, constraint: Constraint) -> Matcher:
        """A matcher at the beginning of the constraint.

        Raises ConstraintError (UsageError for choices without an entry), which names the constraint and the reason.
        """
        with self._lock:
            is_known = constraint in self._grammars
            grammar = self._grammars.get(constraint)
        if not is_known:  # compiled without the lock: a slow one must not hold up the others
            grammar = self._compiled(constraint)
            with self._lock:
                self._grammars[constraint] = grammar
                while len(self._grammars) > _MEMO:
                    self._grammars.popitem(last=False)
        return grammar.matcher() if grammar is not None else self._by_llguidance(constraint)

    def _compiled(self, constraint: Constraint) -> Grammar | None:
        """Our own grammar, or None where llguidance is to try."""
        value = constraint.value
        if constraint.kind == "choices":
            vocab, rows = self._own()
            return compile_choices(tuple(value), vocab, rows)
        if constraint.kind == "grammar":
            return None
        assert isinstance(value, str)
        vocab, rows = self._own()
        if constraint.kind == "schema":
            from nbsglang.engine.grammar.schema import compile_json_schema  # only for who uses it
            from nbsglang.engine.grammar.schema_places import NotRegularError

            try:
                return compile_json_schema(value, vocab, rows)
            except NotRegularError:
                return None
        try:
            return compile_regex(value, vocab, rows)
        except ConstraintError as error:
            try:
                self._by_llguidance(constraint)
            except ConstraintError:
                raise error from None  # ours says more
            return None

    def _own(self) -> tuple[Vocab, SharedRows]:
        with self._lock:
            if self._vocab is None:
                self._vocab = Vocab(self._token_bytes, self._eos_ids, self._special_ids, folder=self._folder)
            if self._rows is None or len(self._rows) > _MAX_ROWS:
                self._rows = SharedRows(self._vocab.n_words)
            return self._vocab, self._rows

    def _by_llguidance(self, constraint: Constraint) -> Matcher:
        from nbsglang.engine.grammar.external import Compiler  # loads llguidance: only for who uses it

        with self._lock:
            if self._external is None:
                self._external = Compiler(self._token_bytes, self._eos_ids, self._special_ids)
            external = self._external
        return external.compile(constraint)
