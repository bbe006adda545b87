"""Positions of a part with places for others, one by one: what follows each, as masks ask for it.

Not here: sets of positions (`plain.py`), masks (`composed.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.plain import ones
from nbsglang.engine.grammar.syntax import Ranges, called

_LONGEST = 24  # characters of a forced text at once: most tokens have fewer
_PART = re.compile("[\ud800-\udfff]")  # a place for another part


class Next(NamedTuple):
    """What follows a position: texts, no two of which begin alike, each with the positions that it leads to; other
    parts, with the positions after them; whether it may end."""

    texts: Sequence[tuple[str, Sequence[int]]]
    calls: Sequence[tuple[int, int]]
    ends: bool


class Spots:
    """The positions of an automaton whose sets are single characters and places for others; see `is_plain`.

    `of` gives those of a state.
    """

    def __init__(self, automaton: Automaton) -> None:
        assert automaton.program is not None, "an automaton without gates"
        self._automaton, self._program = automaton, automaton.program
        self.of = automaton.positions
        self._nexts: dict[int, Next] = {}
        self._texts: dict[int, str] = {}

    @cached_property
    def _chars(self) -> str:
        """The character of each position; before the first one and for other parts a surrogate."""
        of_set = [*(chr(ranges[0][0]) for ranges in self._automaton.sets), "\udfff"]
        return "".join(map(of_set.__getitem__, self._program.set_ids.tolist()))

    @cached_property
    def _stops(self) -> bytearray:
        """Whether a position is one that no character must follow at the next one, for each: 1 or 0."""
        stops = bytearray(self._program.root.size)
        for at in self.forks:
            stops[at] = 1
        for part in _PART.finditer(self._chars, 1):
            stops[part.start() - 1] = 1
        return stops

    @cached_property
    def forks(self) -> Sequence[int]:
        """The positions that not just the next one follows."""
        root = self._program.root
        return ones(root.alone ^ ((1 << root.size) - 1))

    @cached_property
    def calls(self) -> Sequence[tuple[int, int]]:
        """The positions of other parts, with the numbers of these."""
        numbers = ((part.start(), called(ord(part.group()))) for part in _PART.finditer(self._chars, 1))
        return [(at, number) for at, number in numbers if number is not None]

    def text(self, position: int) -> str:
        """The text that must follow a position, as far as that is one position after the other, or a part of it.

        It leads to the position as many places on.
        """
        found = self._texts.get(position)
        if found is None:
            end = self._stops.find(1, position, position + _LONGEST)
            found = self._chars[position + 1 : (end if end >= 0 else position + _LONGEST) + 1]
            self._texts[position] = found
        return found

    def next(self, position: int) -> Next:
        """What follows a position."""
        found = self._nexts.get(position)
        if found is None:
            if self._program.root.alone >> position & 1:
                found = self._made([position + 1], ends=False)
            else:
                follow, ends = self._automaton.advanced(position)
                found = self._made(ones(follow), ends)
            self._nexts[position] = found
        return found

    def _made(self, follow: Sequence[int], ends: bool) -> Next:
        together: dict[str, list[int]] = {}
        calls: list[tuple[int, int]] = []
        for at in follow:
            char = self._chars[at]
            number = called(ord(char))
            if number is None:
                together.setdefault(char, []).append(at)
            else:
                calls.append((number, at))
        texts: list[tuple[str, Sequence[int]]] = []
        for char, some in together.items():
            more = _beginning([self.text(at) for at in some])
            texts.append((char + more, tuple([at + len(more) for at in some])))
        return Next(tuple(texts), tuple(calls), ends)


def _beginning(texts: list[str]) -> str:
    """What all texts begin with."""
    low, high = min(texts), max(texts)
    return next((low[:n] for n, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), low)


def is_plain(automaton: Automaton) -> bool:
    """Whether all sets of an automaton are single characters or places for others, and it has no gates."""
    return automaton.program is not None and all(map(_is_single, automaton.sets))


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
