"""Text for random token ids: one character for each id, so that any ids are a text and any text its ids, exactly.

The language and the scoring of choices take text; the workloads are ids. With this tokenizer both are the same thing:
id i is the character U+10000 + i (no surrogates, no blanks, no controls), no two of them ever merge, and there are no
special tokens, so nothing ends a text and joined texts are joined ids.

Not here: the ids themselves (`workloads.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

_FIRST = 0x10000
MOST = 0x110000 - _FIRST  # as many ids can be written


def tokenizer(n_vocab: int) -> PreTrainedTokenizerFast:
    """The tokenizer of the ids 0 .. n_vocab - 1."""
    if not 0 < n_vocab <= MOST:
        raise ValueError(f"{n_vocab} ids do not fit into {MOST} characters")
    core = Tokenizer(models.BPE(vocab={chr(_FIRST + i): i for i in range(n_vocab)}, merges=[]))
    # Decoders that change nothing here; they let the engine read the bytes of all tokens off their names, at once.
    core.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False)


def text_of(ids: Iterable[int]) -> str:
    """The text of some ids."""
    return "".join(chr(_FIRST + i) for i in ids)


def ids_of(text: str) -> list[int]:
    """The ids of a text of `text_of`."""
    return [ord(char) - _FIRST for char in text]
