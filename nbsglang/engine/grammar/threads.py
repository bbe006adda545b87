"""Sets of positions that carry duties: how lookaheads are followed.

A thread is a set of positions of a program together with its duties: what the rest of the text must be, or must not be,
because a lookahead was passed on the way. A duty is a set of threads itself, in the program of the lookahead, so
lookaheads may stand in lookaheads and in repeats. What must not be is one set of threads for each program, as none of
them may come to an end.

Not here: which gates are open (`gaps.py`), states (`guarded.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from nbsglang.engine.grammar.limits import Meter
from nbsglang.engine.grammar.program import Program

_KNOWN = 4096  # results that are kept
_MOVED = 512  # of duties, which have many parts
MAIN = -1  # the program of the pattern itself; the others have the numbers of their gates


class Duty(NamedTuple):
    """What the rest of the text must be, or if `negative` must not be."""

    negative: bool
    threads: Threads


Duties: TypeAlias = frozenset[Duty]
_Same = TypeVar("_Same", "Threads", "Duty", "Duties")
_Ways: TypeAlias = list[tuple[int, int]]  # the lookaheads that are passed on a way, as bits, and where it leads


class Threads(NamedTuple):
    """Sets of positions of one program, each with its duties. Any of them may come to the end of the text."""

    program: int
    groups: frozenset[tuple[Duties, int]]


def begun(program: int) -> Threads:
    """The threads of a program before its first character."""
    return Threads(program, frozenset([(frozenset(), 1)]))


def weight(threads: Threads) -> int:
    """About how many bytes they take."""
    own = sum(100 + bits.bit_length() // 8 for _, bits in threads.groups)
    return 200 + own + sum(weight(duty.threads) for duties, _ in threads.groups for duty in duties)


class Walk:
    """Moves threads across one gap; `negative` says of each lookahead whether it is one that must not match."""

    def __init__(self, programs: Mapping[int, Program], negative: Mapping[int, bool], meter: Meter) -> None:
        self._programs = programs
        self._negative = negative
        self._meter = meter
        self._aheads = sum(1 << index for index in negative)
        self._ways: dict[tuple[int, int, int], _Ways] = {}
        self._reached: dict[tuple[int, int, int], int] = {}
        self._moved: dict[tuple[Threads, int, int], Threads] = {}
        self._same: dict[Any, Any] = {}

    def at_end(self, threads: Threads, gates: int) -> bool:
        """Whether one of the threads can end with the text, where these gates are open but for lookaheads."""
        for index, negative in self._negative.items():  # those inside of others come first
            gates |= (self._ends(begun(index), gates) != negative) << index
        return self._ends(threads, gates)

    def moves(self, threads: Threads, gates: int, classes: Container[int]) -> Iterable[tuple[Threads, Sequence[int]]]:
        """Where the threads may be after the next character, with those of some classes that lead there.

        Several may be the same. What `move` says of a class depends on the positions alone that it goes to, of those
        that the threads and their duties, old and new, can reach in their programs.
        """
        reached = dict.fromkeys([threads.program, *self._negative], 0)
        for index in self._negative:
            reached[index] = self._every(index, 1, gates)
        self._add_reached(threads, gates, reached)
        tables = [self._programs[program].by_class(bits) for program, bits in reached.items()]
        alike: dict[tuple[int, ...], list[int]] = {}
        for class_id in tables[0]:
            if class_id in classes:
                alike.setdefault(tuple([table.get(class_id, 0) for table in tables]), []).append(class_id)
        self._meter.spend(len(tables) + len(alike))
        for (own, *_), group in alike.items():
            if not self._negative:
                yield Threads(threads.program, frozenset([(frozenset(), own)])), group
            elif (after := self.move(threads, gates, group[0])).groups:
                yield after, group

    def _add_reached(self, threads: Threads, gates: int, reached: dict[int, int]) -> None:
        """Add the positions, by programs, at which threads and their duties may be after the next character."""
        for duties, bits in threads.groups:
            reached[threads.program] |= self._every(threads.program, bits, gates)
            for duty in duties:
                self._add_reached(duty.threads, gates, reached)

    def move(self, threads: Threads, gates: int, class_id: int) -> Threads:
        """Where the threads are after the next character, of this class; these gates are open but for lookaheads."""
        moved: dict[Duties, int] = {}
        wanted = self._programs[threads.program].of_class(class_id)
        self._meter.spend(1 + len(threads.groups))
        for duties, bits in threads.groups:
            for passed, follow in self._from(threads.program, bits, gates):
                if follow & wanted:
                    kept = self._kept(duties, passed, gates, class_id)
                    if kept is not None:
                        moved[kept] = moved.get(kept, 0) | follow & wanted
        self._meter.spend(len(moved) ** 2 // 16)
        return self._one(Threads(threads.program, _without_surplus(moved)))

    def _one(self, value: _Same) -> _Same:
        """The one of all that are equal: states have most of their duties in common."""
        if len(self._same) >= _KNOWN:
            self._same.clear()
        found: _Same = self._same.setdefault(value, value)
        return found

    def _moved_duty(self, threads: Threads, gates: int, class_id: int) -> Threads:
        """`move` for the threads of a duty, which many states have in common."""
        key = threads, gates, class_id
        known = self._moved.get(key)
        if known is None:
            if len(self._moved) >= _MOVED:
                self._moved.clear()
            known = self._moved[key] = self.move(threads, gates, class_id)
        return known

    def _ends(self, threads: Threads, gates: int) -> bool:
        root = self._programs[threads.program].root
        self._meter.spend(len(threads.groups))
        return any(
            root.advance(bits, gates)[1] and all(self._ends(duty.threads, gates) != duty.negative for duty in duties)
            for duties, bits in threads.groups
        )

    def _kept(self, duties: Duties, passed: int, gates: int, class_id: int) -> Duties | None:
        """The duties after the next character, with those of the lookaheads that were passed; None if one is broken."""
        must: set[Duty] = set()
        must_not: dict[int, Threads] = {}
        new = (Duty(negative, begun(index)) for index, negative in self._negative.items() if passed >> index & 1)
        for duty in (*duties, *new):
            threads = self._moved_duty(duty.threads, gates, class_id)
            is_done = self._is_certain(threads)
            if is_done if duty.negative else not threads.groups:
                return None
            if is_done or not threads.groups:
                continue
            if duty.negative:
                other = must_not.get(threads.program)
                must_not[threads.program] = threads if other is None else _either(threads, other)
            else:
                must.add(self._one(Duty(False, threads)))
        if len(must) > 1:
            must = {duty for duty in must if not any(_implies(other.threads, duty.threads) for other in must - {duty})}
        return self._one(frozenset(must | {self._one(Duty(True, threads)) for threads in must_not.values()}))

    def _is_certain(self, threads: Threads) -> bool:
        """Whether the threads, which are those of a lookahead, come to the end with any text."""
        root = self._programs[threads.program].root
        any_text = 1 << (root.size - 1)
        return any(not duties and root.advance(bits, 0)[0] & any_text for duties, bits in threads.groups)

    def _from(self, program: int, bits: int, gates: int) -> _Ways:
        key = (program, bits, gates)
        ways = self._ways.get(key)
        if ways is None:
            if len(self._ways) >= _KNOWN:
                self._ways.clear()
            root = self._programs[program].root
            aheads = root.gates & self._aheads
            none, every = root.advance(bits, gates)[0], self._every(program, bits, gates)
            self._meter.spend(2 + bits.bit_count() // 8 + root.size // 1024)
            ways = self._ways[key] = list(self._split(program, bits, gates, aheads, none, every))
        return ways

    def _every(self, program: int, bits: int, gates: int) -> int:
        """The positions that can be next where all lookaheads are passed: no way leads to others."""
        key = (program, bits, gates)
        every = self._reached.get(key)
        if every is None:
            if len(self._reached) >= _KNOWN:
                self._reached.clear()
            root = self._programs[program].root
            every = self._reached[key] = root.advance(bits, gates | root.gates & self._aheads)[0]
            self._meter.spend(1 + bits.bit_count() // 8 + root.size // 1024)
        return every

    def _split(
        self, program: int, bits: int, gates: int, aheads: int, none: int, every: int
    ) -> Iterator[tuple[int, int]]:
        """The ways from these positions, with each choice of the lookaheads that makes a difference.

        `none` and `every` are where the ways lead on which none and all of them are passed.
        """
        if none == every:
            yield 0, none
            return
        root = self._programs[program].root
        gate = aheads & -aheads
        rest = aheads ^ gate
        self._meter.spend(2 + bits.bit_count() // 8 + root.size // 1024)
        yield from self._split(program, bits, gates, rest, none, root.advance(bits, gates | rest)[0])
        with_it = root.advance(bits, gates | gate)[0]
        for passed, follow in self._split(program, bits, gates | gate, rest, with_it, every):
            yield passed | gate, follow


def _implies(threads: Threads, other: Threads) -> bool:
    """Whether what brings these threads to the end brings the others there; False where that is not plain."""
    if threads.program != other.program:
        return False
    groups = dict(other.groups)
    return all(not bits & ~groups.get(duties, 0) for duties, bits in threads.groups)


def _either(threads: Threads, other: Threads) -> Threads:
    groups = dict(threads.groups)
    for duties, bits in other.groups:
        groups[duties] = groups.get(duties, 0) | bits
    return Threads(threads.program, _without_surplus(groups))


def _without_surplus(groups: dict[Duties, int]) -> frozenset[tuple[Duties, int]]:
    """The groups without positions that another group has with fewer duties."""
    if len(groups) == 1:
        return frozenset(groups.items())
    kept = []
    for duties, bits in groups.items():
        for fewer, others in groups.items():
            if fewer < duties:
                bits &= ~others
        if bits:
            kept.append((duties, bits))
    return frozenset(kept)
