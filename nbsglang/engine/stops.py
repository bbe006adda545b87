"""Stop strings and stop patterns over text that arrives in pieces.

The text is judged as though its characters came one by one: the match that is complete first ends it, among those
the one that begins first, and the text is cut where that match begins. So the result does not depend on how the
text was cut into tokens. Text that may still become part of a match is held back.

Not here: stop tokens and EOS, which are ids (the engine compares them).
"""

from __future__ import annotations

import time
from typing import NamedTuple

import regex  # type: ignore[import-untyped]  # has no stubs of its own

from nbsglang.errors import UsageError

WORK_S = 0.25  # for all patterns in one push; beyond that a pattern is refused

# Where text that is added can undo a match, or a partial match cannot be trusted; such text is then held back whole.
_ODD = regex.compile(r"\(\?(?:[>(&R]|P>|[-+]?\d|[a-zA-Z]*[rbepx])|[*+?}]\+|\\[GKXR]|\{[^}]*[<>=~]")
# One unit of a pattern: an escape, a class, an assertion about what follows, a bracket, or any other character.
_UNIT = regex.compile(r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[=!]|\(|\)|.")
_NEVER = "[\U0010fffe\U0010ffff]"  # after a relaxed pattern: whole matches, which hide partial ones, become partial


class Stopped(NamedTuple):
    """What a push gives: text that is safe to show, and whether a stop was found."""

    text: str
    stopped: bool


class StopMatcher:
    """Watches one text for `stop` strings and matches of `stop_regex` (Python's syntax, by the `regex` module).

    Raises UsageError for an empty stop string and a pattern that does not compile or matches the empty text.
    """

    def __init__(self, stop: tuple[str, ...] = (), stop_regex: tuple[str, ...] = ()) -> None:
        if "" in stop:
            raise UsageError('a stop string is empty ("" would end every text at once); leave it out')
        self._stop = tuple(dict.fromkeys(stop))
        self._patterns = [_compile(pattern) for pattern in dict.fromkeys(stop_regex)]
        self._text = ""  # patterns may look behind, so all of it is kept
        self._from = 0  # no match can begin before this character
        self._shown = 0
        self._cut: int | None = None
        self.matched: str | None = None

    @property
    def stopped(self) -> bool:
        """A stop was found; `matched` is what it was, and no more text comes out."""
        return self._cut is not None

    @property
    def held(self) -> str:
        """The text that is held back."""
        return "" if self.stopped else self._text[self._shown :]

    @property
    def text(self) -> str:
        """All text so far, up to the stop if there was one."""
        return self._text[: self._cut]

    def push(self, text: str, check: bool = True) -> Stopped:
        """Append text. Without `check` no stop is looked for, and no later one can begin in this text.

        Raises UsageError when a pattern takes too long on this text.
        """
        if self.stopped:
            return Stopped("", True)
        start = len(self._text)
        self._text += text
        if not check:
            self._from = len(self._text)
            return Stopped(self._show(len(self._text)), False)
        deadline = time.monotonic() + WORK_S
        found = [self._find_string(start), *(self._find_pattern(each, start, deadline) for each in self._patterns)]
        match = min(filter(None, found), default=None)
        if match is not None:
            end, begin = match
            self._cut = max(begin, self._shown)
            self.matched = self._text[begin:end]
            return Stopped(self._show(self._cut), True)
        self._from = min(self._string_hold(), self._pattern_hold(deadline))
        return Stopped(self._show(self._from), False)

    def flush(self) -> str:
        """The end of the text: what was held back, which no longer can become a stop."""
        return "" if self.stopped else self._show(len(self._text))

    def _show(self, end: int) -> str:
        text = self._text[self._shown : end]
        self._shown = max(self._shown, end)
        return text

    def _find_string(self, start: int) -> tuple[int, int] | None:
        """The end and beginning of the first string that is complete after character `start`."""
        found = []
        for stop in self._stop:
            begin = self._text.find(stop, max(self._from, start + 1 - len(stop)))
            if begin >= 0:
                found.append((begin + len(stop), begin))
        return min(found, default=None)

    def _find_pattern(self, pattern: _Pattern, start: int, deadline: float) -> tuple[int, int] | None:
        """The first end after `start` such that the text up to it holds a match, and where that match begins."""
        first, last = start + 1, len(self._text)
        if pattern.monotonic:  # then a text without a match has no beginning with one
            match = self._search(pattern.compiled, last, deadline)
            if match is None:
                return None
            while first < last:
                middle = (first + last) // 2
                if self._search(pattern.compiled, middle, deadline) is None:
                    first = middle + 1
                else:
                    last = middle
        for end in range(first, last + 1):
            match = self._search(pattern.compiled, end, deadline)
            if match is not None:
                return end, match.start()
        return None

    def _string_hold(self) -> int:
        """Where the longest end of the text begins that is a beginning of a stop string."""
        size = len(self._text)
        begins = (
            begin
            for stop in self._stop
            for begin in range(max(self._from, size + 1 - len(stop)), size)
            if self._text.endswith(stop[: size - begin])
        )
        return min(begins, default=size)

    def _pattern_hold(self, deadline: float) -> int:
        """Where the longest end of the text begins that may become a match of a pattern."""
        hold = len(self._text)
        for pattern in self._patterns:
            if pattern.relaxed is None:
                return self._from
            match = self._search(pattern.relaxed, len(self._text), deadline, partial=True)
            if match is not None:
                hold = min(hold, match.start())
        return hold

    def _search(
        self, pattern: regex.Pattern[str], end: int, deadline: float, partial: bool = False
    ) -> regex.Match[str] | None:
        left = deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            return pattern.search(self._text, self._from, end, partial=partial, timeout=left)
        except TimeoutError:
            raise UsageError(
                f"stop_regex {pattern.pattern!r} takes more than {WORK_S} s on the text so far; "
                "repeats within repeats are a usual reason"
            ) from None


class _Pattern(NamedTuple):
    compiled: regex.Pattern[str]
    monotonic: bool  # a match stays one, whatever text is added
    relaxed: regex.Pattern[str] | None  # a partial match of it begins where one of `compiled` may begin, or earlier


def _compile(pattern: str) -> _Pattern:
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise UsageError(f"stop_regex {pattern!r} is not a regular expression: {error}") from None
    if compiled.search("") is not None:
        raise UsageError(f"stop_regex {pattern!r} matches the empty text, which would end every text at once")
    if _ODD.search(pattern) or compiled.flags & regex.VERBOSE:
        return _Pattern(compiled, False, None)
    text, n_fickle = _relax(pattern)
    if not n_fickle:
        return _Pattern(compiled, True, compiled)
    try:
        # Within a negative lookbehind more to match would mean more to refuse.
        return _Pattern(compiled, False, None if "(?<!" in pattern else regex.compile(f"(?:{text}){_NEVER}"))
    except regex.error:  # such as a reference to a group inside of what is left out
        return _Pattern(compiled, False, None)


def _relax(pattern: str) -> tuple[str, int]:
    """The pattern with what partial matching gets wrong made harmless, and how many parts may change their mind.

    At the end of the text the regex module takes a word boundary at its word and gives up, though it may hold when
    more has come: there it is let through. Negative lookaheads are left out.
    """
    parts = []
    depth, dropped, n_fickle = 0, 0, 0  # open brackets; the depth of the lookahead that is being left out, or 0
    for unit in _UNIT.findall(pattern):
        depth += unit.startswith("(")
        if not dropped:
            boundary = regex.fullmatch(r"\\[bBmM]", unit)
            n_fickle += unit in ("(?!", "$", r"\Z", r"\z") or bool(boundary)
            dropped = depth if unit == "(?!" else 0
            parts.append("(?:)" if dropped else rf"(?:{unit}|\Z)" if boundary else unit)
        elif unit == ")" and depth == dropped:
            dropped = 0
        depth -= unit == ")"
    return "".join(parts), n_fickle
