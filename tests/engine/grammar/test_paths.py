"""Where texts lead in a vocabulary's trie, and what is below its nodes: as reading the tokens one by one says."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.engine.grammar.stretch import Shape
from nbsglang.engine.grammar.vocab import Vocab

CHARS = "ab\u00e9\u65e5"


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocab:
    """Texts over a few characters, some of them cut inside a character."""
    texts = draw(st.lists(st.text(CHARS, min_size=1, max_size=4), min_size=1, max_size=25))
    cuts = draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts)))
    whole = [text.encode() for text in texts]
    return Vocab([*(data[: len(data) - cut] for data, cut in zip(whole, cuts, strict=True)), b""], [len(texts)])


def text_of(vocab: Vocab, node: int) -> str:
    """The text that leads to a node."""
    text = ""
    while node:
        text, node = chr(vocab.trie.points[node]) + text, vocab.trie.parents.item(node)
    return text


def spelled(vocab: Vocab) -> dict[int, bytes]:
    """The tokens that do not begin inside a character, with their bytes."""
    return {
        token: data
        for token, data in enumerate(vocab.token_bytes)
        if data and vocab.kinds[token] and data[0] & 0xC0 != 0x80
    }


@given(vocabularies(), st.text(CHARS, max_size=5), st.text(CHARS, max_size=3))
@settings(max_examples=200)
def test_paths_have_the_tokens_that_begin_a_text(vocab: Vocab, text: str, above: str) -> None:
    nodes = {text_of(vocab, node): node for node in range(len(vocab.trie.points))}
    if above not in nodes:
        above = ""
    wanted, first = (above + text).encode(), len(above.encode())
    tokens, node = vocab.paths.path(nodes[above], text)
    begin = {token for token, data in spelled(vocab).items() if wanted.startswith(data) and len(data) > first}
    assert sorted(tokens) == sorted(begin)
    longer = {data for data in spelled(vocab).values() if data.startswith(wanted) and len(data) > len(wanted)}
    assert node == (nodes[above + text] if longer else -1)
    assert vocab.paths.path(nodes[above], text) == (tokens, node)


@given(vocabularies())
@settings(max_examples=100)
def test_what_is_below_a_node_is_next_to_it(vocab: Vocab) -> None:
    order, texts = vocab.preorder, [text_of(vocab, node) for node in range(len(vocab.trie.points))]
    for node, text in enumerate(texts):
        place = order.places.item(node)
        below = order.nodes[place : order.ends[place]].tolist()
        assert below[0] == node
        assert {texts[at] for at in below} == {other for other in texts if other.startswith(text)}
        words = order.words[order.owners[place] : order.owners[order.ends[place]]].tolist()
        assert {vocab.trie.ends.item(token) for token in words} <= set(below)
        whole = text.encode()
        assert sorted(vocab.paths.below(node)) == sorted(
            token for token, data in spelled(vocab).items() if data.startswith(whole)
        )
        assert vocab.depths[node] == len(text)


@given(vocabularies(), st.sets(st.sampled_from(CHARS)), st.integers(0, 1000))
@settings(max_examples=200)
def test_shapes_are_the_nodes_below_one_over_some_characters(vocab: Vocab, own: set[str], number: int) -> None:
    base = number % len(vocab.trie.points)
    above = text_of(vocab, base)
    shape = Shape(vocab, base, np.array([chr(point) in own for point in vocab.points.tolist()], bool))
    rests = {node: text_of(vocab, node)[len(above) :] for node in range(len(vocab.trie.points))}
    rests = {node: rest for node, rest in rests.items() if rest and text_of(vocab, node).startswith(above)}
    inside = {node: len(rest) for node, rest in rests.items() if set(rest) <= own}
    out = {node: len(rest) for node, rest in rests.items() if set(rest[:-1]) <= own and rest[-1] not in own}
    assert dict(zip(shape.out_nodes.tolist(), shape.out_depths.tolist(), strict=True)) == out
    assert shape.depth == max([*inside.values(), *out.values()], default=0)
    ends = vocab.trie.ends.tolist()
    for depth in range(1, shape.depth + 1):
        assert shape.nodes(depth).tolist() == sorted(node for node, n in inside.items() if n == depth)
        bits = np.unpackbits(shape.row(depth).view(np.uint8), bitorder="little")
        tokens = [token for token, at in enumerate(ends) if inside.get(at, depth + 1) <= depth]
        assert np.flatnonzero(bits).tolist() == tokens
    begun = {vocab.begun.tokens.item(at): depth for depth, some in shape.begun for at in some.tolist()}
    pairs = zip(vocab.begun.tokens.tolist(), vocab.begun.nodes.tolist(), strict=True)
    assert begun == {token: inside[node] for token, node in pairs if node in inside}
