"""Slow answers, found without trie, automaton or classes: what may follow a text by `re`, `regex` and plain search.

Not here: tests.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
import regex

from nbsglang.engine.grammar.matcher import Matcher

BMP = [chr(point) for point in (*range(0xD800), *range(0xE000, 0x10000))]
BEYOND = [chr(p) for p in range(0x10000, 0x110000) if p % 61 == 0 or chr(p).isdecimal()]


def allowed(matcher: Matcher) -> set[int]:
    """The tokens of a mask."""
    return set(np.nonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little"))[0].tolist())


def texts_of(pattern: str, alphabet: str, longest: int) -> list[bytes]:
    """All texts up to some length over an alphabet that the pattern matches in full."""
    texts = ("".join(chars) for n in range(longest + 1) for chars in itertools.product(alphabet, repeat=n))
    return [text.encode() for text in texts if re.fullmatch(pattern, text)]


class Spelled:
    """What may follow where the matching texts are given: a token after which tokens can spell the rest of one."""

    def __init__(self, texts: Iterable[bytes], token_bytes: Sequence[bytes], eos_ids: Iterable[int] = ()) -> None:
        self.texts = sorted(set(texts))
        self.tokens = {token: data for token, data in enumerate(token_bytes) if data}
        self.eos_ids = set(eos_ids)
        self._can_spell = cache(self._spells)

    def allowed(self, text: bytes) -> set[int]:
        """The tokens that may come after a text."""
        found = {token for token, data in self.tokens.items() if self.is_live(text + data)}
        return found | (self.eos_ids if self.is_text(text) else set())

    def is_text(self, text: bytes) -> bool:
        """Whether this is one of the texts."""
        at = bisect_left(self.texts, text)
        return self.texts[at : at + 1] == [text]

    def is_live(self, text: bytes) -> bool:
        """Whether tokens can go on from here to one of the texts."""
        first, end = bisect_left(self.texts, text), bisect_left(self.texts, text + b"\xff")
        return any(self._can_spell(whole[len(text) :]) for whole in self.texts[first:end])

    def _spells(self, rest: bytes) -> bool:
        datas = self.tokens.values()
        return not rest or any(rest.startswith(data) and self._can_spell(rest[len(data) :]) for data in datas)


class Partial:
    """What may follow by the partial matches of `regex`, for vocabularies that can spell all of the pattern."""

    def __init__(
        self, pattern: str, token_bytes: Sequence[bytes], never: Iterable[int], eos_ids: Iterable[int]
    ) -> None:
        self._pattern = regex.compile(spelled_out(pattern))
        self._tokens = [(token, data) for token, data in enumerate(token_bytes) if data]
        self._never, self._eos_ids = set(never), set(eos_ids)
        self._next = cache(self._next_characters)

    def allowed(self, text: bytes) -> set[int]:
        """The tokens that may come after a text. Beyond the BMP characters are tried by sample."""
        found = {token for token, data in self._tokens if token not in self._never and self.is_live(text + data)}
        whole, begun = split(text)
        return found | (self._eos_ids if not begun and self._pattern.fullmatch(whole) else set())

    def is_live(self, data: bytes) -> bool:
        """Whether a match can begin with these bytes."""
        try:
            whole, begun = split(data)
        except UnicodeDecodeError:
            return False
        if self._pattern.fullmatch(whole, partial=True) is None:
            return False
        return not begun or any(char.startswith(begun) for char in self._next(whole))

    def _next_characters(self, whole: str) -> list[bytes]:
        match: Callable[..., object] = self._pattern.fullmatch
        return [char.encode() for char in (*BEYOND, *BMP) if match(whole + char, partial=True) is not None]


def spelled_out(pattern: str) -> str:
    """The pattern with the classes of `re` as ranges: `regex` has another idea of some characters."""
    for name in "wdsS":
        ranges = _ranges(name)
        pattern = pattern.replace(f"[\\{name}", f"[{ranges}")
        pattern = re.sub(rf"(\[[^\]]*)\\{name}", lambda match, ranges=ranges: match[1] + ranges, pattern)
        pattern = pattern.replace(f"\\{name}", f"[{ranges}]")
    return pattern


@cache
def _ranges(name: str) -> str:
    runs = re.finditer(rf"\{name}+", "".join(map(chr, range(0x110000))))
    return "".join(f"\\U{run.start():08x}-\\U{run.end() - 1:08x}" for run in runs)


def split(data: bytes) -> tuple[str, bytes]:
    """Whole characters and the beginning of another; raises UnicodeDecodeError for what cannot be UTF-8."""
    try:
        return data.decode(), b""
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            raise
        return data[: error.start].decode(), data[error.start :]
