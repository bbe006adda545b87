"""Stop strings and patterns: against a whole-text reference, for every way to cut the text."""

from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.engine.stops import StopMatcher
from nbsglang.errors import UsageError

PATTERNS = [
    "ab", "a+b", "a|aab", "abc|b", "a.*c", r"\n\n", "(?i)AB", "b$", r"\bab", r"a\b", "a(?!b)", "a(?=b)", "(?<=a)b",
    "(?<!a)b", "^ab", "(?m)^a", "(?:ab)++c", "(?>a|ab)c", r"(a|b)c\1", "a{2,3}?", "[^a]c", "(?<=ab)c|ca", r"c\B",
    "a(?=bc)b", "(?s)a..", "a(?!bc)b", "a(?!bc).b", r"(?=(a.c))\1", "(?>a(?=c)|ab)c", r"a\b\n", "a(?!b(?=c))b[$)]?c",
    r"[]$(]*a\Bb", "(?=ab)a|ca", r"(?<!a\b)b", r"(?:ab|(?<=a)\B)", "(?=a.c)(?!bc)",
]  # fmt: skip


def reference(text: str, stop: tuple[str, ...], patterns: tuple[str, ...], floor: int = 0) -> tuple[str, bool]:
    """Character by character, with `re` on the whole beginning."""
    for end in range(floor + 1, len(text) + 1):
        begins = [end - len(s) for s in stop if text[:end].endswith(s) and end - len(s) >= floor]
        for pattern in patterns:
            match = re.compile(pattern).search(text, floor, end)
            begins += [match.start()] if match else []
        if begins:
            return text[: min(begins)], True
    return text, False


def run(matcher: StopMatcher, pieces: list[str]) -> tuple[str, bool]:
    shown = ""
    for piece in pieces:
        text, stopped = matcher.push(piece)
        shown += text
        if stopped:
            break
    return shown + matcher.flush(), matcher.stopped


def cut(text: str, cuts: list[int]) -> list[str]:
    at = sorted({0, len(text), *(c % (len(text) + 1) for c in cuts)})
    return [text[a:b] for a, b in itertools.pairwise(at)]


texts = st.text("abc\nA ", max_size=24)
cuts = st.lists(st.integers(0, 100), max_size=12)


@given(texts, cuts, st.lists(st.text("abc\n", min_size=1, max_size=4), max_size=4).map(tuple))
@settings(max_examples=400, deadline=None)
def test_strings_do_not_depend_on_cuts(text: str, at: list[int], stop: tuple[str, ...]) -> None:
    assert run(StopMatcher(stop), cut(text, at)) == reference(text, stop, ())


@given(
    texts,
    cuts,
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2).map(tuple),
    st.sampled_from([(), ("cb",)]),
)
@settings(max_examples=1500, deadline=None)
def test_patterns_do_not_depend_on_cuts(
    text: str, at: list[int], patterns: tuple[str, ...], stop: tuple[str, ...]
) -> None:
    assert run(StopMatcher(stop, patterns), cut(text, at)) == reference(text, stop, patterns)


@given(texts, texts, cuts)
@settings(max_examples=200, deadline=None)
def test_unchecked_text_is_no_part_of_a_stop(head: str, text: str, at: list[int]) -> None:
    matcher = StopMatcher(("ab", "ca"), ("b+c",))
    assert matcher.push(head, check=False) == (head, False)
    shown, stopped = run(matcher, cut(text, at))
    assert (head + shown, stopped) == reference(head + text, ("ab", "ca"), ("b+c",), floor=len(head))


def test_what_is_held_and_what_matched() -> None:
    matcher = StopMatcher(("</s>",), (r"\d+\.",))
    assert matcher.push("x </") == ("x ", False)
    assert matcher.held == "</"
    assert matcher.push("b 12") == ("</b ", False)
    assert matcher.held == "12"
    assert matcher.push("3.4") == ("", True)
    assert (matcher.matched, matcher.text, matcher.held, matcher.flush()) == ("123.", "x </b ", "", "")
    assert matcher.push("more") == ("", True)


def test_text_that_cannot_become_a_stop_is_not_held() -> None:
    matcher = StopMatcher((), (r"\bEND", r"end$"))
    assert matcher.push("LEGEND of it").text == "LEGEND of it"
    assert matcher.push(" bend ") == (" b", True)
    matcher = StopMatcher((), (r"\bEND",))
    assert [matcher.push(text).text for text in ("x EN", "x", " END")] == ["x ", "ENx", " "]


@pytest.mark.parametrize(
    ("stop", "patterns", "named"), [(("",), (), "empty"), ((), ("a*",), "a*"), ((), ("a(",), "a("), ((), ("x|",), "x|")]
)
def test_refused(stop: tuple[str, ...], patterns: tuple[str, ...], named: str) -> None:
    with pytest.raises(UsageError, match=re.escape(named)):
        StopMatcher(stop, patterns)


def test_a_hard_pattern_is_refused_in_bounded_time() -> None:
    matcher = StopMatcher((), (r"(?:a+)+(?:a+)+[bc]d",))
    matcher.push("a" * 1000, check=False)
    start = time.monotonic()
    with pytest.raises(UsageError, match="takes more than"):
        matcher.push("a" * 1000)
    assert time.monotonic() - start < 5
