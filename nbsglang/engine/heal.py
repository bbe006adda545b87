"""Token healing: the end of a prompt that the first generated tokens may spell anew.

A prompt that ends in "http:" has ":" as its last token, after which "//" is unlikely: where the text goes on, the
tokenizer writes "://" as one. So the last tokens are taken back as far as a longer token could absorb them. Each may
come again as it was; instead of the rest a token may come that begins with the text of the rest and goes on. Shorter
tokens may not: they would split what the tokenizer had as one.

Not here: who asks (`intake.py`), leaving the text of the prompt out of the answer (`commit.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbsglang.engine.grammar.matcher import MaskRow, Matcher
from nbsglang.engine.spellings import Spellings
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import ConstraintError


class End(NamedTuple):
    """The tokens that were taken back, their text, and for each the mask of those that may stand in its place."""

    ids: tuple[int, ...] = ()
    text: str = ""
    masks: tuple[MaskRow, ...] = ()


class Healer:
    """Finds the ends of prompts of one tokenizer; the ids in `never` are no text. Safe from any thread."""

    def __init__(self, tokenizer: Tokenizer, never: Iterable[int]) -> None:
        self._tokenizer = tokenizer
        self._never = frozenset(never)

    def end(self, ids: Sequence[int], n_literal: int) -> End:
        """The last tokens of a prompt that are to be taken back; none where there is nothing to heal.

        They are the most whose joined text begins a longer token, of the last `n_literal` tokens and never all of the
        prompt. Special tokens and what is before them stay.
        """
        rests, best = [], 0
        data = b""
        for n in range(1, min(n_literal, len(ids) - 1) + 1):
            own = self._table[ids[-n]]
            if not own or len(data) + len(own) >= self._longest:
                break
            data = own + data
            rests.append(data)
            if len(self._spellings.longer(data)) and _is_text(data):
                best = n
        if not best:
            return End()
        taken, rests = tuple(ids[-best:]), rests[best - 1 :: -1]
        return End(taken, rests[0].decode(), tuple(map(self._mask, taken, rests)))

    def _mask(self, token: int, rest: bytes) -> MaskRow:
        """The token, and those that begin with the rest of the text and go on."""
        bits = np.zeros(-(-len(self._table) // 32) * 32, np.uint8)
        bits[[token, *self._spellings.longer(rest)]] = 1
        return np.packbits(bits, bitorder="little").view(np.int32)

    @cached_property
    def _table(self) -> list[bytes]:
        """The bytes of the tokens that are text."""
        table = self._tokenizer.bytes_table
        return [b"" if token in self._never else data for token, data in enumerate(table)]

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self._table)

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._table), default=0)


class HealingMatcher:
    """A `Matcher` of texts that begin with the end of a prompt.

    After that `inner` says what may follow, which was seeded with the same text; without it anything may, and this
    matcher is of no more use.
    """

    def __init__(self, end: End, inner: Matcher | None) -> None:
        self._end = end
        self.inner = inner
        self._n = 0  # tokens accepted
        self._n_over = len(end.ids)  # as many of them spell the end of the prompt

    @property
    def row(self) -> int:
        """See `Matcher.row`: of the masks of the end, then of the inner matcher's."""
        return self._n if self._is_within or self.inner is None else self.inner.row

    @property
    def done(self) -> bool:
        """See `Matcher.done`."""
        return not self._is_within and (self.inner is None or self.inner.done)

    @property
    def ended(self) -> bool:
        """See `Matcher.ended`."""
        return not self._is_within and self.inner is not None and self.inner.ended

    def mask(self) -> MaskRow:
        """See `Matcher.mask`."""
        if not self._is_within:
            assert self.inner is not None, "anything may follow"
            return self.inner.mask()
        mask = self._end.masks[self._n]
        if self.inner is None:
            return mask
        inner = self.inner.mask()
        both = np.zeros_like(inner)
        n = min(len(mask), len(inner))
        np.bitwise_and(mask[:n], inner[:n], out=both[:n])
        return both

    def accept(self, token: int) -> bool:
        """See `Matcher.accept`."""
        if self._is_within and not self._has(token):
            return False
        if self.inner is not None and not self.inner.accept(token):
            return False
        if self._is_within and token != self._end.ids[self._n]:
            self._n_over = self._n + 1
        self._n += 1
        return True

    def rollback(self, n_tokens: int) -> None:
        """See `Matcher.rollback`."""
        assert 0 <= n_tokens <= self._n, "more tokens than were accepted"
        if self.inner is not None:
            self.inner.rollback(n_tokens)
        self._n -= n_tokens
        if self._is_within:
            self._n_over = len(self._end.ids)

    def forced(self) -> str:
        """See `Matcher.forced`."""
        return self.inner.forced() if self.inner is not None else ""

    def fork(self) -> HealingMatcher:
        """See `Matcher.fork`."""
        other = HealingMatcher(self._end, self.inner.fork() if self.inner is not None else None)
        other._n, other._n_over = self._n, self._n_over
        return other

    def seed(self, prefix: bytes) -> None:
        """See `Matcher.seed`: there is one required prefix already."""
        raise ConstraintError("a required prefix cannot be given to a text that has one")

    def close(self) -> None:
        """See `Matcher.close`."""
        if self.inner is not None:
            self.inner.close()

    @property
    def _is_within(self) -> bool:
        return self._n < self._n_over

    def _has(self, token: int) -> bool:
        mask = self._end.masks[self._n]
        return 0 <= token < 32 * len(mask) and bool(mask[token >> 5] >> (token & 31) & 1)


def _is_text(data: bytes) -> bool:
    """Whether the bytes are whole characters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
