"""Tokens that are not whole characters, and of these the ones that end inside a character.

Not here: the other tokens (`vocab.py`), which of them can follow (`tails.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.trie import Indices, Trie
from nbsglang.engine.grammar.utf8 import Parts, completions


class Broken(NamedTuple):
    """A token that begins or ends inside a character; `node` is the trie's for its middle."""

    token: int
    parts: Parts
    node: int


class Begun(NamedTuple):
    """The tokens with a tail and no head, ordered by the node of their whole characters, the root for none.

    `tails` are numbers of tails, whose characters have code points from `firsts` to `lasts`.
    """

    tokens: Indices
    nodes: Indices
    depths: Indices
    tails: Indices
    is_node: npt.NDArray[np.bool_]  # whether one of the tokens has this node. [n_nodes]
    firsts: Indices  # [tails]
    lasts: Indices  # [tails]


def begun_of(broken: Iterable[Broken], tails: Sequence[bytes], trie: Trie) -> Begun:
    """Those of some tokens that end inside a character and do not begin in one; `tails` are what they may end with."""
    items = sorted((item for item in broken if not item.parts.head), key=lambda item: (item.node, item.token))
    nodes = np.array([item.node for item in items], np.intp)
    number = {tail: n for n, tail in enumerate(tails)}
    is_node = np.zeros(len(trie.points), bool)
    is_node[nodes] = True
    ranges = np.array([range_of(tail) for tail in tails], np.intp).reshape(-1, 2)
    return Begun(
        np.array([item.token for item in items], np.intp),
        nodes,
        np.searchsorted(trie.levels, nodes, "right") - 1,
        np.array([number[item.parts.tail] for item in items], np.intp),
        is_node,
        ranges[:, 0],
        ranges[:, 1],
    )


def range_of(begun: bytes) -> tuple[int, int]:
    """The first and the last code point whose bytes begin so."""
    found = completions(begun)
    assert found is not None, "the beginning of a character"
    return found
