"""Positions of a part with places for others, one by one: what follows each, as masks ask for it.

Not here: sets of positions (`plain.py`), masks (`composed.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.plain import ones
from nbsglang.engine.grammar.syntax import Ranges, called

NO_CHAR = -1


class Next(NamedTuple):
    """What follows a position: characters, as code points, and other parts, with the positions; whether it may end."""

    chars: Sequence[tuple[int, int]]
    calls: Sequence[tuple[int, int]]
    ends: bool


class Spots:
    """The positions of an automaton whose sets are single characters and places for others; see `is_plain`.

    `forced` is the character that must follow each, at the next position; `NO_CHAR` where there is no such one.
    """

    def __init__(self, automaton: Automaton) -> None:
        program = automaton.program
        assert program is not None, "an automaton without gates"
        self._automaton = automaton
        points = np.array([ranges[0][0] for ranges in automaton.sets], np.int64)
        self._points: list[int] = np.append(points, NO_CHAR)[program.set_ids].tolist()  # of each position
        size = program.root.size
        bits = np.frombuffer(program.root.alone.to_bytes((size + 7) // 8, "little"), np.uint8)
        self._is_alone: list[int] = np.unpackbits(bits, count=size, bitorder="little").tolist()
        self.forced = [
            point if is_alone and called(point) is None else NO_CHAR
            for is_alone, point in zip(self._is_alone, self._points[1:], strict=False)
        ] + [NO_CHAR]
        self._nexts: dict[int, Next] = {}
        self._states: dict[int, int] = {}
        self._of: dict[int, Sequence[int]] = {}

    def of(self, state: int) -> Sequence[int]:
        """The positions of a state."""
        found = self._of.get(state)
        if found is None:
            found = self._of[state] = ones(self._automaton.positions(state))
        return found

    def state(self, position: int) -> int:
        """The state of one position."""
        found = self._states.get(position)
        if found is None:
            found = self._states[position] = self._automaton.state_at(position)
        return found

    def next(self, position: int) -> Next:
        """What follows a position."""
        found = self._nexts.get(position)
        if found is None:
            if self._is_alone[position]:
                found = self._made([position + 1], ends=False)
            else:
                follow, ends = self._automaton.advanced(position)
                found = self._made(ones(follow), ends)
            self._nexts[position] = found
        return found

    def _made(self, follow: Sequence[int], ends: bool) -> Next:
        chars: list[tuple[int, int]] = []
        calls: list[tuple[int, int]] = []
        for at in follow:
            point = self._points[at]
            number = called(point)
            if number is None:
                chars.append((point, at))
            else:
                calls.append((number, at))
        return Next(chars, calls, ends)


def is_plain(automaton: Automaton) -> bool:
    """Whether all sets of an automaton are single characters or places for others, and it has no gates."""
    return automaton.program is not None and all(map(_is_single, automaton.sets))


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
