"""Position automata in blocks: which characters of a pattern can follow which, for sets of them at once.

Every character of a pattern has a position (in the repeats as often as it may occur), a set of positions is the bits of
an integer, and a block is a part of the pattern with its positions numbered from 0. Blocks do not write repeats out:
`(xy?){2,40}` has one block of `xy?`, which is asked for each copy that is active.

Parts of width zero (anchors, lookarounds) are gates: a gate is open or shut between two characters, and `gates` says
which are open, as bits. A block asks for no more of them than it has.

Not here: what lies in one line (`runs.py`), how blocks are made of nodes (`build.py`), what opens a gate
(`guarded.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Protocol


class Block(Protocol):
    """A part of a pattern with `size` positions, and with the gates that are the bits of `gates`."""

    size: int
    gates: int

    def first(self, gates: int) -> int:
        """The positions that its texts can begin at."""
        ...

    def empty(self, gates: int) -> bool:
        """Whether it has the empty text."""
        ...

    @property
    def alone(self) -> int:
        """Positions at which no text ends, and which the next position follows and no other, whatever the gates."""
        ...

    def advance(self, bits: int, gates: int) -> tuple[int, bool]:
        """The positions that can follow these, and whether its texts can end at one of these."""
        ...


class Gate:
    """No position: the empty text, where the gate is open."""

    alone = 0  # see `Block.alone`

    def __init__(self, gate: int) -> None:
        self.size = 0
        self.gates = 1 << gate

    def first(self, gates: int) -> int:
        """See `Block.first`."""
        return 0

    def empty(self, gates: int) -> bool:
        """See `Block.empty`."""
        return bool(gates & self.gates)

    def advance(self, bits: int, gates: int) -> tuple[int, bool]:
        """See `Block.advance`."""
        raise AssertionError("a gate has no positions")


class Row:
    """Blocks one after the other."""

    def __init__(self, parts: Sequence[Block]) -> None:
        self.parts = parts
        self.offsets = list(accumulate((part.size for part in parts), initial=0))
        self.size = self.offsets.pop()
        self.gates = _gates(parts)
        self._rests: dict[tuple[int, int], tuple[int, bool]] = {}

    @cached_property
    def alone(self) -> int:
        """See `Block.alone`."""
        return _alone(self.parts, self.offsets)

    def first(self, gates: int) -> int:
        """See `Block.first`."""
        return self.rest(0, gates & self.gates)[0]

    def empty(self, gates: int) -> bool:
        """See `Block.empty`."""
        return self.rest(0, gates & self.gates)[1]

    def advance(self, bits: int, gates: int) -> tuple[int, bool]:
        """See `Block.advance`."""
        follow, ends = 0, False
        while bits:
            at, part, offset, bits, rest = _split(bits, self.parts, self.offsets)
            moved, done = part.advance(bits, gates)
            follow |= moved << offset
            if done:
                begun, through = self.rest(at + 1, gates & self.gates)
                follow |= begun
                ends = ends or through
            bits = rest
        return follow, ends

    def rest(self, at: int, gates: int) -> tuple[int, bool]:
        """Where the parts from `at` on can begin, and whether all of them have the empty text."""
        end = at
        while end < len(self.parts) and (end, gates) not in self._rests and self.parts[end].empty(gates):
            end += 1
        known = (0, True) if end == len(self.parts) else self._rests.get((end, gates))
        if known is None:
            known = self.parts[end].first(gates) << self.offsets[end], False
            self._rests[end, gates] = known
        for index in range(end - 1, at - 1, -1):
            known = known[0] | self.parts[index].first(gates) << self.offsets[index], known[1]
            self._rests[index, gates] = known
        return known


class Fork:
    """One of the blocks."""

    def __init__(self, parts: Sequence[Block]) -> None:
        self.parts = parts
        self.offsets = list(accumulate((part.size for part in parts), initial=0))
        self.size = self.offsets.pop()
        self.gates = _gates(parts)
        self._firsts: dict[int, int] = {}

    @cached_property
    def alone(self) -> int:
        """See `Block.alone`."""
        return _alone(self.parts, self.offsets)

    def first(self, gates: int) -> int:
        """See `Block.first`."""
        known = self._firsts.get(gates & self.gates)
        if known is None:
            known = 0
            for part, offset in zip(self.parts, self.offsets, strict=True):
                known |= part.first(gates) << offset
            self._firsts[gates & self.gates] = known
        return known

    def empty(self, gates: int) -> bool:
        """See `Block.empty`."""
        return any(part.empty(gates) for part in self.parts)

    def advance(self, bits: int, gates: int) -> tuple[int, bool]:
        """See `Block.advance`."""
        follow, ends = 0, False
        while bits:
            _, part, offset, bits, rest = _split(bits, self.parts, self.offsets)
            moved, done = part.advance(bits, gates)
            follow |= moved << offset
            ends = ends or done
            bits = rest
        return follow, ends


class Loop:
    """A block that is not empty whatever the gates, so many times; its copies lie one after the other."""

    def __init__(self, part: Block, least: int, most: int | None) -> None:
        self.part = part
        # With the empty text in the part, fewer times are as good. If a gate must open for it, they are not.
        self.least = 0 if part.empty(0) else least
        self.is_endless = most is None
        self.n_copies = max(self.least, 1) if most is None else most
        self.size = part.size * self.n_copies
        self.gates = part.gates

    @cached_property
    def alone(self) -> int:
        """See `Block.alone`."""
        width = self.part.size
        return self.part.alone * (((1 << self.size) - 1) // ((1 << width) - 1)) if self.part.alone else 0

    def first(self, gates: int) -> int:
        """See `Block.first`."""
        return self.enter(0, gates)[0]

    def empty(self, gates: int) -> bool:
        """See `Block.empty`."""
        return self.least == 0 or self.part.empty(gates)

    def advance(self, bits: int, gates: int) -> tuple[int, bool]:
        """See `Block.advance`."""
        follow, ends, copy, width = 0, False, 0, self.part.size
        while bits:
            skipped = _low(bits) // width
            copy += skipped
            bits >>= skipped * width
            moved, done = self.part.advance(bits & ((1 << width) - 1), gates)
            follow |= moved << copy * width
            if done:
                begun, through = self.enter(copy + 1, gates)
                follow |= begun
                ends = ends or through
            copy += 1
            bits >>= width
        return follow, ends

    def enter(self, copy: int, gates: int) -> tuple[int, bool]:
        """Where the copies from this one on can begin, and whether the text can end before it."""
        begun, width = self.part.first(gates), self.part.size
        if copy >= self.least:  # to pass through a copy that need not be is never better than to stop
            if copy == self.n_copies:
                return (begun << (copy - 1) * width if self.is_endless else 0), True
            return begun << copy * width, True
        is_empty, follow = self.part.empty(gates), 0
        for possible in range(copy, self.least if is_empty else copy + 1):
            follow |= begun << possible * width
        return follow, is_empty


def _split(bits: int, parts: Sequence[Block], offsets: Sequence[int]) -> tuple[int, Block, int, int, int]:
    """The first part that has one of the bits: its index, itself, its offset, its own bits, and the other bits."""
    at = bisect_right(offsets, _low(bits)) - 1
    part, offset = parts[at], offsets[at]
    end = offset + part.size
    above = bits >> end
    return at, part, offset, (bits >> offset) ^ (above << part.size), above << end


def _low(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _alone(parts: Sequence[Block], offsets: Sequence[int]) -> int:
    alone = 0
    for part, offset in zip(parts, offsets, strict=True):
        alone |= part.alone << offset
    return alone


def _gates(parts: Sequence[Block]) -> int:
    gates = 0
    for part in parts:
        gates |= part.gates
    return gates
