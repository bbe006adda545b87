"""Bytes of tokens, ids of literal text and incremental decoding, against the tokenizers themselves."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Core
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from nbsglang.engine.tokenizer import Tokenizer
from tests.tiny import byte_tokenizer

SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
EMOJI = "a😀é👨‍👩‍👧 日本\n"


def spaced_tokenizer(style: str) -> PreTrainedTokenizerFast:
    """In the manner of SentencePiece: ▁ for spaces, bytes as <0xNN>, BOS, special tokens in the vocabulary."""
    words = [
        "▁",
        "▁hello",
        "hello",
        "▁world",
        "world",
        "h",
        "e",
        "l",
        "o",
        "w",
        "r",
        "d",
        "<",
        "s",
        ">",
        "/",
        "s>",
        "</s>x",
    ]
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    vocab |= {word: 259 + n for n, word in enumerate(words)}
    merges = [("s", ">"), ("<", "s>")]  # the second leads to a special token's own name
    core = Core(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if style == "prepend":
        core.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=style)
    core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    core.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<unk>", "<s>")])
    core.add_special_tokens([AddedToken("</s>", special=True, normalized=False, rstrip=True)])
    core.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@pytest.fixture(scope="module", params=["bytes", pytest.param("smollm2", marks=pytest.mark.smollm2)])
def hf(request: pytest.FixtureRequest) -> PreTrainedTokenizerBase:
    if request.param == "bytes":
        return byte_tokenizer()
    return AutoTokenizer.from_pretrained(request.getfixturevalue("smollm2_folder"))


@pytest.fixture(scope="module")
def tokenizer(hf: PreTrainedTokenizerBase) -> Tokenizer:
    return Tokenizer(hf)


def detokenized(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    detokenizer = tokenizer.detokenizer()
    return "".join(map(detokenizer.push, ids)) + detokenizer.flush()


@given(st.lists(st.floats(0, 1, exclude_max=True), max_size=30), st.text(max_size=10))
@example([], EMOJI)
@settings(max_examples=200, deadline=None)
def test_incremental_decoding_equals_decoding(
    tokenizer: Tokenizer, hf: PreTrainedTokenizerBase, picks: list[float], text: str
) -> None:
    ids = [int(pick * len(hf)) for pick in picks] + tokenizer.encode(text)
    assert detokenized(tokenizer, ids) == tokenizer.decode(ids)
    assert tokenizer.decode(ids) == hf.decode(ids, skip_special_tokens=True)


@given(st.lists(st.sampled_from([*SPECIAL, "a", " b", "é😀", "\n", " ", "<|im_", "x1"]), max_size=8).map("".join))
@settings(max_examples=200, deadline=None)
def test_special_tokens_only_where_they_are_meant(tokenizer: Tokenizer, hf: PreTrainedTokenizerBase, text: str) -> None:
    assert tokenizer.encode(text, special=True) == hf(text).input_ids
    plain = tokenizer.encode(text)
    assert not tokenizer.special_ids & set(plain)
    assert tokenizer.decode(plain) == text
    assert plain == hf(text, split_special_tokens=True).input_ids or any(s in text for s in tokenizer.special_texts)
    both = tokenizer.encode_run([("<|im_start|>user\n", True), (text, False), ("<|im_end|>\n", True)])
    start, end = hf.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    assert (both[0], both.count(start), both.count(end)) == (start, 1, 1)
    if not any(s in text for s in tokenizer.special_texts):
        assert both == hf(f"<|im_start|>user\n{text}<|im_end|>\n").input_ids


@given(st.text(max_size=40), st.lists(st.integers(0, 40)), st.booleans())
@settings(max_examples=100, deadline=None)
def test_how_a_text_is_cut_does_not_matter(tokenizer: Tokenizer, text: str, cuts: list[int], special: bool) -> None:
    at = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    pieces = [(text[a:b], special) for a, b in itertools.pairwise(at)]
    assert tokenizer.encode_run(pieces) == tokenizer.encode(text, special)


def test_special_tokens_have_no_text_and_a_name(tokenizer: Tokenizer, hf: PreTrainedTokenizerBase) -> None:
    ids = tokenizer.encode("<|im_start|>é<|im_end|>", special=True)
    assert tokenizer.decode(ids) == "é"
    assert tokenizer.token_text(ids[0]) == "<|im_start|>"
    assert tokenizer.eos_ids == (hf.eos_token_id,)
    assert tokenizer.token_bytes(10**9) == tokenizer.token_bytes(-1) == b""


def test_the_users_tokenizer_is_not_changed_and_changes_nothing() -> None:
    hf = byte_tokenizer()
    before = hf.backend_tokenizer.to_str()
    tokenizer = Tokenizer(hf, n_vocab=300, eos_ids=[257, 259])
    tokenizer.encode_run([("<|im_end|>", False), ("<|im_end|>", True)], first=False)
    assert hf.backend_tokenizer.to_str() == before
    assert (tokenizer.n_vocab, len(tokenizer.bytes_table), tokenizer.eos_ids) == (300, 300, (259, 257))
    hf.backend_tokenizer.enable_truncation(2)
    hf.add_special_tokens({"additional_special_tokens": ["abc"]})
    assert tokenizer.encode("abcabc", special=True) == list(b"abcabc")


def test_bos_is_there_once() -> None:
    tokenizer = Tokenizer(byte_tokenizer(bos=True))
    assert tokenizer.encode("a") == [256, 97]
    assert tokenizer.encode("") == [256]
    assert tokenizer.encode("<|bos|>a", special=True) == [256, 97]
    assert tokenizer.encode("<|bos|>", special=False) == [256, *b"<|bos|>"]
    assert tokenizer.encode("a", first=False) == [97]
    assert tokenizer.encode_run([("a", False)], bos=False) == [97]


@pytest.mark.parametrize("style", ["first", "always", "never", "prepend"])
def test_dummy_spaces(style: str) -> None:
    hf = spaced_tokenizer(style)
    tokenizer = Tokenizer(hf)
    for text in ["hello world", " hello", "hello</s>hello", "</s>  hello", "<s>hello </s>", "", " ", "é<s>", "h<s"]:
        expected = hf(text).input_ids
        assert tokenizer.encode(text, special=True) == (expected[1:] if expected[1:2] == [1] else expected), text
    assert tokenizer.decode(tokenizer.encode("hello world", first=False)) == "hello world"
    assert tokenizer.decode(tokenizer.encode("é😀", first=False)) == "é😀"
    after = tokenizer.encode("hello</s>hello", special=True)
    inside = tokenizer.encode("hello</s>hello", special=True, first=False)
    assert inside[inside.index(2) :] == after[after.index(2) :]
    assert tokenizer.decode(inside[: inside.index(2)]) == "hello"


@pytest.mark.parametrize("style", ["first", "always", "never", "prepend"])
def test_names_of_special_tokens_in_a_vocabulary_of_words(style: str) -> None:
    tokenizer = Tokenizer(spaced_tokenizer(style))
    ids = tokenizer.encode_run([("<s>hello</s> ", True), ("<s>x</s> <unk>", False), ("</s>", True)], first=False)
    assert [token for token in ids if token in tokenizer.special_ids] == [1, 2, 2]
    assert tokenizer.decode(ids).replace(" ", "") == "hello<s>x</s><unk>"


def test_the_memo_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbsglang.engine.tokenizer._MEMO_RUNS", 50)
    monkeypatch.setattr("nbsglang.engine.tokenizer._MEMO_CHARS", 1000)
    tokenizer: Any = Tokenizer(byte_tokenizer())
    for n in range(200):
        assert tokenizer.encode(f"text {n}") == tokenizer.encode(f"text {n}")
    assert len(tokenizer._memo) == 50
    for n in range(6):
        tokenizer.encode(str(n) * 300)
    assert tokenizer._memo_chars == sum(len(text) for pieces, _ in tokenizer._memo for text, _ in pieces) <= 1000


@pytest.mark.smollm2
def test_random_bytes_of_smollm2(smollm2_folder: Path) -> None:
    smollm2_tokenizer = AutoTokenizer.from_pretrained(smollm2_folder)
    tokenizer = Tokenizer(smollm2_tokenizer)
    draw = random.Random(0)
    by_bytes = {data: token for token, data in enumerate(tokenizer.bytes_table) if len(data) == 1}
    for _ in range(200):
        data = draw.randbytes(12)
        ids = [by_bytes[data[n : n + 1]] for n in range(12) if data[n : n + 1] in by_bytes]
        text = b"".join(map(tokenizer.token_bytes, ids)).decode("utf-8", "replace")
        assert detokenized(tokenizer, ids) == text == smollm2_tokenizer.decode(ids)
