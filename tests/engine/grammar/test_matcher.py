"""Matchers: walks end in full matches, and forks, rollbacks, required prefixes and forced text are what they say."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from nbsglang.calls import Constraint
from nbsglang.engine.grammar import compile_regex as lazy_compile_regex
from nbsglang.engine.grammar.automatic import AutomatonMatcher
from nbsglang.engine.grammar.compiled import Grammar, compile_choices, compile_regex
from nbsglang.engine.grammar.compress import Edge
from nbsglang.engine.grammar.external import Compiler
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import ConstraintError, UsageError
from tests.engine.grammar.oracle import allowed, texts_of
from tests.tiny import byte_tokenizer

WALKED = [
    r"((25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(25[0-5]|2[0-4]\d|[01]?\d\d?)",
    r'\{\n    "name": "[\w\d\s]{1,16}",\n    "house": "(Gryffindor|Slytherin)",\n    "age": [0-9]{1,2}\.[0-9]{0,2}\}',
    r"[a-zA-Z0-9._%+\-]+@[a-zA-Z0-9.\-]+\.[a-zA-Z]{2,10}", r'\[("[^"\\\n]*"(, "[^"\\\n]*")*)?\]', "(a|aa|aaa)*b{3,50}",
    "[一-鿿]{2,12} [а-яё]+ [😀-🙏]{1,3}", r"\w{3,40} \S+ .{0,20}", "(?s).+", "(?i)straße|k", r"[^\W\d_]+", "[à-ÿ]+",
    r"(\w+ )*\w+",
]  # fmt: skip


@pytest.fixture(scope="module", params=["bytes", pytest.param("smollm2", marks=pytest.mark.smollm2)])
def words(request: pytest.FixtureRequest) -> Tokenizer:
    if request.param == "bytes":
        return Tokenizer(byte_tokenizer(), n_vocab=300)
    return Tokenizer(AutoTokenizer.from_pretrained(request.getfixturevalue("smollm2_folder")))


@pytest.fixture(scope="module")
def vocab(words: Tokenizer) -> Vocab:
    return Vocab(words.bytes_table, words.eos_ids, words.special_ids)


@pytest.fixture(scope="module")
def plain() -> Vocab:
    """Bytes, and two tokens that end a text."""
    return Vocab([bytes([byte]) for byte in range(256)] + [b""] * 4, [257, 259], [256])


def takes(grammar: Grammar, text: str | bytes) -> bool:
    """Whether the bytes of a text are a match."""
    matcher = grammar.matcher()
    data = text.encode() if isinstance(text, str) else text
    return all(map(matcher.accept, data)) and matcher.done


@pytest.mark.parametrize("pattern", WALKED)
def test_random_walks_end_in_matches(words: Tokenizer, vocab: Vocab, pattern: str) -> None:
    draw = random.Random(pattern)
    grammar = compile_regex(pattern, vocab)
    eos = set(words.eos_ids)
    for _ in range(6):
        matcher, ids = grammar.matcher(), []
        for _ in range(60):
            tokens = allowed(matcher)
            whole = b"".join(map(words.token_bytes, ids))
            text = whole.decode(errors="replace")
            assert tokens
            assert not tokens & (words.special_ids - eos)
            full = text.encode() == whole and bool(re.fullmatch(pattern, text))
            assert matcher.done == full == bool(tokens & eos) == (eos <= tokens)
            assert matcher.ended == (tokens == eos)
            for token in draw.sample(range(words.n_vocab), 20):
                assert matcher.fork().accept(token) == (token in tokens)
            if matcher.ended:
                break
            token = draw.choice(sorted(tokens - eos))
            assert matcher.accept(token)
            ids.append(token)
        if matcher.done:
            assert matcher.accept(words.eos_ids[0])
            assert matcher.ended
            assert matcher.done
            assert allowed(matcher) == eos
            assert not any(
                matcher.accept(token) for token in draw.sample(range(17, words.n_vocab), 20) if token not in eos
            )


@pytest.mark.parametrize("pattern", WALKED)
def test_masks_are_those_of_llguidance(words: Tokenizer, vocab: Vocab, pattern: str) -> None:
    draw = random.Random(pattern)
    theirs = Compiler(words.bytes_table, words.eos_ids, words.special_ids).compile(Constraint("regex", pattern))
    ours = compile_regex(pattern, vocab).matcher()
    for _ in range(25):
        tokens = allowed(ours)
        assert tokens == allowed(theirs)
        assert (ours.done, ours.ended) == (theirs.done, theirs.ended)
        if ours.ended:
            break
        token = draw.choice(sorted(tokens - set(words.eos_ids)))
        assert ours.accept(token)
        assert theirs.accept(token)


def test_rollback_and_forks_are_replays(words: Tokenizer, vocab: Vocab) -> None:
    for pattern in WALKED[:8]:
        draw = random.Random(pattern)
        grammar = compile_regex(pattern, vocab)
        matcher: Matcher = grammar.matcher()
        ids: list[int] = []
        for _ in range(60):
            choice = draw.random()
            if choice < 0.15:
                n = draw.randint(0, min(4, len(ids)))
                matcher.rollback(n)
                del ids[len(ids) - n :]
            elif choice < 0.3:
                other = matcher.fork()
                assert other.accept(draw.choice(sorted(allowed(other))))
                matcher, other = (matcher, other) if draw.random() < 0.5 else (matcher.fork(), matcher)
            else:
                token = draw.choice(sorted(allowed(matcher)))
                assert matcher.accept(token)
                ids.append(token)
            again = grammar.matcher()
            assert all(map(again.accept, ids))
            assert (again.row, again.done, again.ended) == (matcher.row, matcher.done, matcher.ended)
            assert again.forced() == matcher.forced()
            assert (again.mask() == matcher.mask()).all()
        matcher.rollback(len(ids))
        assert allowed(matcher) == allowed(grammar.matcher())
        with pytest.raises(AssertionError, match="more tokens"):
            matcher.rollback(1)


def test_what_is_refused_changes_nothing(words: Tokenizer, vocab: Vocab) -> None:
    matcher = lazy_compile_regex("ab", vocab).matcher()
    before, forced = allowed(matcher), matcher.forced()
    x = words.encode("x", first=False)[0]
    for token in (-1, words.n_vocab, 10**9, words.eos_ids[0], *words.special_ids, x):
        assert not matcher.accept(token)
        assert (allowed(matcher), matcher.forced(), matcher.done) == (before, forced, False)
    assert all(map(matcher.accept, words.encode("ab", first=False)))
    assert matcher.ended
    assert not matcher.accept(x)


def test_acceptance_is_the_same_with_and_without_a_mask(vocab: Vocab) -> None:
    draw = random.Random(5)
    for pattern in WALKED:
        with_masks, without = compile_regex(pattern, vocab).matcher(), compile_regex(pattern, vocab).matcher()
        for _ in range(12):
            tokens = allowed(with_masks)
            for token in (*draw.sample(range(vocab.n_vocab), 30), *draw.sample(sorted(tokens), min(3, len(tokens)))):
                fork = without.fork()
                assert fork.accept(token) == (token in tokens)
            token = draw.choice(sorted(tokens))
            assert with_masks.accept(token)
            assert without.accept(token)


def test_end_of_text(plain: Vocab) -> None:
    matcher = compile_regex("ab?", plain).matcher()
    assert not matcher.accept(257)
    assert matcher.accept(ord("a"))
    assert (matcher.done, matcher.ended) == (True, False)
    assert allowed(matcher) == {ord("b"), 257, 259}
    assert matcher.accept(259)
    assert matcher.accept(257)
    assert (matcher.done, matcher.ended, matcher.forced(), allowed(matcher)) == (True, True, "", {257, 259})
    assert not matcher.accept(ord("b"))
    fork = matcher.fork()
    matcher.rollback(3)
    assert (matcher.done, matcher.forced(), allowed(matcher)) == (False, "a", {ord("a")})
    fork.rollback(2)
    assert allowed(fork) == {ord("b"), 257, 259}
    endless = compile_regex("ab", Vocab([b"a", b"b"], [])).matcher()
    assert endless.accept(0)
    assert endless.accept(1)
    assert (endless.done, endless.ended) == (True, True)
    with pytest.raises(ConstraintError, match="no token to end it"):
        endless.mask()
    assert compile_choices([""], plain).matcher().ended


# ----------------------------------------------------------------------------------- a required prefix


def test_seeded_is_the_prefix_and_then_the_constraint(plain: Vocab) -> None:
    for grammar in (compile_regex("[ab]+é?", plain), compile_choices(["ab", "bé", "b"], plain)):
        for prefix in ("é ", "a", "ab日"):
            seeded, mate = grammar.matcher(), grammar.matcher()
            seeded.seed(prefix.encode())
            assert seeded.forced().startswith(prefix)
            n_eos = set(plain.eos_ids)
            for byte in prefix.encode():
                assert allowed(seeded) == {byte}
                assert not seeded.done
                assert seeded.accept(byte)
            for token in "bé".encode():
                assert (allowed(seeded), seeded.done, seeded.forced()) == (allowed(mate), mate.done, mate.forced())
                assert seeded.accept(token)
                assert mate.accept(token)
            assert seeded.done
            assert n_eos <= allowed(seeded)
            with pytest.raises(ConstraintError, match="before the first token"):
                seeded.seed(b"x")
            seeded.rollback(len(prefix.encode()) + 3)
            assert allowed(seeded) == {prefix.encode()[0]}
    with pytest.raises(ConstraintError, match="whole characters"):
        compile_regex("a", plain).matcher().seed(b"\xff")
    unseeded = compile_regex("a", plain).matcher()
    unseeded.seed(b"")
    assert allowed(unseeded) == {ord("a")}


def test_seeded_walks(words: Tokenizer, vocab: Vocab) -> None:
    draw = random.Random(3)
    theirs = Compiler(words.bytes_table, words.eos_ids, words.special_ids)
    for pattern in WALKED[:6]:
        prefix = draw.choice(["He is ", "日本 ", "{", '"a"'])
        matcher, other = compile_regex(pattern, vocab).matcher(), theirs.compile(Constraint("regex", pattern))
        matcher.seed(prefix.encode())
        other.seed(prefix.encode())
        ids: list[int] = []
        while not matcher.ended and len(ids) < 20:
            tokens = allowed(matcher)
            assert tokens == allowed(other)
            ids.append(draw.choice(sorted(tokens - set(words.eos_ids))))
            assert matcher.accept(ids[-1])
            assert other.accept(ids[-1])
        whole = b"".join(map(words.token_bytes, ids))
        if matcher.done:
            assert whole.startswith(prefix.encode())
            assert re.fullmatch(pattern, whole.decode()[len(prefix) :])


# ----------------------------------------------------------------------------------------- forced text


def test_forced_text(plain: Vocab) -> None:
    matcher = compile_regex("(Gryffindor|Slytherin)é!?", plain).matcher()
    assert matcher.forced() == ""
    assert matcher.accept(ord("G"))
    assert matcher.forced() == "ryffindoré"
    for byte in "ryffindoré".encode()[:-1]:
        assert matcher.accept(byte)
    assert matcher.forced() == ""  # the rest of a character is no text
    assert matcher.accept("é".encode()[1])
    assert (matcher.done, matcher.ended, matcher.forced()) == (True, False, "")


@given(
    st.recursive(
        st.sampled_from(["a", "b", "ab", "[ab]", "bb"]),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["?", "{2}", "{1,2}", "*"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
            st.lists(inner, min_size=1, max_size=3).map("".join),
            st.lists(inner, min_size=1, max_size=2).map(lambda parts: f"(?:{'|'.join(parts)})"),
        ),
        max_leaves=6,
    )
)
def test_forced_text_is_what_all_texts_have_in_common(pattern: str) -> None:
    vocab = Vocab([b"a", b"b", b""], [2])
    texts = [text.decode() for text in texts_of(pattern, "ab", 10)]
    matchers = [("", compile_regex(pattern, vocab).matcher())]
    for begun, matcher in matchers:
        rests = [text[len(begun) :] for text in texts if text.startswith(begun)]
        if len(begun) > 3 or not rests or any(len(rest) > 12 for rest in rests):
            continue
        forced = matcher.forced()
        longest = len(forced) if len(begun + forced) < 9 else 0
        assert all(rest.startswith(forced[:longest]) for rest in rests)
        assert longest == 0 or not any(rest != forced and forced.startswith(rest) for rest in rests)
        if longest and forced not in rests:  # no more is forced
            assert len({rest[longest] for rest in rests}) > 1
        for token, char in enumerate("ab"):
            fork = matcher.fork()
            if fork.accept(token):
                matchers.append((begun + char, fork))


def test_forced_text_of_a_long_chain(plain: Vocab) -> None:
    text = "".join(random.Random(1).choices("abcé", k=12_000))
    matcher = compile_choices([text], plain).matcher()
    assert matcher.forced() == text[:10_000]
    for byte in text[:100].encode():
        assert matcher.accept(byte)
    assert matcher.forced() == text[100:10_100]


def test_the_compressed_graph(plain: Vocab) -> None:
    graph = compile_regex(r'"(yes|no)":[0-9]*(\n|[^"\\\d])x', plain).compressed.graph()
    found = {(edge.label, edge.text) for edge in graph.edges}
    assert ('"', '"') in found
    assert {("y", ""), ("n", "")} <= found
    assert {('es":', 'es":'), ('o":', 'o":'), ("x", "x")} <= found
    assert graph.is_whole
    assert len(graph.accepting) == 1
    json.dumps([graph.nodes, graph.edges, sorted(graph.accepting)])  # plain values
    assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} == set(graph.nodes)


def test_labels(plain: Vocab) -> None:
    def labels(pattern: str) -> list[str]:
        return [edge.label for edge in compile_regex(pattern, plain).compressed.graph().edges]

    assert labels("[a-c]") == ["[a-c]"]
    assert labels("[ac\\]]") == ["[\\]ac]"]
    assert labels("(?s).") == ["any"]
    assert labels(".") == ["[^\\n]"]
    assert labels('[^"\\\\]') == ['[^"\\\\]']
    assert labels("\n\x00\u2028\x1b") == ["\\n\\x00\\u2028\\x1b"]
    assert labels("[\n\x1b]") == ["[\\n\\x1b]"]
    for category in (r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", r"[\w\s]", r"[\w.]", r'[^\d"]', r"[\s\x00]"):
        assert labels(category) == [category]
    assert "\\d but [0-4]" in labels(r"[0-4]x|\dy")
    (letters,) = labels(r"[à-ÿ]|[Ѐ-ӿ]|[一-鿿]|a|c|e|g|[i-z]|[1-3]|5|7")
    assert re.fullmatch(r"\[1-357aceg.*\] and [\d,]+ more", letters)


def test_the_graph_is_bounded(plain: Vocab) -> None:
    graph = compile_regex("(ab|cd|[xyz]){500}", plain).compressed.graph(20)
    assert len(graph.nodes) == 20
    assert not graph.is_whole
    assert all(isinstance(edge, Edge) and edge.target in graph.nodes for edge in graph.edges)


# --------------------------------------------------------------------------------------------- the rest


def test_choices(plain: Vocab) -> None:
    grammar = compile_choices(["a.b", "a", "é|", "a.b", "\n/"], plain)
    assert all(takes(grammar, text) for text in ("a.b", "a", "é|", "\n/"))
    assert not any(takes(grammar, text) for text in ("", "axb", "é", "|", "a.", "é|".encode()[:1]))
    with pytest.raises(UsageError, match="at least one"):
        compile_choices([], plain)
    with pytest.raises(ConstraintError, match="surrogate"):
        compile_choices(["\udfff"], plain)
    with pytest.raises(ConstraintError, match="characters in all"):
        compile_choices(["a" * 1_000_001], plain)
    with pytest.raises(ConstraintError, match="different characters"):
        compile_choices(["".join(map(chr, range(0x4E00, 0x4E00 + 5000)))], plain)


def test_many_choices_are_quick(plain: Vocab) -> None:
    texts = [f"{n:05d}" for n in range(20_000)]
    grammar = compile_choices(texts, plain)
    assert all(takes(grammar, text) for text in texts[::997])
    assert not takes(grammar, "20000")


def test_threads_share_a_grammar(vocab: Vocab) -> None:
    """Some compile and walk while others do, and all see the masks of one who is alone."""
    pattern = WALKED[1]
    alone = compile_regex(pattern, vocab)
    shared = compile_regex(pattern, vocab)
    failures: list[BaseException] = []

    def walk(seed: int) -> None:
        try:
            draw = random.Random(seed)
            matcher = shared.matcher()
            while not matcher.ended:
                mask = matcher.mask()
                assert mask.any()
                assert (mask == shared.rows.array[matcher.row]).all()
                token = draw.choice(np.nonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))[0].tolist())
                assert matcher.accept(token)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    draw, one, other = random.Random(0), alone.matcher(), shared.matcher()
    while not one.ended:
        assert (one.mask() == other.mask()).all()
        token = draw.choice(sorted(allowed(one)))
        assert one.accept(token)
        assert other.accept(token)


def test_the_contract_is_filled(plain: Vocab) -> None:
    matcher: Matcher = AutomatonMatcher(compile_regex("a|b", plain))
    row = matcher.row
    assert (matcher.mask() == plain.text_row).sum() >= 0
    matcher.close()
    matcher.close()
    assert matcher.row == row


def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys, nbsglang.engine.grammar as g; before = 'numpy' in sys.modules\n"
        "g.compile_regex('a+', g.Vocab([b'a', b''], [1])).matcher().mask()\n"
        "sys.exit(before or any(name in sys.modules for name in ('torch', 'transformers', 'llguidance')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
