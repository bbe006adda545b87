"""How many characters of a string each token of a vocabulary has, from between the quotes on.

With that the masks of strings of bounded lengths are comparisons, whatever the bounds.

Not here: the states of such strings (`counted.py`).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.counted import CountedStrings
from nbsglang.engine.grammar.matcher import MaskRow
from nbsglang.engine.grammar.merged import Merged, merged
from nbsglang.engine.grammar.partition import Classes
from nbsglang.engine.grammar.vocab import Vocab

_NEVER = np.iinfo(np.int32).max
_KEPT = 1024  # rows


class Lengths:
    """The tokens of a vocabulary inside the strings of `strings`, where no character has begun.

    `longest` is more than any token has. `beyond` is what tokens have after the closing quote.
    """

    def __init__(self, vocab: Vocab, strings: CountedStrings) -> None:
        self._vocab = vocab
        states, counts, is_whole, is_end = _walked(vocab, strings)
        ends = vocab.trie.ends
        at, n_chars = states[ends], counts[ends]
        is_text = (ends > 0) & (at >= 0)
        # A character that has begun counts, too.
        self._inside = np.where(is_text & ~is_end[at], n_chars + ~is_whole[at], _NEVER)
        self._closing = np.where(is_text & is_end[at], n_chars, _NEVER)
        begun = vocab.begun
        whole = (states[begun.nodes] >= 0) & is_whole[states[begun.nodes]]
        self._inside[begun.tokens[whole]] = counts[begun.nodes[whole]] + 1
        closed = np.flatnonzero((states >= 0) & is_end[states])
        self.longest = int(counts.max()) + 2
        self.beyond: Merged = merged(vocab, closed[vocab.goes_on[closed]])
        self._counts = self._beyond(closed, counts)
        self._rows: dict[tuple[int, int], MaskRow] = {}

    def row(self, least: int, most: int) -> MaskRow:
        """The tokens that leave room for `least` characters at least, and for `most` at most, or end the string there;
        shared, not to be changed."""
        found = self._rows.get((least, most))
        if found is None:
            if len(self._rows) >= _KEPT:
                self._rows.clear()
            bits = np.zeros(32 * self._vocab.n_words, bool)
            closes = (self._closing >= least) & (self._closing <= most)
            np.logical_or(self._inside <= most, closes, out=bits[: self._vocab.n_vocab])
            found = self._rows[least, most] = np.packbits(bits, bitorder="little").view(np.int32)
        return found

    def outside(self, least: int, most: int) -> Outside:
        """Those of the tokens that go beyond the string which close it at another length."""
        return Outside(self._counts, least, most)

    def _beyond(self, closed: npt.NDArray[np.intp], counts: npt.NDArray[np.int64]) -> dict[int, int]:
        """The tokens that go beyond, with the characters before the closing quote."""
        trie = self._vocab.trie
        found: dict[int, int] = {}
        todo = [(node, n_chars) for node, n_chars in zip(closed.tolist(), counts[closed].tolist(), strict=True)]
        while todo:
            node, n_chars = todo.pop()
            found.update((token, n_chars) for token, _ in self._vocab.begun_at.get(node, ()))
            for child in range(trie.children.item(node), trie.children.item(node + 1)):
                words = trie.words[trie.owners[child] : trie.owners[child + 1]]
                found.update((token, n_chars) for token in words.tolist())
                todo.append((child, n_chars))
        return found


class Outside:
    """The tokens whose number of characters is not within bounds, of those that have one."""

    def __init__(self, counts: dict[int, int], least: int, most: int) -> None:
        self._counts, self._least, self._most = counts, least, most

    def __contains__(self, token: object) -> bool:
        return isinstance(token, int) and not self._least <= self._counts[token] <= self._most


def _walked(
    vocab: Vocab, strings: CountedStrings
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The state of the automaton at each node of the trie and the whole characters until then; of each state whether
    no character has begun, and whether it is the end. The last state is a dead one, which is -1."""
    inner = strings.inner
    order = [strings.body]
    for state in order:
        order += [target for target, _ in inner.moves(state) if target not in order]
    number = {state: n for n, state in enumerate(order)}
    table = np.full((len(order) + 1, inner.n_classes), -1, np.intp)
    for n, state in enumerate(order):
        for target, classes in inner.moves(state):
            table[n, list(classes)] = number[target]
    is_whole = np.array([*map(strings.is_whole, order), False])
    is_end = np.array([*map(inner.accepts, order), False])
    classes_of = Classes(*inner.class_runs, inner.n_classes).of_all(vocab.points).take(vocab.point_of)
    states = np.zeros(len(vocab.trie.points), np.intp)
    counts = np.zeros(len(states), np.int64)
    for start, end in pairwise(vocab.trie.levels[1:].tolist()):
        parents = vocab.trie.parents[start:end]
        states[start:end] = table[states[parents], classes_of[start:end]]
        counts[start:end] = counts[parents] + is_whole[states[start:end]]
    return states, counts, is_whole, is_end
