"""The states of a pattern without gates: sets of positions. From every one of them a match can be reached.

Not here: patterns with anchors in the middle, word boundaries or lookarounds (`guarded.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Protocol, TypeAlias

from nbsglang.engine.grammar.ends import ends
from nbsglang.engine.grammar.follow import follow
from nbsglang.engine.grammar.program import Program

_FEW = 64  # positions: each of more is not worth a look of its own
_KEPT = 512
Moves: TypeAlias = Iterable[tuple[Hashable, Sequence[int]]]


class Machine(Protocol):
    """What an automaton asks for its states; a state is known by its key."""

    start: Hashable
    is_certain: bool  # from every state a match can be reached

    def is_live(self, key: Hashable) -> bool:
        """Whether it is plain that a match can be reached from here."""
        ...

    def accepts(self, key: Hashable) -> bool:
        """Whether the text may end here."""
        ...

    def moves(self, key: Hashable) -> Moves:
        """The states that can come next, each with the classes that go there; a class at most once."""
        ...

    def places(self, key: Hashable) -> Iterable[Hashable]:
        """Keys that allow together what this one does, each as simple as can be."""
        ...

    def weight(self, key: Hashable) -> int:
        """About how many bytes the key takes."""
        ...


class Plain:
    """A `Machine` for one program. A key is the set of positions from its first one on, and that one."""

    def __init__(self, program: Program) -> None:
        self.start: Hashable = (1, 0)
        self.is_certain = True
        self._program = program
        self._advanced: dict[Hashable, tuple[int, bool]] = {}

    def is_live(self, key: Hashable) -> bool:
        """See `Machine.is_live`."""
        return True

    def accepts(self, key: Hashable) -> bool:
        """See `Machine.accepts`."""
        return bits_of(key) & self._ends != 0

    @cached_property
    def _ends(self) -> int:
        return ends(self._program.root)

    def advanced(self, key: Hashable) -> tuple[int, bool]:
        """The positions that can follow those of a key, and whether the text may end. The last ones are remembered."""
        found = self._advanced.get(key)
        if found is None:
            if len(self._advanced) >= _KEPT:
                self._advanced.clear()
            assert isinstance(key, tuple)
            root = self._program.root
            found = follow(root, key[1]) if key[0] == 1 else root.advance(bits_of(key), 0)
            self._advanced[key] = found
        return found

    def moves(self, key: Hashable) -> Moves:
        """See `Machine.moves`."""
        assert isinstance(key, tuple)
        program = self._program
        if key[0] == 1:
            classes = program.next_alone(key[1])
            if classes is not None:
                return [((1, key[1] + 1), classes)] if classes else []
        follow = self.advanced(key)[0]
        if not follow:
            return []
        together: dict[int, list[int]] = {}
        for class_id, bits in program.by_class(follow).items():
            together.setdefault(bits, []).append(class_id)
        return [(_key(bits), classes) for bits, classes in together.items()]

    def places(self, key: Hashable) -> Iterable[Hashable]:
        """See `Machine.places`."""
        assert isinstance(key, tuple)
        bits, _ = key
        if bits == 1 or bits.bit_count() > _FEW:
            return [key]
        return [(1, at) for at in positions_of(key)]

    def weight(self, key: Hashable) -> int:
        """See `Machine.weight`."""
        assert isinstance(key, tuple)
        return 150 + int(key[0].bit_length()) // 8


def _key(bits: int) -> tuple[int, int]:
    low = (bits & -bits).bit_length() - 1
    return bits >> low, low


def bits_of(key: Hashable) -> int:
    """The positions of a key of a `Plain`."""
    assert isinstance(key, tuple)
    bits: int = key[0] << key[1]
    return bits


def positions_of(key: Hashable) -> list[int]:
    """The positions of a key of a `Plain` one by one."""
    assert isinstance(key, tuple)
    bits, low = key
    return [low] if bits == 1 else [low + at for at in ones(bits)]


def ones(bits: int) -> list[int]:
    """The places of the bits that are set."""
    digits = bin(bits)[:1:-1]  # faster to look through than large numbers
    found: list[int] = []
    at = digits.find("1")
    while at >= 0:
        found.append(at)
        at = digits.find("1", at + 1)
    return found
