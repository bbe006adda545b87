"""Automata of which only some states are kept: texts go on with the same masks, and memory stays within its limit."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.compiled import Grammar, compile_regex
from nbsglang.engine.grammar.limits import Limits, OutgrownError
from nbsglang.engine.grammar.regex import parse
from nbsglang.engine.grammar.vocab import Vocab
from tests.engine.grammar.oracle import allowed

WIDE = "[ab]*a[ab]{12}c?"  # the last twelve letters matter: 8,192 states
GUARDED = r"(?!.*bbbbb)[ab]*a[ab]{9}(?=c|$)c?"


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return Vocab([bytes([byte]) for byte in range(256)] + [b"ab", b"ba", b"abb", b"aab", b""], [260], [])


def small(pattern: str, vocab: Vocab, states: int) -> Grammar:
    return Grammar("small", Automaton(parse(pattern), Limits(states=states)), vocab)


@pytest.mark.parametrize(("pattern", "states"), [(WIDE, 100), (WIDE, 1000), (GUARDED, 400), ("(a{0,9}b?){0,60}", 150)])
@pytest.mark.parametrize("prefix", ["", "xä"])
def test_masks_are_those_of_an_automaton_without_a_limit(vocab, pattern, states, prefix):
    draw = random.Random(pattern)
    grammar, whole = small(pattern, vocab, states), compile_regex(pattern, vocab)
    n_renewed = 0
    for _ in range(12):
        matcher, other = grammar.matcher(), whole.matcher()
        for each in (matcher, other):
            each.seed(prefix.encode())
        begun, forks = matcher._grammar, []
        for _ in range(120):
            tokens = allowed(other)
            assert allowed(matcher) == tokens
            assert (matcher.done, matcher.ended, matcher.forced()) == (other.done, other.ended, other.forced())
            if other.ended:
                break
            if draw.random() < 0.2:
                forks.append((matcher.fork(), other.fork()))
            if draw.random() < 0.1:
                n = draw.randint(0, min(len(other._past), 9))
                matcher.rollback(n)
                other.rollback(n)
            tokens = allowed(other)
            for token in (draw.choice((300, -1, 255)), draw.choice(sorted(tokens - {260}))):
                assert matcher.accept(token) == other.accept(token)
        n_renewed += matcher._grammar is not begun
        for fork, also in forks:  # they may stand in an older automaton
            token = draw.choice(sorted(allowed(also)))
            assert allowed(fork) == allowed(also)
            assert fork.accept(token) == also.accept(token) is True
            assert allowed(fork) == allowed(also)
    assert n_renewed, "the limit was met"


def test_older_automata_go_and_no_more_states_are_kept_than_allowed(vocab):
    grammar, draw = small(WIDE, vocab, 200), random.Random(0)
    matcher = grammar.matcher()
    seen: list[weakref.ref[Grammar]] = [weakref.ref(grammar)]
    for _ in range(3000):
        matcher.mask()
        assert matcher.accept(draw.choice(b"ab"))
        if matcher._grammar is not seen[-1]():
            seen.append(weakref.ref(matcher._grammar))
        assert matcher._grammar._automaton.n_states <= 200
    assert len(seen) > 5
    gc.collect()
    assert [ref() is not None for ref in seen].count(True) == 2, "the first and the last"


def test_one_place_that_needs_more_is_refused(vocab):
    with pytest.raises(OutgrownError, match="more than 3 states"):
        small("(a|b)(a|c)(a|d)(a|e)", vocab, 3)


def test_masks_past_their_memory_go_on_too(vocab, monkeypatch):
    monkeypatch.setattr("nbsglang.engine.grammar.rows.MAX_BYTES", 40 * 4 * vocab.n_words)
    pattern = "".join(rf"[\x{0x21 + n:x}-\x{0x22 + n:x}]" for n in range(60))
    grammar = compile_regex(pattern, vocab)
    matcher = grammar.matcher()
    for n in range(60):
        assert {0x21 + n, 0x22 + n} <= allowed(matcher)
        assert matcher.accept(0x21 + n)
    assert matcher.ended
    assert matcher._grammar is not grammar
