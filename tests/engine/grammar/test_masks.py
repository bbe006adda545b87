"""Masks: a token is in one exactly where a slow and independent search says that a full match can still be reached."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from nbsglang.engine.grammar.compiled import Grammar, compile_choices, compile_regex
from nbsglang.engine.grammar.live import MAX_SEARCHED
from nbsglang.engine.grammar.rows import SharedRows
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError
from tests.engine.grammar.oracle import Partial, Spelled, allowed, texts_of

EVERY = [*(bytes([byte]) for byte in range(256)), b"", b""]
# Over "ab日", whose bytes are e6 97 a5, and what else these bytes can be: each vocabulary has gaps of its own.
VOCABULARIES = {
    "characters": [b"a", b"b", "日".encode(), b""],
    "no b": [b"a", b"ab", b"aa", "日b".encode(), "日".encode(), b""],
    "no single a": [b"b", b"aa", "a日".encode(), "日".encode(), b"ba", b""],
    "several ids": [b"a", b"b", b"a", b"ab", b"", b"ab", b"ab", "日".encode(), "日".encode(), b"b"],
    "broken": [b"a", b"b", b"\xe6", b"\x97", b"\xa5", b"a\xe6\x97", b"\xa5b\xe6", b"\x97\xa5", b"b\xe6", b"\xa5a", b""],
    "no end of it": [b"a", b"b", b"\xe6\x97", b"a\xe6", b"\x97", b"ab", b"\xa5a", b""],
    "no middle of it": [b"a", b"b", b"\xe6", b"\xa5", b"bb", b"\xa5\xe6", b""],
    "only long": [b"ab", b"ba", b"aa", "日a".encode(), b"b\xe6", b"\x97\xa5b", b""],
    "never text": [b"a", b"b", b"\xff", b"\xe6\xe6", b"a\x97", b"\xe6\x97\xa5", b"\xa5\x97\xa5\x97", b"\xc0", b""],
}
PATTERNS = [
    "a*", "(ab)*", "[ab]{2,4}", ".*", ".{1,3}", "日+a?", "(a|b日)*b", "a|日|b日a", "(aa)*b", "[^a]*", "a?b?日?",
    "(日日)*a", "aab|abb|日", "", "(a|aa)b{1,2}", r"\w{2}", "[ab]*日", "(b|日)a*(b|日)",
]  # fmt: skip


def compiled(make: object, *arguments: object) -> Grammar | None:
    """The grammar, None if it is refused for want of tokens."""
    try:
        return make(*arguments)  # type: ignore[no-any-return, operator]
    except ConstraintError as error:
        if "no tokens" not in str(error):
            raise
        return None


def check_all(grammar: Grammar | None, oracle: Spelled, longest: int) -> int:
    """Compare the masks of all texts that tokens can begin, down to a length; returns how many."""
    if grammar is None:
        assert not oracle.is_live(b"")
        return 0
    todo = [(b"", grammar.matcher())]
    n_masks = 0
    while todo:
        text, matcher = todo.pop()
        tokens = allowed(matcher)
        assert tokens == oracle.allowed(text), text
        assert tokens
        assert matcher.done == oracle.is_text(text)
        assert matcher.ended == (tokens <= oracle.eos_ids)
        n_masks += 1
        for token, data in oracle.tokens.items():
            after = matcher.fork()
            assert after.accept(token) == (token in tokens), (text, data)
            if token in tokens and len(text + data) <= longest:
                todo.append((text + data, after))
    return n_masks


@cache
def matching(pattern: str) -> list[bytes]:
    """Its texts over all characters that the vocabularies can spell."""
    return texts_of(pattern, "ab日\u65d7\u6957\u6965", 7)


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_over_vocabularies_with_gaps(name: str, pattern: str) -> None:
    tokens = VOCABULARIES[name]
    eos = [token for token, data in enumerate(tokens) if not data]
    # Longer texts of patterns without a bound are not known to the oracle: from the shorter ones, these tell.
    oracle = Spelled(matching(pattern), tokens, eos)
    check_all(compiled(compile_regex, pattern, Vocab(tokens, eos)), oracle, 3)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_over_bytes(pattern: str) -> None:
    vocab = Vocab(EVERY, [256, 257])
    oracle = Partial(pattern, EVERY, [], [256, 257])
    for prefix in (b"", b"a", b"aab", b"\xe6", b"\xe6\x97", "日".encode(), "b日".encode(), b"ab\xf0\x9f"):
        matcher = compile_regex(pattern, vocab).matcher()
        is_live = all(oracle.is_live(prefix[: n + 1]) for n in range(len(prefix)))
        assert all(map(matcher.accept, prefix)) == is_live
        if is_live:
            assert allowed(matcher) == oracle.allowed(prefix)


@given(st.data())
@settings(max_examples=300)
def test_choices_over_random_vocabularies(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text("ab日é", max_size=5), min_size=1, max_size=5))
    whole = b"".join(text.encode() for text in texts)
    cuts = st.tuples(st.integers(0, max(len(whole) - 1, 0)), st.integers(1, 5))
    pieces = [whole[start : start + n] for start, n in data.draw(st.lists(cuts, min_size=1, max_size=14))]
    tokens = [*pieces, b"", *data.draw(st.lists(st.sampled_from([b"a", b"b", b"\xe6", b"\xa5", b"\xc3"]), max_size=3))]
    eos = [len(pieces)]
    oracle = Spelled([text.encode() for text in texts], tokens, eos)
    check_all(compiled(compile_choices, texts, Vocab(tokens, eos)), oracle, 12)


def test_a_pattern_that_dies_at_the_start_is_refused_with_the_reason() -> None:
    vocab = Vocab([b"a", b"b", "日b".encode(), b""], [3])
    for pattern, says in (("c+", r"U\+0063"), ("a日", r"U\+65E5"), ("[x-z]", r"U\+0078, U\+007A")):
        with pytest.raises(ConstraintError, match=f"regex .* cannot be used: every match needs .*no tokens.*{says}"):
            compile_regex(pattern, vocab)
    assert allowed(compile_regex("a日|b", vocab).matcher()) == {1}
    assert allowed(compile_regex("a日?b", vocab).matcher()) == {0}
    with pytest.raises(ConstraintError, match="complete, and this vocabulary has no token to end it"):
        compile_regex("", Vocab([b"a"], []))


def test_the_search_for_a_match_has_a_budget() -> None:
    vocab = Vocab([b"a", b"ab", b"ca", b""], [3])  # no b and no c alone
    assert allowed(compile_regex("a(ca)*b", vocab).matcher()) == {1}
    with pytest.raises(ConstraintError, match=f"found in {MAX_SEARCHED} states"):
        compile_regex("(a|c){9000}b", vocab)


def test_rows_are_shared_by_content() -> None:
    vocab = Vocab([b"a", b"b", b""], [2])
    rows = SharedRows(vocab.n_words, 1)
    one, two = compile_regex("a{1,40}b", vocab, rows), compile_regex("a{40,90}b", vocab, rows)
    matcher, other = one.matcher(), two.matcher()
    assert matcher.row == other.row == rows.add(np.array([1], np.int32))
    assert matcher.accept(0)
    held = matcher.mask()
    assert allowed(matcher) == {0, 1}
    assert matcher.row != other.row
    for _ in range(39):
        assert matcher.accept(0)
    assert allowed(matcher) == {1}
    assert len(rows) == 4  # the end, {a}, {a, b}, {b}
    assert held.tolist() == [3]
    batch = rows.gather([matcher.row, other.row, one.eos_row])
    assert batch.tolist() == [[2], [1], [4]]
    with pytest.raises(ValueError, match="read-only"):
        matcher.mask()[0] = 0


def test_rows_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbsglang.engine.grammar.rows.MAX_BYTES", 64)
    rows = SharedRows(1, 8)
    assert [rows.add(np.array([value], np.int32)) for value in (5, 6, 5)] == [0, 1, 0]
    with pytest.raises(ConstraintError, match="more than 16 different masks"):
        [rows.add(np.array([value], np.int32)) for value in range(20)]
    assert rows.views[1].tolist() == [6]


# ------------------------------------------------------------------------------------ the default model

LARGE = {
    "ip": (r"((25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(25[0-5]|2[0-4]\d|[01]?\d\d?)", "192.168.1"),
    "email": (r"[a-zA-Z0-9._%+\-]+@[a-zA-Z0-9.\-]+\.[a-zA-Z]{2,10}", "harry@hogwarts.ac."),
    "fields": (
        r'\{\n    "name": "[\w\d\s]{1,16}",\n    "age": [0-9]{1,2}\.[0-9]{0,2}\n\}',
        '{\n    "name": "Harry Pot',
    ),
    "strings": (r'\[("[^"\\\n]*"(, "[^"\\\n]*")*)?\]', '["Goblet of Fire", "日'),
    "unicode": ("[一-鿿]{2,12} [а-яА-ЯёЁ]+ [😀-🙏]{1,3}", "霍格 При 😀"),
    "words": (r"\w{3,40} \S+ .{0,200}", "Hog warts"),
    "a space next": (r"\w{3,40} \S+ .{0,200}", "Hogwarts"),
    "short after a space": (r"\w{3,} \w{1,3}-\d", "Hogwarts"),
    "spaces": (r"(?: \w| a\w{2,5}|[^ ])+", "x"),
    "inner": (r"(?:[a-z]+(?: [a-z]+)*[.!?] ?)+", "it is. a"),
    "two steps": (r"(?:\w\w)*!", "abc"),
    "not a word": ("(?:[^a]|a(?!b))*", "xa"),
}


@pytest.fixture(scope="module")
def smollm2(smollm2_folder) -> Vocab:  # type: ignore[no-untyped-def]
    return Vocab.from_tokenizer(AutoTokenizer.from_pretrained(smollm2_folder))


def prefixes(text: str, draw: random.Random) -> Sequence[bytes]:
    """The empty text, the whole one, one in between, and one that ends inside a character if there is one."""
    data = text.encode()
    found = [b"", data, data[: draw.randrange(len(data))]]
    begun = [n for n in range(len(data)) if n and data[n] & 0xC0 == 0x80]
    return [*found, data[: draw.choice(begun)]] if begun else found


@pytest.mark.smollm2
@pytest.mark.parametrize("name", LARGE)
def test_every_token_of_the_default_model(smollm2: Vocab, name: str) -> None:
    pattern, text = LARGE[name]
    oracle = Partial(pattern, smollm2.token_bytes, smollm2.special_ids, smollm2.eos_ids)
    grammar = compile_regex(pattern, smollm2)
    by_bytes = {data: token for token, data in enumerate(smollm2.token_bytes)}
    draw = random.Random(name)
    for prefix in prefixes(text, draw):
        matcher = grammar.matcher()
        assert all(matcher.accept(by_bytes[bytes([byte])]) for byte in prefix), prefix
        tokens = allowed(matcher)
        assert tokens == oracle.allowed(prefix), prefix
        for token in draw.sample(range(smollm2.n_vocab), 400):
            assert matcher.fork().accept(token) == (token in tokens)
