"""Vocabularies: the trie has the tokens that are text, each way of making one gives the same, files are not trusted."""

from __future__ import annotations

import pickle
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken
from transformers import AutoTokenizer

from nbsglang.engine.grammar import Vocab as LazyVocab
from nbsglang.engine.grammar.trie import Trie, spread
from nbsglang.engine.grammar.utf8 import completions, parts
from nbsglang.engine.grammar.vocab import BROKEN, NEVER, WHOLE, Vocab
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import UsageError
from tests.tiny import byte_tokenizer

TOKENS = [
    b"a",
    b"ab",
    b"abc",
    b"ab",
    b"",
    b"\xc3",
    b"\xa9",
    b"x\xc3",
    b"\xa9x\xf0\x9f",
    b"\xff",
    b"b\x80",
    b"</s>",
    b"\xc3\xa9",
]


def texts(vocab: Vocab) -> dict[int, str]:
    """The text of each token, read off the trie."""
    trie, found = vocab.trie, {}
    for node in range(len(trie.points)):
        text, at = "", node
        while at:
            text, at = chr(trie.points[at]) + text, trie.parents[at]
        for token in trie.words[trie.owners[node] : trie.owners[node + 1]].tolist():
            assert trie.ends[token] == node
            found[token] = text
    return found


def check_shape(trie: Trie, n_vocab: int) -> None:
    """Children are neighbours, ordered by character, one level below; the arrays fit together."""
    assert trie.is_sound(n_vocab)
    for node in range(len(trie.points)):
        children = range(trie.children[node], trie.children[node + 1])
        assert all(trie.parents[child] == node for child in children)
        assert (
            sorted(set(trie.points[children.start : children.stop]))
            == trie.points[children.start : children.stop].tolist()
        )
    depths = np.searchsorted(trie.levels, np.arange(len(trie.points)), "right") - 1
    assert (depths[1:] == depths[trie.parents[1:]] + 1).all()


def test_tokens_and_their_kinds() -> None:
    vocab = Vocab(TOKENS, [11], [3])
    assert vocab.kinds.tolist() == [1, 1, 1, 0, 0, 2, 2, 2, 2, 0, 0, 0, 1]
    assert texts(vocab) == {0: "a", 1: "ab", 2: "abc", 12: "é"}
    assert [(item.token, item.parts) for item in vocab.broken] == [
        (5, (b"", "", b"\xc3")),
        (6, (b"\xa9", "", b"")),
        (7, (b"", "x", b"\xc3")),
        (8, (b"\xa9", "x", b"\xf0\x9f")),
    ]
    assert vocab.broken[2].node == vocab.broken[3].node > 0 == vocab.broken[0].node
    assert vocab.tails == (b"\xc3", b"\xf0\x9f")
    assert vocab.n_words == 1
    assert vocab.eos_row.tolist() == [1 << 11]
    assert vocab.text_row.tolist() == [0b1000111100111]
    check_shape(vocab.trie, vocab.n_vocab)


def test_several_ids_of_one_string() -> None:
    vocab = Vocab([b"ab", b"a", b"ab", b"ab"], [])
    assert texts(vocab) == {0: "ab", 1: "a", 2: "ab", 3: "ab"}
    assert vocab.eos_row.tolist() == [0]


@given(st.lists(st.text("aé日😀", max_size=4).map(str.encode) | st.binary(max_size=3), max_size=40))
def test_random_vocabularies(tokens: list[bytes]) -> None:
    vocab = Vocab(tokens, [])
    check_shape(vocab.trie, vocab.n_vocab)
    whole = {}
    for token, data in enumerate(tokens):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        if text:
            whole[token] = text
    assert texts(vocab) == whole
    assert all(
        b"".join([p.head, p.middle.encode(), p.tail]) == tokens[item.token]
        for item in vocab.broken
        for p in [item.parts]
    )


@given(st.binary(max_size=6))
def test_parts_are_what_can_stand_in_a_text(data: bytes) -> None:
    found = parts(data)
    # One of these goes before it, one after it, if it can be in a text at all.
    before = [b"", b"\xc3", b"\xe1\x80", b"\xe1", b"\xf1", b"\xf1\x80", b"\xf1\x80\x80"]
    after = [b"", b"\xa0", b"\xa0\x80", b"\x80", b"\x80\x80", b"\x90\x80\x80", b"\x80\x80\x80"]
    assert (found is not None) == any(_is_utf8(b + data + a) for b in before for a in after)
    if found is not None:
        assert found.head + found.middle.encode() + found.tail == data
        assert found.is_whole == _is_utf8(data)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_completions() -> None:
    begun: dict[bytes, list[int]] = {}
    for point in (*range(0xD800), *range(0xE000, 0x110000)):
        data = chr(point).encode()
        for n in range(1, len(data)):
            ends = begun.setdefault(data[:n], [point, point])
            ends[1] = point
    assert all(completions(data) == tuple(ends) for data, ends in begun.items())
    others = [
        b"",
        b"a",
        b"\x80",
        b"\xc0",
        b"\xc1",
        b"\xf5",
        b"\xff",
        b"\xed\xa0",
        b"\xe0\x80",
        b"\xf4\x90",
        b"\xc3\xa9",
        b"a\xc3",
    ]
    assert [completions(data) for data in others] == [None] * len(others)


def test_spread() -> None:
    members, counts = spread(np.array([0, 2, 2, 5]), np.array([2, 0, 1, 2]))
    assert (members.tolist(), counts.tolist()) == ([2, 3, 4, 0, 1, 2, 3, 4], [3, 2, 0, 3])
    members, counts = spread(np.array([0, 2]), np.array([], np.intp))
    assert (len(members), len(counts)) == (0, 0)


def test_what_tokens_spell_alone() -> None:
    every = [bytes([byte]) for byte in range(256)]
    assert Vocab(every, []).spells_all
    vocab = Vocab([*every[:0xE2], *every[0xE3:], "日".encode(), "a\u2028".encode()], [])
    assert not vocab.spells_all
    firsts, lasts = (part.tolist() for part in vocab.spelled)
    assert list(zip(firsts, lasts, strict=True)) == [(0, 0x1FFF), (0x3000, 0xD7FF), (0xE000, 0x10FFFF)]
    vocab = Vocab([*every[:0x90], *every[0x91:], "日".encode()], [])
    firsts, lasts = (part.tolist() for part in vocab.spelled)
    assert list(zip(firsts, lasts, strict=True)) == [(0, 0x7F), (ord("日"), ord("日"))]


# ----------------------------------------------------------------------------------------------- on disk


def test_kept_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a" / "b"
    first = Vocab(TOKENS, [11], [3], folder=folder)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.setattr(Vocab, "_build", None)  # a second time nothing is built
    second = Vocab(TOKENS, [11], [3], folder=folder)
    assert all((a == b).all() for a, b in zip(first.trie, second.trie, strict=True))
    assert (first.kinds == second.kinds).all()
    assert first.broken == second.broken


def test_the_key_is_the_content(tmp_path: Path) -> None:
    Vocab([b"a", b"bc"], [], folder=tmp_path)
    for tokens, special in (([b"ab", b"c"], []), ([b"bc", b"a"], []), ([b"a", b"bc"], [1]), ([b"a", b"bc", b""], [])):
        n_files = len(list(tmp_path.iterdir()))
        vocab = Vocab(tokens, [], special, folder=tmp_path)
        assert len(list(tmp_path.iterdir())) == n_files + 1
        assert texts(vocab) == texts(Vocab(tokens, [], special))


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was loaded",))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps(_Evil()))


def _object(path: Path) -> None:
    _rewrite(path, points=np.array([_Evil()], dtype=object))


def _outside(path: Path) -> None:
    _rewrite(path, children=np.full(np.load(path)["children"].shape, 1 << 30, np.int32))


def _negative(path: Path) -> None:
    _rewrite(path, ends=np.full(len(TOKENS), -5, np.int32))


def _shorter(path: Path) -> None:
    _rewrite(path, kinds=np.zeros(3, np.uint8))


def _flat(path: Path) -> None:
    _rewrite(path, levels=np.zeros((2, 2), np.int32))


def _other_nodes(path: Path) -> None:
    _rewrite(path, nodes=np.array([9000] * 4, np.int32))


def _missing(path: Path) -> None:
    np.savez(path, kinds=np.zeros(3, np.uint8))


def _rewrite(path: Path, **changed: Any) -> None:
    with np.load(path) as file:
        np.savez(path, **(dict(file) | changed))


@pytest.mark.parametrize(
    "spoil", [_cut, _pickled, _object, _outside, _negative, _shorter, _flat, _other_nodes, _missing]
)
def test_spoiled_files_are_made_anew(tmp_path: Path, spoil: Any) -> None:
    Vocab(TOKENS, [11], folder=tmp_path)
    (file,) = tmp_path.iterdir()
    spoil(file)
    vocab = Vocab(TOKENS, [11], folder=tmp_path)
    assert texts(vocab) == texts(Vocab(TOKENS, [11]))
    assert len(vocab.broken) == 4
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    with np.load(file, allow_pickle=False) as again:
        assert len(again["kinds"]) == len(TOKENS)


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert texts(Vocab([b"a"], [], folder=tmp_path / "file" / "x")) == {0: "a"}


# ------------------------------------------------------------------------------------------- tokenizers


def test_from_a_tokenizer() -> None:
    hf = byte_tokenizer()
    hf.add_tokens([AddedToken("<think>", special=False)])
    vocab = LazyVocab.from_tokenizer(hf, n_vocab=300)
    ours = Tokenizer(hf, n_vocab=300)
    think = hf.convert_tokens_to_ids("<think>")
    assert vocab.n_vocab == 300
    assert vocab.eos_ids == (hf.eos_token_id,)
    assert all(vocab.token_bytes[i] == ours.token_bytes(i) for i in range(300) if i != think)
    assert vocab.kinds[[think, *ours.special_ids, 299]].tolist() == [NEVER] * (2 + len(ours.special_ids))
    assert set(vocab.kinds[:256].tolist()) == {NEVER, WHOLE, BROKEN}


def test_a_tokenizer_that_spells_otherwise_is_refused() -> None:
    with pytest.raises(UsageError, match="bytes of each token"):
        Vocab.from_tokenizer(object())


@pytest.mark.smollm2
def test_the_default_models_vocabulary(smollm2_folder: Path, tmp_path: Path) -> None:
    hf = AutoTokenizer.from_pretrained(smollm2_folder)
    ours = Tokenizer(hf)
    vocab = Vocab.from_tokenizer(hf, folder=tmp_path)
    assert vocab.token_bytes == tuple(ours.bytes_table)
    assert vocab.eos_ids == ours.eos_ids
    assert vocab.special_ids == ours.special_ids
    assert vocab.trie.is_sound(49152)
    assert np.bincount(vocab.kinds).tolist() == [17, 48822, 313]
    start = time.thread_time()
    Vocab(vocab.token_bytes, vocab.eos_ids, vocab.special_ids)
    assert time.thread_time() - start < 1.5  # it takes 0.1 s
    start = time.thread_time()
    again = Vocab(vocab.token_bytes, vocab.eos_ids, vocab.special_ids, folder=tmp_path)
    assert time.thread_time() - start < 0.1  # 6 ms
    assert all((a == b).all() for a, b in zip(vocab.trie, again.trie, strict=True))
