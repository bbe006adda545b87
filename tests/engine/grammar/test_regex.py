"""The automaton of a regular expression has the language of `re.fullmatch`, and hands out live states only."""

from __future__ import annotations

import itertools
import json
import random
import re
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import regex as other_re
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.limits import Limits
from nbsglang.engine.grammar.regex import parse
from nbsglang.engine.grammar.syntax import Ahead, Alt, Behind, Boundary, Chars, Edge, Empty, Node, Repeat, Seq, text
from nbsglang.errors import ConstraintError

CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))
EXTRAS: list[str] = CASES["extra_patterns"]
CHARACTERS = 'aAbBcCdkKſsSßẞ0٣_-. \n\t\x00\x85\u2028éÉàÿÝİi̇ıI日😀[]+*/٠\U0010ffff"\\ыz1x'
GATED = [
    r"a(?=b)b", r"(?=.*\d)(?=.*[a-z])[a-z\d]{3,5}", "(?!ab)[ab]{2}", r"\bab\b", r"a\b b", "(?m)^a$\n^b$", "a$\n?",
    "a^b|b", r"(?:(?!--).)*", "(?<=a)b|ab", "a(?<=a)b", "a(?<!a)b|b", "(?!(?=a)a).|aa", "(?:(?=a|b)[ab])+(?!-)",
    "(?s).*(?<=ab)", r"\w+\b.*", r"(?:a\b|\B-)+", r"(?a:\b)é*a", r"(?:^|b)a", r"(?m:(?:^a$\n?)+)", "(?<!^)a|b",
    r"(?:a(?=b|$)|b(?!b))+", r"(?=(?!.*--)[ab-]*).{,3}", r"(?<=\bab)-|ab-", "(?:(?=a).|(?=b)..|(?=-)...)+",
    "(?:^a)*", "(?:a$)+b*", r"(?:a|\b){2,4}-?", r"(?:a|\Bb|^){3,}", r"[\w-]\b.?", r"(?a)é?(?u:\w)\W",
    r"(?:(?=.*b)a|(?!.*a)b)+", r"(?<!a)(?<!b).[ab]", r"\Aa?\Z|(?:\Z|b)", r"(?:(?:(?!ab).)*(?:ab|$)){2}",
]  # fmt: skip
BACKREFERENCES = [
    r"(a)\1", r"([ab])-\1", r"(['\"])(?:(?!\1).)*\1", "(?P<n>a|ab)(?P=n)b?", r"(a|b)(?:\1-)*(\1|-)\2", r"(-|)a\1",
    r"((a)|b)\1", r"(?:([ab])\1)+", r"((([ab])))\3", r"([ab])(?=.\1).*", r"(a)\1|(b)\2", r"([ab])(?i:[ab])\1$",
    r"(?i)([-_])a\1", r"(?:([ab])(?<=\1)-)*", r"((?:a|b){1,2})\1", r"(a??)b\1", r"([ab])(?:(?:\1|-)a)+", r"(a|aa)a\1$",
    r"^([ab]) ?\1\b.?",
]  # fmt: skip
EMPTY = ["a^b", r"x\B", r"$b", r"(?=a)b", r"a(?<=b)", "(?!)", "(?=.*a)b*", r"[^\s\S]", "a(?!b)b", "\ud800"]


def automaton(pattern: str) -> Automaton:
    return Automaton(parse(pattern))


def automaton_or_none(pattern: str) -> Automaton | None:
    """None where the pattern is said to match nothing."""
    try:
        return automaton(pattern)
    except ConstraintError as error:
        if "no text at all" not in str(error):
            raise
        return None


def all_rows(machine: Automaton, n_rows: int = 100_000) -> None:
    """Ask for the rows of all states, in the order in which they are found."""
    state = 0
    while state < min(machine.n_states, n_rows):
        machine.row(state)
        state += 1


def step(machine: Automaton, state: int, text: str) -> int:
    for char in text:
        if state >= 0:
            state = int(machine.row(state)[machine.class_of[ord(char)]])
    return state


def fullmatch(machine: Automaton, text: str) -> bool:
    state = step(machine, machine.start, text)
    return state >= 0 and machine.accepts(state)


class Speller:
    """Draws texts that an automaton's rows allow, and the shortest way on to a match."""

    def __init__(self, machine: Automaton, draw: random.Random) -> None:
        self.machine = machine
        self.draw = draw
        self.chars: list[list[str]] = [[] for _ in range(machine.n_classes)]
        for char in CHARACTERS:
            self.chars[machine.class_of[ord(char)]].append(char)
        for class_id in range(machine.n_classes):
            if not self.chars[class_id]:
                self.chars[class_id] = [chr(np.argmax(machine.class_of == class_id))]

    def text(self, longest: int) -> str:
        """The text of a walk through live states; a prefix of a match."""
        state, text = self.machine.start, ""
        for _ in range(self.draw.randint(0, longest)):
            row = self.machine.row(state)
            ahead = np.nonzero(row >= 0)[0].tolist()
            if not ahead:
                break
            class_id = self.draw.choice(ahead)
            text += self.draw.choice(self.chars[class_id])
            state = int(row[class_id])
        return text

    def rest(self, state: int) -> str:
        """A shortest text from a state to a match; fails if there is none."""
        ways, seen = [(state, "")], {state}
        for at, so_far in ways:
            if self.machine.accepts(at):
                return so_far
            for class_id, target in enumerate(self.machine.row(at).tolist()):
                if target >= 0 and target not in seen:
                    seen.add(target)
                    ways.append((target, so_far + self.chars[class_id][0]))
        raise AssertionError(f"no match can be reached after state {state}")

    def mutations(self, text: str) -> list[str]:
        """Texts that are nearly this one."""
        at = self.draw.randrange(len(text) + 1)
        char = self.draw.choice(CHARACTERS)
        return [
            text[:at] + char + text[at:],
            text[:at] + text[at + 1 :],
            text[:at] + char + text[at + 1 :],
            text[:-1],
            text + "\n",
            "\n" + text,
            text + text,
            text.swapcase(),
        ]


def check(pattern: str, *texts: str, n_texts: int = 25) -> None:
    """The automaton agrees with `re.fullmatch` on the texts, on texts of its own and on some by chance."""
    compiled, draw = re.compile(pattern), random.Random(pattern)
    tried = ["", *CHARACTERS, *texts]
    tried += ["".join(draw.choices(CHARACTERS, k=draw.randint(2, 5))) for _ in range(n_texts)]
    machine = automaton_or_none(pattern)
    if machine is None:
        assert not any(map(compiled.fullmatch, tried))
        return
    speller = Speller(machine, draw)
    for _ in range(n_texts):
        begun = speller.text(12)
        whole = begun + speller.rest(step(machine, machine.start, begun))
        assert compiled.fullmatch(whole), whole
        tried += [begun, *speller.mutations(whole)]
    for matching in texts:
        tried += speller.mutations(matching)
    for some in tried:
        assert fullmatch(machine, some) == bool(compiled.fullmatch(some)), some


# ------------------------------------------------------------------------------------------ the language


@pytest.mark.parametrize("name", CASES["regexes"])
def test_cases(name: str) -> None:
    case = CASES["regexes"][name]
    assert fullmatch(automaton(case["pattern"]), case["text"])
    check(case["pattern"], "aaabbb" if name == "aaa" else case["text"])  # `re` would take for ever where the b's miss


@pytest.mark.filterwarnings("ignore:Possible nested set")
@pytest.mark.parametrize("pattern", EXTRAS)
def test_extras(pattern: str) -> None:
    check(pattern, "a", "ab", "aa", "aaa", "straße", "STRASSE", "a\n", "A", "ab" * 3, "b3", "a\u0301")


@pytest.mark.parametrize("pattern", [*GATED, *BACKREFERENCES])
def test_gates(pattern: str) -> None:
    check(pattern)
    machine = automaton(pattern)
    for size in range(5):
        for chars in itertools.product("ab-\n", repeat=size):
            some = "".join(chars)
            assert fullmatch(machine, some) == bool(re.fullmatch(pattern, some)), some


@pytest.mark.parametrize("pattern", EMPTY)
def test_no_text_at_all(pattern: str) -> None:
    assert not any(re.fullmatch(pattern, char) for char in ("", "a", "b", "x", "ab", "\n"))
    with pytest.raises(ConstraintError, match="no text at all"):
        automaton(pattern)


def test_the_test_suite_of_python() -> None:
    re_tests = pytest.importorskip("test.re_tests", reason="CPython's own tests are not here (libpython3-testsuite)")
    refused, patterns = [], list(EXTRAS)
    for pattern, some, *_ in re_tests.tests:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                re.compile(pattern)
            except re.error:
                continue
        patterns.append(pattern)
        try:
            check(pattern, some, n_texts=6)
        except ConstraintError as error:
            if not re.search(r"it has a (backreference|conditional group)", str(error)):
                raise
            refused.append(pattern)
    n_patterns, n_refused = len(set(patterns)), len(set(refused))
    assert n_patterns >= 300
    assert n_patterns - n_refused >= n_patterns * 290 / 317


def random_patterns(gates: bool) -> st.SearchStrategy[str]:
    """Patterns over a few characters; with gates also anchors, boundaries and lookarounds."""
    atoms = ["a", "b", "[ab]", "[^a]", ".", r"\w", r"\s", "é", "", r"\d", "A", "\n", "-"]
    bounds = ["*", "+", "?", "{2}", "{1,3}", "{,2}", "*?", "{0}", "{2,}", "??"]
    wrapped = ["(?:{})", "({})"]
    if gates:
        atoms += ["^", "$", r"\A", r"\Z", r"\b", r"\B", "(?m:^)", "(?m:$)", r"(?a:\b)", "(?<=a)", r"(?<!\b.)"]
        wrapped += ["(?={})", "(?!{})", "(?={})", "(?!{})"]
    wrapped += ["(?i:{})", "(?s:{})"] if gates else []
    return st.recursive(
        st.sampled_from(atoms),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(bounds)).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
            st.lists(inner, min_size=1, max_size=3).map("".join),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
            st.tuples(st.sampled_from(wrapped), inner).map(lambda pair: pair[0].format(pair[1])),
        ),
        max_leaves=8,
    )


@given(st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_random_patterns(data: st.DataObject) -> None:
    pattern = data.draw(random_patterns(gates=True))
    texts = data.draw(st.lists(st.text("abAé 1\n-", max_size=6), min_size=5, max_size=10))
    check(pattern, *texts, n_texts=4)


@given(st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_is_live_is_a_prefix_of_a_match(data: st.DataObject) -> None:
    pattern = data.draw(random_patterns(gates=False))
    machine, judge = automaton(pattern), other_re.compile(pattern)
    for some in data.draw(st.lists(st.text("abAé 1\n-", max_size=6), min_size=5, max_size=20)):
        is_prefix = judge.fullmatch(some, partial=True) is not None
        assert (step(machine, machine.start, some) >= 0) == is_prefix, some


@pytest.mark.parametrize("pattern", [*GATED, *BACKREFERENCES, r"(?=.*a)(?=.*b)[ab-]{,4}", "(?!.*aa)(?=.*b)[ab]{4}"])
def test_what_is_dead_is_no_prefix_of_a_match(pattern: str) -> None:
    machine = automaton(pattern)
    texts = ["".join(chars) for size in range(7) for chars in itertools.product("ab-", repeat=size)]
    matches = [some for some in texts if re.fullmatch(pattern, some)]
    for some in texts:
        if step(machine, machine.start, some) < 0:
            assert not any(match.startswith(some) for match in matches), some


# ------------------------------------------------------------------------------------------ the contract


def test_classes_and_rows() -> None:
    machine = automaton("[a-c]x|b.")
    classes = machine.class_of
    assert (classes.dtype, classes.shape, int(classes.max()) + 1) == (np.uint16, (0x110000,), machine.n_classes)
    assert classes[ord("a")] == classes[ord("c")] != classes[ord("b")]
    assert classes[ord("y")] == classes[ord("日")] != classes[ord("x")]
    assert classes[0xD800] == classes[0xDFFF] not in {classes[0xD7FF], classes[0xE000]}
    row = machine.row(machine.start)
    assert (row.dtype, row.shape, row.flags.writeable) == (np.int32, (machine.n_classes,), False)
    assert row[classes[0xD800]] == row[classes[ord("x")]] == -1
    assert machine.row(machine.start) is row
    assert not machine.live(-1)
    for pattern in ("ab", "a(?=b)b"):
        few = automaton(pattern)
        assert few.class_of[0xDABC] == few.class_of[ord("z")] or "(?" in pattern
        assert all(few.live(state) for state in range(few.n_states) if state in few.row(few.start))


def test_nodes_without_a_regular_expression() -> None:
    a, word = Chars(((97, 97),)), Chars(((97, 122),))
    node: Node = Seq(
        (
            Alt((text("ab"), Empty(), Alt(()))),
            Repeat(Seq((Boundary(word), a)), 1, 2),
            Ahead(Alt((text("-"), Edge(at_end=True)))),
            Repeat(text("-"), 0, None),
            Behind(text("--"), negative=True),
        )
    )
    machine = Automaton(node)
    for some in ("a", "a-", "a---", "aba", "ab-", "", "a--"):
        expected = bool(re.fullmatch(r"(ab|)(?:\ba){1,2}(?=-|\Z)-*(?<!--)", some))
        assert fullmatch(machine, some) == expected, some
    assert fullmatch(Automaton(Seq(())), "")
    assert fullmatch(Automaton(text("日x")), "日x")
    deep: Node = a
    for _ in range(5000):
        deep = Seq((deep,))
    assert fullmatch(Automaton(deep), "a")
    doubled: Node = Boundary(word)
    for _ in range(40):
        doubled = Seq((doubled, doubled))
    with pytest.raises(ConstraintError, match="positions"):
        Automaton(doubled)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("a(", "unterminated"),
        (r"[\1](a*)(?P<b>c)[(]\(?P=b\1", r"a backreference .* at position 25: '\\\\1'"),
        ("(?P<b>c+)(?P=b)", r"a backreference .* at position 9: '\(\?P=b\)'"),
        ("(a)?\\1", "a backreference"),
        ("(?:(a)|b)\\1", "a backreference"),
        ("(?i)(a)\\1", "a backreference"),
        ("(?=(a|ab))\\1c", "a backreference"),
        ("([a-z])\\1", "a backreference"),
        ("(.)|a\\1", "a backreference"),
        ("(a)?(?(1)b|c)", r"a conditional group \(\?\(1\)...\) at position 4"),
        (r"\(?>(?>a|ab)c", "an atomic group .* at position 4"),
        (r"[a++]\++a++", r"a possessive repeat at position 9: '\+\+'"),
        ("(?x) a # b*+\n c{2,}+", r"a possessive repeat at position 15: '\{2,\}\+'"),
        ("(?<=a(?=b))b", "a lookahead in a lookbehind at position 0"),
        ("(?<=a|bc)d", "look-behind requires fixed-width"),
        ("a{3,2}", "min repeat greater"),
        ("(?a)(?u)b", "incompatible"),
        ("(?L)b", "cannot use 'L' flag"),
        ("a{99999999999}", "too large"),
        ("(" * 5000 + "a" + ")" * 5000, "nested too deeply"),
        ("(" * 100 + "a" + "|b)*" * 100, "inside each other"),
        ("(?=" * 200 + "a" + ")" * 200 + "a", "inside each other"),
        ("((a{1000}){1000}){1000}", "1000000 positions"),
        ("a" * 100_000, "100000 positions"),
        (r"a{2000000000}", "2000000000 positions"),
        ("".join(f"[{chr(0x4E00 + 2 * n)}{chr(0x4E04 + 2 * n)}]" for n in range(9000)), "different classes"),
        ("(?:" + "|".join(f"(?={char})." for char in "abcdefghijklmnopqrst") + ")*", "steps of work"),
        ("a*(?<=" + "a" * 20_000 + ")b", "steps of work"),
    ],
)
def test_refused(pattern: str, says: str) -> None:
    start = time.thread_time()
    with pytest.raises(ConstraintError, match=says) as caught:
        all_rows(automaton(pattern), n_rows=1)
    assert len(str(caught.value)) < 1000
    assert time.thread_time() - start < 5


HARD = {
    "counts in counts": "((a{0,40}b?){0,40}c?){0,10}",
    "many subsets": "(a|b)*a(a|b){20}",
    "stars in stars": "((a*)*)*b",
    "many stars": "(?:(a*b*c*)*)" * 500,
    "many optional": "a?" * 5000,
    "a long text": "ab" * 24_999,
    "many classes": "[a-z]" * 20_000,
    "many choices": "|".join(chr(0x4E00 + n) * 2 for n in range(9000)),
    "no choices": "|" * 50_000,
    "many groups": "(a)" * 20_000,
    "many gates": r"(\b|\B)" * 4000 + "a",
    "a long repeat": ".{0,49000}",
    "many lookaheads": "".join(f"(?!.*{char})" for char in "abcdefghijklmnopqrst") + ".*",
    "lookaheads in lookaheads": "(?=" * 40 + "a" + ")" * 40 + "a",
    "lookaheads in a repeat": "(?:(?=(a|b)*a(a|b){12}c).)*.*",
    "a password": r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[^\w]).{8,64}",
}


@pytest.mark.parametrize("name", HARD)
def test_hard_patterns_end_in_bounded_time(name: str) -> None:
    start = time.thread_time()
    machine, draw = automaton(HARD[name]), random.Random(name)
    state = machine.start
    for _ in range(20):
        ahead = machine.row(state)
        ahead = ahead[ahead >= 0]
        if not len(ahead):
            break
        state = int(draw.choice(ahead))
    assert time.thread_time() - start < 6


def test_limits_of_states_and_memory() -> None:
    machine = Automaton(parse("(a|b)*a(a|b){20}"), Limits(states=500))
    with pytest.raises(ConstraintError, match="more than 500 states"):
        all_rows(machine)
    assert fullmatch(machine, "ab" * 3) is False  # what is known stays
    machine = Automaton(parse("(a|b)*a(a|b){20}"), Limits(memory=50_000))
    with pytest.raises(ConstraintError, match="more than 50000 bytes"):
        all_rows(machine)
    with pytest.raises(ConstraintError, match="11 positions"):
        Automaton(parse("a{11}"), Limits(positions=10))
    with pytest.raises(ConstraintError, match="more than 100 steps"):
        Automaton(parse("(?=.*b)a{50}b"), Limits(work=100))


def test_states_do_not_depend_on_the_order_of_questions() -> None:
    draw = random.Random(3)
    for pattern in (CASES["regexes"]["ip"]["pattern"], GATED[1], r"\b(?:a|ab|-)+\b"):
        one, other = automaton(pattern), automaton(pattern)
        assert one.n_classes == other.n_classes
        texts = ["".join(draw.choices("ab-12.", k=draw.randint(0, 9))) for _ in range(200)]
        verdicts = [fullmatch(one, some) for some in texts]
        assert [fullmatch(other, some) for some in reversed(texts)] == verdicts[::-1]


def test_counts_are_cheap() -> None:
    for pattern in (r"\w{3,40}", r"[\w\d\s]{1,16}", CASES["regexes"]["w_free"]["pattern"]):
        automaton(pattern)  # the classes of `re` are asked for once
        start = time.thread_time()
        machine = automaton(pattern)
        machine.row(machine.start)
        assert time.thread_time() - start < 0.02  # it takes half a millisecond
        assert machine.n_states < 100
