"""Text to ids through private copies of a user's tokenizer.

Fast tokenizers are copied from their JSON, so that padding, truncation or added tokens of the user's object
cannot change ids in the middle of a request. Special tokens in data are text, never ids: for that there is a
second copy in which every special token bears a random name. Where data holds a special token's text, those that
the program or the template wrote are renamed in the text and the whole is encoded by the second copy, which no
data can address. Added tokens that are not special (`<think>` in some vocabularies) are vocabulary like any other.

Not here: BOS, the memo, bytes of tokens (`tokenizer.py`), the JSON itself (`tokenizer_json.py`).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import tokenizers

from nbsglang.engine.tokenizer_json import Json, drop_prefix, load, rename_special, spelling, unknown_id

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Piece: TypeAlias = tuple[str, bool]  # a text, and whether special tokens in it are meant as such


class Encoder(Protocol):
    """What `Tokenizer` needs of either kind."""

    @property
    def spelling(self) -> str:
        """How token strings spell bytes: "bytes" (GPT-2's map), "spaces" (▁ and <0xNN>) or "" (ask decode)."""
        ...

    def bos_ids(self) -> tuple[int, ...]:
        """What the tokenizer puts before a text by itself."""
        ...

    def encode(self, pieces: Sequence[Piece], first: bool) -> list[int]:
        """The ids of the joined pieces, without BOS; without a dummy space before them unless `first`."""
        ...


def make_encoder(tokenizer: PreTrainedTokenizerBase, special: dict[int, str]) -> Encoder:
    """The encoder for a tokenizer with these special tokens (id to text)."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return _SlowEncoder(tokenizer, special)
    return _FastEncoder(json.loads(backend.to_str()), special)


class _Found(NamedTuple):
    start: int  # the span of the token's own text, without blanks that it swallows
    end: int
    token: int


class _FastEncoder:
    """Encodes with copies of a Rust tokenizer; the rarer copies are made when first needed."""

    def __init__(self, spec: Json, special: dict[int, str]) -> None:
        spec["padding"] = spec["truncation"] = None
        added = {token["id"] for token in spec["added_tokens"]}
        self._special = {token: text for token, text in special.items() if token in added}
        self._names = {token: f"\U0010fffd{secrets.token_hex(16)}.{token}\U0010fffd" for token in self._special}
        self._unknown = unknown_id(spec)
        self._json = json.dumps(spec)  # as text: small beside the parsed form, and nobody can change it
        self._plain = load(spec)
        self._has_prefix = drop_prefix(spec)
        self._spelling = spelling(spec)

    @property
    def spelling(self) -> str:
        return self._spelling

    def bos_ids(self) -> tuple[int, ...]:
        return _before(self._plain.encode("a").ids, self._plain.encode("a", add_special_tokens=False).ids)

    def encode(self, pieces: Sequence[Piece], first: bool) -> list[int]:
        text = "".join(piece for piece, _ in pieces)
        head, rest = (self._plain if first or not self._has_prefix else self._plain_on), self._plain
        encoding = head.encode(text, add_special_tokens=False)
        found = self._found(text, encoding)
        if not _all_meant(pieces, found):
            text = self._rename(pieces)
            head, rest = (self._renamed if first or not self._has_prefix else self._renamed_on), self._renamed
            encoding = head.encode(text, add_special_tokens=False)
            found = self._found(text, encoding)
        if head is rest or not found:
            return list(encoding.ids)
        # A run that continues a text: only what stands before its first special token goes without a dummy space.
        at = found[0].start
        ids = head.encode(text[:at], add_special_tokens=False).ids if at else []
        return [*ids, *rest.encode(text[at:], add_special_tokens=False).ids]

    @cached_property
    def _plain_on(self) -> tokenizers.Tokenizer:
        spec = json.loads(self._json)
        drop_prefix(spec)
        return load(spec)

    @cached_property
    def _renamed(self) -> tokenizers.Tokenizer:
        spec = json.loads(self._json)
        rename_special(spec, self._names)
        return load(spec)

    @cached_property
    def _renamed_on(self) -> tokenizers.Tokenizer:
        spec = json.loads(self._json)
        rename_special(spec, self._names)
        drop_prefix(spec)
        return load(spec)

    def _found(self, text: str, encoding: tokenizers.Encoding) -> list[_Found]:
        """The special tokens of an encoding, in order, apart from unknown characters."""
        found = []
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if token in self._special and end > start:
                core = text[start:end]
                start += len(core) - len(core.lstrip())
                core = core.strip()
                if core and (token != self._unknown or core in (self._special[token], self._names[token])):
                    found.append(_Found(start, start + len(core), token))
        return found

    def _rename(self, pieces: Sequence[Piece]) -> str:
        """The joined text, with the special tokens that are meant under their second names."""
        parts = []
        for text, special in pieces:
            if special:
                for item in reversed(self._found(text, self._plain.encode(text, add_special_tokens=False))):
                    text = text[: item.start] + self._names[item.token] + text[item.end :]
            parts.append(text)
        return "".join(parts)


class _SlowEncoder:
    """Encodes through the generic calls of a tokenizer written in Python."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, special: dict[int, str]) -> None:
        self._tokenizer = tokenizer
        texts = sorted(filter(None, special.values()), key=len, reverse=True)
        self._special = re.compile("(" + "|".join(map(re.escape, texts)) + ")") if texts else re.compile("(?!)()")

    @property
    def spelling(self) -> str:
        return "spaces" if any("▁" in token for token in self._tokenizer.get_vocab()) else ""

    def bos_ids(self) -> tuple[int, ...]:
        return _before(self._ids("a", True, special=True), self._ids("a", False, special=True))

    def encode(self, pieces: Sequence[Piece], first: bool) -> list[int]:
        text = "".join(piece for piece, _ in pieces)
        if not any(self._special.search(piece) for piece, special in pieces if not special):
            return self._ids(text, False, special=True)
        stretches: list[Piece] = []  # a special token that is meant, or any text up to the next such token
        for piece, special in pieces:
            for number, part in enumerate(self._special.split(piece) if special else [piece]):
                meant = number % 2 == 1
                if not meant and stretches and not stretches[-1][1]:
                    stretches[-1] = (stretches[-1][0] + part, False)
                else:
                    stretches.append((part, meant))
        return [token for part, meant in stretches if part for token in self._ids(part, False, special=meant)]

    def _ids(self, text: str, bos: bool, *, special: bool) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=bos, split_special_tokens=not special))


def _all_meant(pieces: Sequence[Piece], found: Sequence[_Found]) -> bool:
    """Whether each special token lies inside a piece that may have some."""
    spans = []
    start = 0
    for text, special in pieces:
        if special:
            spans.append((start, start + len(text)))
        start += len(text)
    return all(any(a <= item.start and item.end <= b for a, b in spans) for item in found)


def _before(whole: Sequence[int], part: Sequence[int]) -> tuple[int, ...]:
    """What stands before `part` in `whole`."""
    for start in range(len(whole) - len(part) + 1):
        if list(whole[start : start + len(part)]) == list(part):
            return tuple(whole[:start])
    return ()
