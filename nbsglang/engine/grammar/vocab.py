"""A vocabulary as constrained decoding needs it: a trie of the tokens that are whole characters, the others apart.

Special tokens, added tokens, tokens without bytes and tokens whose bytes can be in no UTF-8 text are never text.
Several ids of one string all count.

Not here: the trie (`trie.py`), how tokens spell bytes (`spelling.py`), the form on disk (`kept.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.begun import Begun, Broken, begun_of, range_of
from nbsglang.engine.grammar.kept import key_of, load, save
from nbsglang.engine.grammar.long_tokens import LongTokens
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.paths import Paths
from nbsglang.engine.grammar.preorder import preorder_of
from nbsglang.engine.grammar.spelling import token_table
from nbsglang.engine.grammar.trie import Indices, Trie, build
from nbsglang.engine.grammar.utf8 import Parts, parts

if TYPE_CHECKING:
    from nbsglang.engine.grammar.lengths import Lengths
    from nbsglang.engine.grammar.merged import Merged
    from nbsglang.engine.grammar.parts import Parts as PartsOf
    from nbsglang.engine.grammar.rules import Counted, Shared
    from nbsglang.engine.grammar.stretch import Shape

NEVER, WHOLE, BROKEN = 0, 1, 2  # kinds of tokens: no text, whole characters, not whole characters
_N_POINTS = 0x110000
MANY = 2048  # nodes: worth to be walked in one operation


class Vocab:
    """The tokens of a tokenizer. Never changes, so it may be used from any thread.

    `token_bytes` are the bytes of each id (b"" for ids that are no text), `eos_ids` what ends a text, `special_ids`
    what is never text. With a `folder`, what takes time to build is kept there under the hash of its content.
    """

    def __init__(
        self,
        token_bytes: Sequence[bytes],
        eos_ids: Iterable[int],
        special_ids: Iterable[int] = (),
        *,
        folder: Path | None = None,
    ) -> None:
        self.token_bytes = tuple(token_bytes)
        self.n_vocab = len(self.token_bytes)
        self.n_words = (self.n_vocab + 31) // 32  # int32 of a mask
        self.eos_ids = tuple(sorted(i for i in set(eos_ids) if 0 <= i < self.n_vocab))
        self.special_ids = frozenset(special_ids) | frozenset(self.eos_ids)
        key = key_of(self.token_bytes, self.special_ids) if folder is not None else ""
        found = load(folder, key, self.n_vocab) if folder is not None else None
        self.trie, self.kinds, nodes = found or self._build()
        if found is None and folder is not None:
            save(folder, key, self.trie, self.kinds, nodes)
        self.points, self.point_of = _numbered(self.trie.points)  # code points ascending; of each node its number
        self.depths = np.repeat(np.arange(self.trie.n_levels), np.diff(self.trie.levels))  # of each node
        self.preorder = preorder_of(self.trie)
        self.point_in_order = self.point_of.take(self.preorder.nodes)  # of the node in each place
        ids = np.flatnonzero(self.kinds == BROKEN)
        self.shapes: dict[tuple[int, bytes], Shape] = {}  # for `stretch.py`
        self.merged: dict[bytes, Merged] = {}  # for `merged.py`
        self.parts: dict[Shared | Counted, PartsOf] = {}  # for `parts.py`
        self.lengths: dict[Shared, Lengths] = {}  # for `leaves.py`
        self.broken = tuple(
            Broken(token, _known_parts(self.token_bytes[token]), node)
            for token, node in zip(ids.tolist(), nodes.tolist(), strict=True)
        )

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, *, n_vocab: int = 0, folder: Path | None = None) -> Vocab:
        """The vocabulary of a fast tokenizer of transformers; `n_vocab` widens it to the rows of a model's logits."""
        table = token_table(tokenizer, n_vocab)
        return cls(table.token_bytes, table.eos_ids, table.never, folder=folder)

    @cached_property
    def text_row(self) -> MaskRow:
        """The mask of all tokens that are text."""
        return pack(np.flatnonzero(self.kinds), self.n_words)

    @cached_property
    def eos_row(self) -> MaskRow:
        """The mask of the tokens that end a text."""
        return pack(np.array(self.eos_ids, np.intp), self.n_words)

    @cached_property
    def point_counts(self) -> npt.NDArray[np.intp]:
        """How many nodes have each of `points`, the root left out."""
        return np.bincount(self.point_of[1:], minlength=len(self.points))

    @cached_property
    def is_heavy(self) -> npt.NDArray[np.bool_]:
        """Whether a node has `MANY` or more below it. [n_nodes]"""
        order = self.preorder
        sizes = order.ends - np.arange(len(order.ends))
        return sizes.take(order.places) > MANY

    @cached_property
    def broken_by_id(self) -> dict[int, Broken]:
        """The tokens that are not whole characters."""
        return {item.token: item for item in self.broken}

    @cached_property
    def finishers(self) -> tuple[Broken, ...]:
        """The tokens that begin inside a character."""
        return tuple(item for item in self.broken if item.parts.head)

    @cached_property
    def tails(self) -> tuple[bytes, ...]:
        """The beginnings of characters that tokens end with."""
        return tuple(sorted({item.parts.tail for item in self.broken} - {b""}))

    @cached_property
    def begun(self) -> Begun:
        """The tokens that end inside a character and do not begin in one."""
        return begun_of(self.broken, self.tails, self.trie)

    @cached_property
    def begun_at(self) -> dict[int, list[tuple[int, int]]]:
        """The tokens of `begun` at each node that has some, with the numbers of their tails."""
        found: dict[int, list[tuple[int, int]]] = {}
        columns = (self.begun.tokens, self.begun.nodes, self.begun.tails)
        for token, node, tail in zip(*(column.tolist() for column in columns), strict=True):
            found.setdefault(node, []).append((token, tail))
        return found

    @cached_property
    def long_tokens(self) -> LongTokens:
        """The tokens by the number of their characters."""
        return LongTokens(self.trie, self.begun)

    @cached_property
    def paths(self) -> Paths:
        """The ways of texts down the trie."""
        return Paths(self.trie, self.begun_at, self.tails)

    @cached_property
    def goes_on(self) -> npt.NDArray[np.bool_]:
        """Whether tokens have more after a node, whole characters or not. [n_nodes]"""
        return (np.diff(self.trie.children) > 0) | self.begun.is_node

    @cached_property
    def single_bytes(self) -> frozenset[int]:
        """The bytes that have a token of their own."""
        texts = np.flatnonzero(self.kinds).tolist()
        return frozenset(self.token_bytes[token][0] for token in texts if len(self.token_bytes[token]) == 1)

    @cached_property
    def spells_all(self) -> bool:
        """Each byte of UTF-8 has a token, so that every text can be spelled from wherever one stands."""
        return self.single_bytes >= {*range(0x80), *range(0x80, 0xC0), *range(0xC2, 0xF5)}

    @cached_property
    def finishes_all(self) -> bool:
        """Each character that has begun can be finished, byte by byte."""
        return self.single_bytes >= set(range(0x80, 0xC0)) or not self.tails

    @cached_property
    def spelled(self) -> tuple[Indices, Indices]:
        """Ranges of code points that tokens can spell alone: first and last of each, ascending, apart."""
        ranges = [(byte, byte) for byte in self.single_bytes if byte < 0x80]
        if self.single_bytes >= set(range(0x80, 0xC0)):
            ranges += [range_of(bytes([byte])) for byte in self.single_bytes if 0xC2 <= byte < 0xF5]
        trie = self.trie
        alone = np.arange(1, trie.children[1])  # nodes of one character
        alone = alone[trie.owners[alone + 1] > trie.owners[alone]]
        ranges += [(point, point) for point in trie.points[alone].tolist()]
        return _joined(ranges)

    def _build(self) -> tuple[Trie, npt.NDArray[np.uint8], Indices]:
        kinds = np.zeros(self.n_vocab, np.uint8)
        words: dict[int, str] = {}
        broken: dict[int, str] = {}
        for token, data in enumerate(self.token_bytes):
            if not data or token in self.special_ids:
                continue
            found = parts(data)
            if found is None:
                continue
            kinds[token] = WHOLE if found.is_whole else BROKEN
            (words if found.is_whole else broken)[token] = found.middle
        trie, nodes = build(words, broken, self.n_vocab)
        return trie, kinds, np.array(list(nodes.values()), np.intp)


def _numbered(points: Indices) -> tuple[Indices, Indices]:
    """Code points, each once, ascending; and which of them each one given is."""
    is_there = np.zeros(_N_POINTS, bool)
    is_there[points] = True
    different = np.flatnonzero(is_there)
    numbers = np.zeros(_N_POINTS, np.int32)
    numbers[different] = np.arange(len(different))
    return different, numbers.take(points).astype(np.intp)


def pack(tokens: Indices, n_words: int) -> MaskRow:
    """A mask with these tokens: bit i of word j stands for token 32 j + i."""
    bits = np.zeros(32 * n_words, np.uint8)
    bits[tokens] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def _known_parts(data: bytes) -> Parts:
    found = parts(data)
    assert found is not None, "a token of a kind that has parts"
    return found


def _joined(ranges: list[tuple[int, int]]) -> tuple[Indices, Indices]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    both = np.array(joined, np.intp).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()
