"""The engine's view of a transformers tokenizer: bytes of tokens, ids of literal text, incremental decoding.

The tokenizer object belongs to its user and is only read.

Not here: how text becomes ids (`encoder.py`), prompts with roles and generated ids (`prompt.py`).
"""

from __future__ import annotations

import codecs
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nbsglang.engine.encoder import Piece, make_encoder
from nbsglang.engine.grammar.spelling import from_byte_chars, from_spaces

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_MEMO_RUNS = 2048
_MEMO_CHARS = 4_000_000
_Key = tuple[tuple[Piece, ...], bool]


class Tokenizer:
    """A tokenizer as the engine needs it. Every method is safe from any thread.

    `n_vocab` widens the table of bytes to the rows of the model's logits (ids without a token have no bytes);
    `eos_ids` are further ids that end a text, such as those of a generation config.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, *, n_vocab: int | None = None, eos_ids: Iterable[int] = ()
    ) -> None:
        self.hf = tokenizer  # the user's own, for its chat template
        own_eos = tokenizer.eos_token_id
        own = own_eos if isinstance(own_eos, list) else [] if own_eos is None else [own_eos]
        self.eos_ids: tuple[int, ...] = tuple(dict.fromkeys([*own, *eos_ids]))
        self._names = {id_: token.content for id_, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._names |= dict(zip(tokenizer.all_special_ids, map(str, tokenizer.all_special_tokens), strict=True))
        self.special_texts: tuple[str, ...] = tuple(self._names.values())
        self.special_ids = frozenset(self._names) | frozenset(self.eos_ids)
        self._encoder = make_encoder(tokenizer, self._names)
        self.bos_ids = self._encoder.bos_ids()
        self._bytes = _bytes_table(tokenizer, n_vocab or 0, self.special_ids, self._encoder.spelling)
        self.n_vocab = len(self._bytes)
        self._memo: OrderedDict[_Key, tuple[int, ...]] = OrderedDict()
        self._memo_chars = 0
        self._lock = threading.Lock()

    @property
    def bytes_table(self) -> Sequence[bytes]:
        """`token_bytes` of every id. [n_vocab]"""
        return self._bytes

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for; none for special tokens and for ids that have no token."""
        return self._bytes[token] if 0 <= token < self.n_vocab else b""

    def token_text(self, token: int) -> str:
        """A text to show for a token: its bytes as text, or a special token's name."""
        return self._names.get(token) or self.token_bytes(token).decode("utf-8", errors="replace")

    def encode(self, text: str, special: bool = False, first: bool = True) -> list[int]:
        """The ids of one text, see `encode_run`."""
        return self.encode_run([(text, special)], first)

    def encode_run(self, pieces: Iterable[Piece], first: bool = True, bos: bool = True) -> list[int]:
        """The ids of adjacent pieces (text, whether special tokens in it are meant), encoded as one text.

        With `first` the run begins a prompt, and with `bos` it then starts with what the tokenizer itself puts
        there (BOS), once. Otherwise it continues a text: nothing is put before it, no dummy space either. The ids
        are those of the tokenizer for the joined text, unless a piece that is not special holds a special token.
        """
        key = (_merged(pieces), first)
        ids = self._remembered(key)
        if ids is None:
            ids = tuple(self._encoder.encode(key[0], first)) if key[0] else ()
            self._remember(key, ids)
        missing = first and bos and ids[: len(self.bos_ids)] != self.bos_ids
        return [*self.bos_ids, *ids] if missing else list(ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids; bytes that are not UTF-8 become U+FFFD, special tokens nothing.

        A leading space is kept, where some tokenizers' own `decode` would drop it.
        """
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def detokenizer(self, skip: int = 0) -> Detokenizer:
        """A new incremental decoder, which leaves the first `skip` bytes out."""
        return Detokenizer(self, skip)

    def _remembered(self, key: _Key) -> tuple[int, ...] | None:
        with self._lock:
            if key in self._memo:
                self._memo.move_to_end(key)
            return self._memo.get(key)

    def _remember(self, key: _Key, ids: tuple[int, ...]) -> None:
        with self._lock:
            if key in self._memo:
                return
            self._memo[key] = ids
            self._memo_chars += _n_chars(key)
            while len(self._memo) > _MEMO_RUNS or self._memo_chars > _MEMO_CHARS:
                oldest, _ = self._memo.popitem(last=False)
                self._memo_chars -= _n_chars(oldest)


class Detokenizer:
    """Text of ids that arrive one by one. All that `push` and `flush` return together equals `Tokenizer.decode`.

    The first `skip` bytes, whole characters, are left out.
    """

    def __init__(self, tokenizer: Tokenizer, skip: int = 0) -> None:
        self._tokenizer = tokenizer
        self._skip = skip
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, *tokens: int) -> str:
        """The text that is complete with these tokens; the bytes of an unfinished character wait for the next."""
        data = b"".join(map(self._tokenizer.token_bytes, tokens))
        if self._skip:
            data, self._skip = data[self._skip :], max(self._skip - len(data), 0)
        return self._decoder.decode(data)

    def flush(self) -> str:
        """The rest at the end of the text: U+FFFD for a character that was not finished."""
        return self._decoder.decode(b"", final=True)

    @property
    def pending(self) -> bytes:
        """The bytes of a character that is not finished yet."""
        return self._decoder.getstate()[0]


def _merged(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """The pieces without empty ones, neighbours of one kind joined: how a text was cut must not matter."""
    runs: list[tuple[list[str], bool]] = []
    for text, special in pieces:
        if not text:
            continue
        if runs and runs[-1][1] == special:
            runs[-1][0].append(text)
        else:
            runs.append(([text], special))
    return tuple(("".join(texts), special) for texts, special in runs)


def _n_chars(key: _Key) -> int:
    return sum(len(text) for text, _ in key[0])


# --------------------------------------------------------------------------------- bytes of tokens


def _bytes_table(
    tokenizer: PreTrainedTokenizerBase, n_vocab: int, special_ids: frozenset[int], spelling: str
) -> tuple[bytes, ...]:
    vocab = tokenizer.get_vocab()
    table = [b""] * max(n_vocab, max(vocab.values(), default=-1) + 1)
    for text, token in vocab.items():
        if token in special_ids:
            continue
        if spelling == "bytes":
            table[token] = from_byte_chars(text)
        elif spelling == "spaces":
            table[token] = from_spaces(text)
        else:
            table[token] = str(tokenizer.decode([token], clean_up_tokenization_spaces=False)).encode()
    return tuple(table)
