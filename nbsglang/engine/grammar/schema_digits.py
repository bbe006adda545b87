"""Decimal numbers within bounds, digit by digit.

A number is written with `n_whole` digits before its point and at most `n_parts` after it. Bounds are such digits too;
a text is within one as soon as one of its digits is better than the bound's, and until then it has the same digits.

Not here: signs, open bounds and steps (`schema_numbers.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from nbsglang.engine.grammar.syntax import Alt, Chars, Empty, Node, Repeat, Seq, text

DIGIT = Chars(((0x30, 0x39),))
_ZERO = Chars(((0x30, 0x30),))


@dataclass(frozen=True)
class Digits:
    """The texts of numbers that have `n_whole` digits before the point; the first is no 0 unless it is the only one."""

    n_whole: int
    n_parts: int

    def within(self, low: int | None, high: int | None) -> Node:
        """The numbers from `low` to `high`, which count units of the last place that there can be."""
        lows = None if low is None else self._digits(low)
        highs = None if high is None else self._digits(high)
        if lows is None or highs is None:
            if lows is not None:
                return Alt(tuple(self._above(lows, 0)))
            return Alt(tuple(self._below(highs, 0))) if highs is not None else self._any()
        at = next((k for k in range(len(lows)) if lows[k] != highs[k]), None)
        if at is None:
            return self._equal(lows, 0)
        between = self._digit(at, int(lows[at]) + 1, int(highs[at]) - 1)
        ways = [Seq((between, self._rest(at + 1)))] if between is not None else []
        above, below = self._above(lows, at + 1), self._below(highs, at + 1)
        ways.append(Seq((self._same(lows, at, at + 1), Alt(tuple(above)))))
        ways.append(Seq((self._same(highs, at, at + 1), Alt(tuple(below)))))
        prefix, found = self._same(lows, 0, at), Alt(tuple(ways))
        return Alt((Seq((prefix, found)), *self._ends(lows, at)))

    def _digits(self, value: int) -> str:
        return str(value).zfill(self.n_whole + self.n_parts)

    def _any(self) -> Node:
        first = self._digit(0, 0, 9)
        assert first is not None, "there are digits"
        return Seq((first, self._rest(1)))

    def _above(self, bound: str, start: int) -> list[Node]:
        """The rests, from digit `start` on, of texts that are the bound's until there and not below it in all."""
        ways: list[Node] = []
        for at in range(start, len(bound)):
            better = self._digit(at, int(bound[at]) + 1, 9)
            if better is not None:
                ways.append(Seq((self._same(bound, start, at), better, self._rest(at + 1))))
        return [*ways, self._equal(bound, start)]

    def _below(self, bound: str, start: int) -> list[Node]:
        """The rests, from digit `start` on, of texts that are the bound's until there and not above it in all."""
        ways: list[Node] = []
        for at in range(start, len(bound)):
            better = self._digit(at, 0, int(bound[at]) - 1)
            if better is not None:
                ways.append(Seq((self._same(bound, start, at), better, self._rest(at + 1))))
        for end in range(max(start, self.n_whole), len(bound)):
            if bound[end:].strip("0"):
                ways.append(self._same(bound, start, end))
        return [*ways, self._equal(bound, start)]

    def _ends(self, bound: str, most: int) -> list[Node]:
        """Texts of no more digits than `most` that equal the bound as zeros at its end are left out."""
        ends = range(self.n_whole, most + 1)
        return [self._same(bound, 0, end) for end in ends if not bound[end:].strip("0")]

    def _equal(self, bound: str, start: int) -> Node:
        """The rests of texts that equal the bound; zeros at the end may be left out."""
        needed = max(start, self.n_whole, len(bound.rstrip("0")))
        zeros = len(bound) - needed
        same = self._same(bound, start, needed)
        if not zeros:
            return same
        if needed > self.n_whole:
            return Seq((same, Repeat(_ZERO, 0, zeros)))
        return Seq((same, Repeat(Seq((text("."), Repeat(_ZERO, 1, zeros))), 0, 1)))

    def _same(self, bound: str, start: int, end: int) -> Node:
        """The digits of the bound from one to before another, with the point where it is among them."""
        if start <= self.n_whole < end:
            return text(f"{bound[start : self.n_whole]}.{bound[self.n_whole : end]}")
        return text(bound[start:end])

    def _digit(self, at: int, first: int, last: int) -> Node | None:
        """A digit of a range, after the point if it is the first there; None if there is none."""
        if at == 0 and self.n_whole > 1:
            first = max(first, 1)
        if first > last:
            return None
        digit = Chars(((0x30 + first, 0x30 + last),))
        return Seq((text("."), digit)) if at == self.n_whole else digit

    def _rest(self, at: int) -> Node:
        """Any digits from one on."""
        n_left = self.n_whole - at
        if n_left < 0:
            return Repeat(DIGIT, 0, n_left + self.n_parts) if n_left + self.n_parts else Empty()
        parts: list[Node] = [Repeat(DIGIT, n_left, n_left)] if n_left else []
        if self.n_parts:
            parts.append(Repeat(Seq((text("."), Repeat(DIGIT, 1, self.n_parts))), 0, 1))
        return Seq(tuple(parts))
