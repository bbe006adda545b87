"""Strings of a pattern of bounded lengths: against all texts, against reading characters, and what they cost."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from nbsglang.engine.grammar.measured import MeasuredStrings
from nbsglang.engine.grammar.nested import Nested
from nbsglang.engine.grammar.rules import Measured
from nbsglang.engine.grammar.schema import compile_json_schema, schema_automaton
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError
from tests.engine.grammar.test_nested import END, TOKENS, check

CHARS = 'ab" \n\x01'
PATTERNS = [
    r"^(?:\S+\s+){0,29}\S+$", r"^$|^(\S+ )*\S+$", "^a*$", "^(ab|a\"b)+$", "^(a|b\n){2,}", "b$", "^[^a]*$", "^(aa)*$",
    "^(a{3}|b)*( {2}a{2,4})?$", "a.?b|^ ", "^(a|\x01{2,3}|ab)*b$",
]  # fmt: skip


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return Vocab(TOKENS, [END])


def automaton_of(pattern: str, most: int) -> Nested:
    automaton = schema_automaton({"type": "string", "pattern": pattern, "maxLength": most})
    assert isinstance(automaton, Nested)
    return automaton


def prefixes(text: str) -> list[str]:
    """The beginnings of a text as it is written in JSON, itself among them."""
    spelled = json.dumps(text, ensure_ascii=False)
    return [spelled[:n] for n in range(len(spelled) + 1)]


def read(automaton: Nested, text: str) -> int:
    state = automaton.start
    for char in text:
        state = int(automaton.row(state)[automaton.class_of[ord(char)]])
        if state < 0:
            break
    return state


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("most", [0, 1, 2, 4])
def test_the_texts_are_those_of_the_pattern_that_are_short_enough(pattern: str, most: int) -> None:
    texts = ["".join(chars) for n in range(5) for chars in itertools.product(CHARS, repeat=n)]
    fitting = {text for text in texts if len(text) <= most and re.search(pattern.replace("$", r"\Z"), text)}
    if not fitting:
        with pytest.raises(ConstraintError, match="no value"):
            automaton_of(pattern, most)
        return
    automaton = automaton_of(pattern, most)
    for text in texts:
        spelled = json.dumps(text, ensure_ascii=False)
        state = read(automaton, spelled)
        assert (state >= 0 and automaton.accepts(state)) == (text in fitting), spelled
    begun = {prefix for text in fitting for prefix in prefixes(text)}
    for prefix in {prefix for text in texts for prefix in prefixes(text)}:
        assert (read(automaton, prefix) >= 0) == (prefix in begun), prefix


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("most", [3, 17, 40])
def test_masks_are_those_of_reading_characters(vocab: Vocab, pattern: str, most: int) -> None:
    check({"type": "array", "items": {"type": "string", "pattern": pattern, "maxLength": most}}, vocab, most, 4)


@settings(max_examples=40)
@given(st.sampled_from(PATTERNS), st.integers(1, 30), st.integers(0, 10**6))
def test_masks_of_strings_that_come_near_their_end(vocab: Vocab, pattern: str, most: int, seed: int) -> None:
    schema = {"anyOf": [{"type": "string", "pattern": pattern, "maxLength": most}, {"type": "integer"}]}
    try:
        check(schema, vocab, seed, 2, 30)
    except ConstraintError:
        assert most < 3


@pytest.mark.smollm2
def test_far_from_the_bound_all_is_that_of_the_pattern_alone(smollm2_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2_folder)
    whole = Vocab.from_tokenizer(tokenizer)
    pattern = r"^(?:\S+\s+){0,90}\S+$"
    text = json.dumps("one two three four five six seven eight nine ten " * 3 + "end")
    n_known = []
    for bound in ({}, {"maxLength": 700}, {"maxLength": 900}):
        matcher = compile_json_schema({"type": "string", "pattern": pattern, **bound}, whole).matcher()
        for token in tokenizer.encode(text, add_special_tokens=False):
            matcher.mask()
            assert matcher.accept(token)
        assert matcher.done
        n_known.append([len(parts._known) for parts in whole.parts.values()])
    assert n_known[0] == n_known[1] == n_known[2]


@pytest.mark.parametrize("shape", [{"format": "uri"}, {"format": "email"}, {"pattern": "^[a-z]+( [a-z]+)*$"}])
def test_these_are_measured(shape: dict[str, str]) -> None:
    automaton = schema_automaton({"type": "string", **shape, "maxLength": 30})
    assert isinstance(automaton, Nested)
    assert [type(asked.piece) for asked in automaton.rules if isinstance(asked.rule, Measured)] == [MeasuredStrings]
