"""Constraints by llguidance: compiles them once, and fills the `Matcher` contract.

llguidance is loaded when the first Compiler is made. It sees the bytes of the tokens only: special tokens are no
text to it, and EOS is decided here (allowed exactly where the text so far is a full match). Its habit of forcing
canonical tokens is off, so that a mask says what may come next and not how it would best be spelled.

Not here: the text that it is given (`source.py`), the meaning of regular expressions (`pattern.py`).
"""

from __future__ import annotations

import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.matcher import MaskRow, MaskTable
from nbsglang.engine.grammar.source import after_prefix, grammar_text, named
from nbsglang.errors import ConstraintError

if TYPE_CHECKING:
    from llguidance import LLMatcher

_MEMO = 128


class Compiler:
    """Makes matchers for one vocabulary.

    `token_bytes` are the bytes of each id (b"" for ids that are no text), `eos_ids` what ends a text, `special_ids`
    what is never text. `compile` is safe from any thread; a matcher belongs to one.
    """

    def __init__(self, token_bytes: Sequence[bytes], eos_ids: Iterable[int], special_ids: Iterable[int] = ()) -> None:
        self.n_vocab = len(token_bytes)
        self.eos_ids = frozenset(eos_ids)
        never = frozenset(special_ids) | self.eos_ids
        never |= {token for token, data in enumerate(token_bytes) if not data}
        self._tokenizer = _make_tokenizer(token_bytes, never)
        n_bits = self._tokenizer.vocab_size
        self.table = MaskTable(n_bits)
        self.text_row = _packed((token for token in range(self.n_vocab) if token not in never), n_bits)
        self.eos_row = _packed(self.eos_ids, n_bits)
        self._memo: OrderedDict[tuple[Constraint, bytes], LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def compile(self, constraint: Constraint, prefix: bytes = b"") -> ExternalMatcher:
        """A matcher at the beginning of the constraint, after a required `prefix` if there is one.

        Compiled once for each content. Raises ConstraintError (UsageError for choices without an entry), which names
        the constraint and the reason: it does not compile, is not supported, or no token can begin it.
        """
        key = (constraint, prefix)
        with self._lock:
            start = self._memo.get(key)
            if start is None:
                start = self._start(constraint, prefix)
                self._memo[key] = start
                if len(self._memo) > _MEMO:
                    self._memo.popitem(last=False)
            self._memo.move_to_end(key)
            return ExternalMatcher(self, constraint, start.deep_copy())

    def _start(self, constraint: Constraint, prefix: bytes) -> LLMatcher:
        from llguidance import LLMatcher, LLParserLimits

        grammar = grammar_text(constraint)
        if prefix:
            grammar = after_prefix(grammar, prefix)
        limits = LLParserLimits(verbose_errors=False)
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=limits)
        if matcher.is_error():
            raise ConstraintError(f"{named(constraint)} cannot be used: {_reason(matcher)}")
        # Not into the table, which belongs to the engine's thread.
        ExternalMatcher(self, constraint, matcher.deep_copy()).fill(np.empty_like(self.text_row))
        return matcher


class ExternalMatcher:
    """A `Matcher` over one llguidance matcher."""

    def __init__(self, compiler: Compiler, constraint: Constraint, inner: LLMatcher, n_tokens: int = 0) -> None:
        self._compiler = compiler
        self._constraint = constraint
        self._inner = inner
        self._n_tokens = n_tokens  # that `inner` has consumed
        self._n_eos = 0  # accepted after the text
        self._row: int | None = None
        self._give_back: weakref.finalize[Any, Any] | None = None
        self._is_fresh = False  # the row is the mask of this state

    @property
    def row(self) -> int:
        """The index of `mask()` in the compiler's table; taken when first asked for, on the matcher's own thread."""
        if self._row is None:
            table = self._compiler.table
            self._row = table.take()
            self._give_back = weakref.finalize(self, table.give_back, self._row)
        return self._row

    @property
    def done(self) -> bool:
        """The text so far is a full match."""
        return self._n_eos > 0 or self._inner.is_accepting()

    @property
    def ended(self) -> bool:
        """Nothing can follow but EOS, or EOS was accepted."""
        if self._n_eos or not self._inner.is_accepting():
            return self._n_eos > 0
        if self._inner.is_stopped():
            return True
        # Where nothing has been consumed yet, and at tokens' dead ends, only the mask tells.
        row = self.mask() if self._compiler.eos_ids else self._text_tokens(np.empty_like(self._compiler.text_row))
        return not (row & self._compiler.text_row).any()

    def mask(self) -> MaskRow:
        """See `Matcher.mask`."""
        index = self.row  # first: to take a row may replace the array
        row: MaskRow = self._compiler.table.rows[index]
        if not self._is_fresh:
            self.fill(row)
            self._is_fresh = True
        return row

    def fill(self, row: MaskRow) -> None:
        """Write the mask to any array of a row's size. Raises as `mask` does."""
        if self._n_eos:
            row[:] = self._compiler.eos_row
            return
        self._text_tokens(row)
        if self._inner.is_accepting():
            row |= self._compiler.eos_row
        if not row.any():
            why = "no token of this vocabulary can come next"
            if self._inner.is_accepting():
                why = "the text is complete, and this vocabulary has no token to end it"
            raise ConstraintError(f"{named(self._constraint)} is at a dead end: {why}")

    def accept(self, token: int) -> bool:
        """See `Matcher.accept`."""
        if not 0 <= token < self._compiler.n_vocab:
            return False
        if token in self._compiler.eos_ids:
            if not self.done:
                return False
            self._n_eos += 1
        else:
            if self._n_eos or not self._allows(token):
                return False
            if not self._inner.consume_token(token):
                raise self._error()
            self._n_tokens += 1
        self._is_fresh = False
        return True

    def rollback(self, n_tokens: int) -> None:
        """See `Matcher.rollback`."""
        assert 0 <= n_tokens <= self._n_tokens + self._n_eos, "more tokens than were accepted"
        eos = min(n_tokens, self._n_eos)
        self._n_eos -= eos
        if n_tokens > eos and not self._inner.rollback(n_tokens - eos):
            raise self._error()
        self._n_tokens -= n_tokens - eos
        self._is_fresh = self._is_fresh and n_tokens == 0

    def forced(self) -> str:
        """See `Matcher.forced`."""
        if self._n_eos or self._inner.is_stopped():
            return ""
        data = self._inner.compute_ff_bytes()
        return data.decode("utf-8", errors="ignore") if _is_text_start(data) else ""

    def fork(self) -> ExternalMatcher:
        """See `Matcher.fork`."""
        other = ExternalMatcher(self._compiler, self._constraint, self._inner.deep_copy(), self._n_tokens)
        other._n_eos = self._n_eos
        return other

    def seed(self, prefix: bytes) -> None:
        """See `Matcher.seed`."""
        if self._n_tokens or self._n_eos:
            raise ConstraintError("a required prefix must be given before the first token")
        self._inner = self._compiler.compile(self._constraint, prefix)._inner
        self._is_fresh = False

    def close(self) -> None:
        """See `Matcher.close`."""
        if self._give_back is not None:
            self._give_back()
        self._row, self._give_back, self._is_fresh = None, None, False

    def _allows(self, token: int) -> bool:
        if self._is_fresh:
            return bool(self.mask()[token >> 5] >> (token & 31) & 1)
        if not self._compiler.text_row[token >> 5] >> (token & 31) & 1:
            return False
        return self._inner.validate_tokens([token]) == 1

    def _text_tokens(self, row: MaskRow) -> MaskRow:
        """The mask without EOS, and without a check that it is not empty."""
        self._inner.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
        if not self._inner.is_error():
            row &= self._compiler.text_row
        elif self._inner.get_error().startswith("NoExtension"):  # its word for a dead end
            row[:] = 0
        else:
            raise self._error()
        return row

    def _error(self) -> ConstraintError:
        return ConstraintError(f"{named(self._constraint)} cannot go on: {_reason(self._inner)}")


def _packed(tokens: Iterable[int], n_vocab: int) -> MaskRow:
    bits = np.zeros((n_vocab + 31) // 32 * 32, dtype=np.uint8)
    bits[list(tokens)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


class _Vocabulary:
    """What llguidance wants to know of a tokenizer."""

    def __init__(self, tokens: list[bytes], special_ids: list[int]) -> None:
        self.tokens = tokens
        self.special_token_ids = special_ids
        self.bos_token_id = None
        self.eos_token_id = special_ids[0]  # never used: EOS is ours to decide

    def __call__(self, text: bytes | str) -> list[int]:
        """Only for canonical spelling, which is off."""
        return []


def _make_tokenizer(token_bytes: Sequence[bytes], never: frozenset[int]) -> Any:
    """llguidance's form of the vocabulary; where no id can be its EOS there is one id more."""
    from llguidance import LLTokenizer, TokenizerWrapper

    # A leading 0xFF marks a token that is no text; such tokens need different names.
    tokens = [b"\xff<[%d]>" % token if token in never else data for token, data in enumerate(token_bytes)]
    if not never:
        tokens.append(b"\xff<end>")
    return LLTokenizer(TokenizerWrapper(_Vocabulary(tokens, sorted(never) or [len(tokens) - 1])))


def _reason(matcher: LLMatcher) -> str:
    """llguidance's message without its stack, our own wrapping and its names for special tokens."""
    text = re.split(r"<backtrace>|<state>|; following special|\n +\d+ \| (?:start: [/%]|%llg)", matcher.get_error())[0]
    return text.strip() or "unknown reason"


def _is_text_start(data: bytes) -> bool:
    return not data or data[0] & 0xC0 != 0x80
