"""Masks of constraints: their language is that of `re.fullmatch`, and masks, acceptance, rollback and forks agree."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.external import Compiler, ExternalMatcher
from nbsglang.engine.grammar.matcher import MaskTable, Matcher
from nbsglang.engine.grammar.pattern import translate
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import ConstraintError, UsageError
from tests.tiny import byte_tokenizer

IP = r"((25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(25[0-5]|2[0-4]\d|[01]?\d\d?)"
CHARACTER = (
    r'\{\n    "name": "[\w\d\s]{1,16}",\n    "house": "(Gryffindor|Slytherin)",\n    '
    r'"length": [0-9]{1,2}\.[0-9]{0,2}\n\}'
)
PATTERNS = [
    IP, CHARACTER, r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", r"(\+1 )?\(\d{3}\) \d{3}-\d{4}",
    r'\[("[^"\\\n]*"(, "[^"\\\n]*")*)?\]', "(a|aa|aaa)*b{3,50}", "[一-鿿]{2,12} [а-яё]+ [😀-🙏]{1,3}",
    r"\w{3,40} \S+ .{0,20}", "(a|ab)(c|bcd)?", r"\s", ".", "(?s).+", "[^a]", "(?i)straße|k", "a{2,3}?", r"[\w-]+",
    r"[^\W\d_]+", "^a$", "[à-ÿ]+", r"(?a)\w+",
]  # fmt: skip
TABLE = [
    *PATTERNS, "a|aa|aaa", r"\w+", r"\d+", ".*", "(?i)[a-z]+", r"\x41", r"\u00e9", r"[a-c\d]+", r"\S+", r"\W", "a$",
    "^a", "(?P<n>a)b", "(?:ab)+", "[[]", "[]a]", r"\-", "_", "a{,2}", "(?x) a b # c", r"\.", r"[+\-*/]", "é+",
    "(?i)[^k]", "(?i)ſ", r"\A\w\Z", "(?i:a)b", "(^a|b)c", "a(b$|c)", "(?:)", "", r"(?a:\d)\d", "(?-i:a)", "(?s:.).",
    r"[^\d\s]", r"[\D]", "a*?", "(a?){3}", "(?i)İ", "(?i)[à-ý]", "(?m)^a$", r"(?a)\w(?u:\w)",
]  # fmt: skip
CHARACTERS = 'aAbBcCdkKſsSßẞ0٣_-. \n\t\x00\x85\u2028é\u0301ÉàÿÝİi̇ıI日😀[]+*/٠\U0010ffff"\\ы'


@pytest.fixture(scope="module", params=["bytes", pytest.param("smollm2", marks=pytest.mark.smollm2)])
def words(request: pytest.FixtureRequest) -> Tokenizer:
    hf: PreTrainedTokenizerBase = (
        byte_tokenizer()
        if request.param == "bytes"
        else AutoTokenizer.from_pretrained(request.getfixturevalue("smollm2_folder"))
    )
    return Tokenizer(hf, n_vocab=300 if request.param == "bytes" else None)


@pytest.fixture(scope="module")
def compiler(words: Tokenizer) -> Compiler:
    return Compiler(words.bytes_table, words.eos_ids, words.special_ids)


@pytest.fixture(scope="module")
def byte_compiler() -> Compiler:
    return Compiler([bytes([byte]) for byte in range(256)] + [b""] * 4, [257, 259], [256])


def regex(pattern: str) -> Constraint:
    return Constraint("regex", pattern)


def allowed(matcher: Matcher) -> set[int]:
    return set(np.nonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little"))[0].tolist())


def matches(compiler: Compiler, constraint: Constraint, text: str) -> bool:
    matcher = compiler.compile(constraint)
    return all(matcher.accept(byte) for byte in text.encode()) and matcher.done


@pytest.mark.parametrize("pattern", TABLE)
def test_the_language_is_that_of_fullmatch(byte_compiler: Compiler, pattern: str) -> None:
    draw = random.Random(pattern)
    texts = ["", *CHARACTERS, *("".join(draw.choices(CHARACTERS, k=draw.randint(2, 4))) for _ in range(300))]
    texts += [
        "aa",
        "ab",
        "abab",
        "aab",
        "ac",
        "bc",
        "a\n",
        "\na",
        "aaa",
        "STRASSE",
        "straße",
        "STRASSE",
        "b3",
        "a\u0301",
    ]
    for text in texts:
        assert matches(byte_compiler, regex(pattern), text) == bool(re.fullmatch(pattern, text)), text


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_random_patterns(byte_compiler: Compiler, data: st.DataObject) -> None:
    atoms = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", r"\w", r"\s", "é", "(?i:a)", "", r"\d"])
    bounds = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{,2}", "*?", "{0}"])
    patterns = st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, bounds).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
            st.lists(inner, min_size=1, max_size=3).map("".join),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        ),
        max_leaves=6,
    )
    pattern = data.draw(patterns)
    for text in data.draw(st.lists(st.text("abAé 1\n", max_size=6), min_size=5, max_size=10)):
        assert matches(byte_compiler, regex(pattern), text) == bool(re.fullmatch(pattern, text)), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_random_walks_end_in_matches(words: Tokenizer, compiler: Compiler, pattern: str) -> None:
    draw = random.Random(pattern)
    for _ in range(4):
        matcher, ids = compiler.compile(regex(pattern)), []
        for _ in range(80):
            tokens = allowed(matcher)
            text = words.decode(ids)
            assert tokens
            assert not tokens & (words.special_ids - set(words.eos_ids))
            whole = b"".join(map(words.token_bytes, ids))
            full = bool(re.fullmatch(pattern, text)) and whole == text.encode()
            assert matcher.done == full == bool(tokens & set(words.eos_ids)) == (set(words.eos_ids) <= tokens)
            for token in draw.sample(range(words.n_vocab), 20):
                fork = matcher.fork()
                assert fork.accept(token) == (token in tokens)
            if matcher.ended:
                assert tokens == set(words.eos_ids)
                break
            token = draw.choice(sorted(tokens - set(words.eos_ids)))
            assert matcher.accept(token)
            ids.append(token)
        if matcher.done:
            assert matcher.accept(words.eos_ids[0])
            assert matcher.ended
            assert allowed(matcher) == set(words.eos_ids)


def test_rollback_and_forks(words: Tokenizer, compiler: Compiler) -> None:
    draw = random.Random(1)
    for pattern in (CHARACTER, IP, r"\w{3,40} \S+ .{0,20}", "(ab)*"):
        matcher, masks = compiler.compile(regex(pattern)), []
        while len(masks) < 25 and not matcher.ended:
            masks.append(allowed(matcher))
            token = draw.choice(sorted(masks[-1]))
            other = matcher.fork()
            assert matcher.accept(token)
            assert allowed(other) == masks[-1]
            assert other.accept(draw.choice(sorted(masks[-1])))
            if draw.random() < 0.3:
                n = draw.randint(0, min(2, len(masks)))
                matcher.rollback(n)
                masks = masks[: len(masks) - n]
        for mask in reversed(masks):
            matcher.rollback(1)
            assert allowed(matcher) == mask


def test_what_is_refused_changes_nothing(compiler: Compiler, words: Tokenizer) -> None:
    matcher = compiler.compile(regex("ab"))
    before = allowed(matcher)
    for token in (-1, words.n_vocab, 10**9, words.eos_ids[0], *words.special_ids, words.encode("x", first=False)[0]):
        assert not matcher.accept(token)
    assert allowed(matcher) == before
    assert all(map(matcher.accept, words.encode("ab", first=False)))
    assert matcher.ended
    assert not matcher.accept(words.encode("b", first=False)[0])


def test_forced_text(byte_compiler: Compiler) -> None:
    matcher = byte_compiler.compile(regex("(Gryffindor|Slytherin)é!?"))
    assert matcher.forced() == ""
    assert matcher.accept(ord("G"))
    assert matcher.forced() == "ryffindoré"
    for byte in "ryffindoré".encode()[:-1]:
        assert matcher.accept(byte)
    assert matcher.forced() == ""  # the rest of a character is no text
    assert matcher.accept("é".encode()[1])
    assert (matcher.done, matcher.ended, matcher.forced()) == (True, False, "")


def test_seed(byte_compiler: Compiler) -> None:
    for constraint in (regex("[ab]+"), Constraint("choices", ("ab", "b")), Constraint("grammar", "start: /[ab]+/")):
        matcher = byte_compiler.compile(constraint)
        matcher.seed("é ".encode())
        assert matcher.forced() == "é "
        assert all(map(matcher.accept, "é b".encode()))
        assert matcher.done
        with pytest.raises(ConstraintError, match="before the first token"):
            matcher.seed(b"x")
    with pytest.raises(ConstraintError, match="whole characters"):
        byte_compiler.compile(regex("a")).seed(b"\xff")


def test_choices(byte_compiler: Compiler) -> None:
    choices = Constraint("choices", ("a.b", "a", "é|", "a.b", "\n/"))
    for text in ("a.b", "a", "é|", "\n/"):
        assert matches(byte_compiler, choices, text)
    for text in ("", "axb", "é", "|"):
        assert not matches(byte_compiler, choices, text)
    assert byte_compiler.compile(Constraint("choices", ("",))).ended


def test_schema(byte_compiler: Compiler) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
        "required": ["a", "b"],
    }
    schema |= {"additionalProperties": False, "x-guidance": {"whitespace_flexible": True}}  # ours wins
    constraint = Constraint("schema", json.dumps(schema))
    assert matches(byte_compiler, constraint, '{"a": 12, "b": "x"}')
    for text in (
        '{"a":12, "b": "x"}',
        '{"a": 12,  "b": "x"}',
        '{"a": 12}',
        '{"a": "1", "b": "x"}',
        ' {"a": 1, "b": "x"}',
    ):
        assert not matches(byte_compiler, constraint, text)
    assert matches(byte_compiler, Constraint("schema", "true"), "[1, null]")


def test_grammar(byte_compiler: Compiler) -> None:
    grammar = Constraint("grammar", 'start: "a" start "b" | "c"')
    assert matches(byte_compiler, grammar, "aacbb")
    assert not matches(byte_compiler, grammar, "aacb")


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("regex", "a(", "unterminated"),
        ("regex", r"(a)\1", "backreference"),
        ("regex", "a(?=b)", "lookahead"),
        ("regex", "(?<!a)b", "lookbehind"),
        ("regex", r"\bfoo", "word boundary"),
        ("regex", "(a)?(?(1)b|c)", "conditional"),
        ("regex", "(?>a|ab)c", "atomic"),
        ("regex", "a++", "possessive"),
        ("regex", "a^b", "anchor"),
        ("regex", "(a$)*b", "anchor"),
        ("regex", "a(?!)", "lookahead|never match"),
        ("regex", r"[^\s\S]", "class without"),
        ("regex", "\ud800", "surrogate"),
        ("regex", "((a{1000}){1000}){1000}", "positions"),
        ("regex", "(" * 5000 + "a" + ")" * 5000, "not a regular expression|too deeply"),
        ("regex", "a" * 2_000_000, "characters"),
        ("choices", ("\udfff",), "surrogate"),
        ("schema", "{", "not JSON"),
        ("schema", "[]", "must be an object"),
        ("schema", "false", "no value"),
        ("schema", '{"not": {}}', "Unimplemented"),
        ("schema", '{"$ref": "http://localhost:1/x"}', "not fetch"),
        ("schema", '{"type": "string", "pattern": "a(?=b)"}', "look-around"),
        ("grammar", "start: bar", "bar"),
        ("grammar", "start: <|im_end|>", "special token"),
        ("grammar", '%llguidance {}\nstart: "a"', "options"),
    ],
)
def test_refused(byte_compiler: Compiler, kind: str, value: str | tuple[str, ...], says: str) -> None:
    start = time.monotonic()
    with pytest.raises(ConstraintError, match=says) as caught:
        byte_compiler.compile(Constraint(kind, value))  # type: ignore[arg-type]  # kinds from the table
    assert len(str(caught.value)) < 1000
    assert "backtrace" not in str(caught.value)
    assert time.monotonic() - start < 3


def test_no_choices_and_dead_ends() -> None:
    compiler = Compiler([b"a", b"b", b""], [2])
    with pytest.raises(UsageError, match="at least one"):
        compiler.compile(Constraint("choices", ()))
    with pytest.raises(ConstraintError, match="no token of this vocabulary"):
        compiler.compile(regex("c"))
    matcher = compiler.compile(regex("ac|b"))
    assert matcher.accept(0)
    with pytest.raises(ConstraintError, match="dead end"):
        matcher.mask()
    endless = Compiler([b"a", b"b"], [])
    assert endless.table.rows.shape[1] == 1
    matcher = endless.compile(regex("ab"))
    assert matcher.accept(0)
    assert matcher.accept(1)
    assert matcher.ended


def test_rows_are_shared_and_given_back(byte_compiler: Compiler) -> None:
    compiler = Compiler([bytes([byte]) for byte in range(256)] + [b""], [256])
    matchers = [compiler.compile(regex("a|b")) for _ in range(40)]
    for matcher in matchers:
        assert allowed(matcher) == {97, 98}
    assert len({matcher.row for matcher in matchers}) == 40
    assert all((compiler.table.rows[matcher.row] == matchers[0].mask()).all() for matcher in matchers)
    n_rows = len(compiler.table.rows)
    matchers[0].close()
    matchers[0].close()
    del matchers, matcher
    kept = [compiler.compile(regex("a|b")) for _ in range(n_rows)]
    assert len({matcher.row for matcher in kept}) == n_rows == len(compiler.table.rows)
    table = MaskTable(64, 1)
    assert (table.rows.shape, table.take(), table.take(), table.rows.shape) == ((1, 2), 0, 1, (2, 2))


def test_compiled_once_and_bounded(byte_compiler: Compiler) -> None:
    first = byte_compiler.compile(regex("once[abc]{1,9}"))
    assert first.accept(ord("o"))
    assert isinstance(byte_compiler.compile(regex("once[abc]{1,9}")), ExternalMatcher)
    assert allowed(byte_compiler.compile(regex("once[abc]{1,9}"))) == {ord("o")}
    for n in range(140):
        byte_compiler.compile(Constraint("choices", (str(n),)))
    assert len(byte_compiler._memo) <= 128


def test_llguidance_is_loaded_late() -> None:
    code = (
        "import sys, nbsglang.engine.grammar.external; sys.exit('llguidance' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_translation_is_fast_and_short_for_plain_patterns() -> None:
    assert translate("ab[c-e]") == r"[\x{61}][\x{62}][\x{63}-\x{65}]"
    start = time.thread_time()  # its own work, whatever else the machine does; it takes a millisecond
    long = translate("[a-zA-Z0-9._%+\\-]+@[a-zA-Z0-9.\\-]+\\.[a-zA-Z]{2,10}")
    assert time.thread_time() - start < 0.15
    assert len(long) < 250
