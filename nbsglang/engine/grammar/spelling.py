"""The bytes that a tokenizer's tokens stand for, from the strings that it spells them with.

Not here: ids for text, and everything else that a tokenizer does.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, NamedTuple

from nbsglang.errors import UsageError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")


class TokenTable(NamedTuple):
    """Bytes of each id, the ids that end a text, and those that are never text."""

    token_bytes: tuple[bytes, ...]
    eos_ids: tuple[int, ...]
    never: frozenset[int]


def token_table(tokenizer: Any, n_vocab: int = 0) -> TokenTable:
    """The table of a fast tokenizer of transformers: special and added tokens are no text.

    Raises UsageError for a tokenizer whose spelling is none of GPT-2's characters for bytes, or `▁` and `<0xNN>`.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    spells = from_byte_chars, from_spaces
    way = _way(json.loads(backend.to_str())["decoder"]) if backend is not None else None
    if way is None:
        raise UsageError(
            f"{type(tokenizer).__name__} spells its tokens in no way known here; "
            "give Vocab the bytes of each token: Vocab(token_bytes, eos_ids, special_ids)"
        )
    never = frozenset(tokenizer.added_tokens_decoder) | frozenset(tokenizer.all_special_ids)
    vocab: dict[str, int] = tokenizer.get_vocab()
    table = [b""] * max(n_vocab, max(vocab.values(), default=-1) + 1)
    for text, token in vocab.items():
        if token not in never:
            table[token] = spells[way](text)
    own = tokenizer.eos_token_id
    eos_ids = tuple(own) if isinstance(own, list) else () if own is None else (own,)
    return TokenTable(tuple(table), eos_ids, never)


def from_byte_chars(text: str) -> bytes:
    """The bytes that GPT-2's characters stand for; a text with other characters stands for itself."""
    chars = _byte_of_char()
    try:
        return bytes([chars[char] for char in text])
    except KeyError:
        return text.encode()


def from_spaces(text: str) -> bytes:
    """The bytes of SentencePiece's spelling: `▁` is a space, `<0xNN>` a byte."""
    byte = _BYTE_TOKEN.match(text)
    return bytes([int(byte[1], 16)]) if byte else text.replace("▁", " ").encode()


def _way(decoder: Any) -> int | None:
    """0 for GPT-2's characters, 1 for SentencePiece's, None for what is neither."""
    steps = _steps(decoder)
    kinds = {step["type"] for step in steps}
    if "ByteLevel" in kinds:
        return 0
    replaces = any(step["type"] == "Replace" and step.get("pattern") == {"String": "▁"} for step in steps)
    return 1 if kinds & {"Metaspace", "ByteFallback"} or replaces else None


def _steps(decoder: Any) -> list[Any]:
    if decoder is None:
        return []
    return (
        [leaf for step in decoder["decoders"] for leaf in _steps(step)] if decoder["type"] == "Sequence" else [decoder]
    )


@cache
def _byte_of_char() -> dict[str, int]:
    """GPT-2's map: printable Latin-1 stands for itself, the other bytes, in order, for U+0100 and up."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + n): byte for n, byte in enumerate(hidden)}
