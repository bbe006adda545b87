"""The states of a pattern without gates: sets of positions. From every one of them a match can be reached.

Not here: patterns with anchors in the middle, word boundaries or lookarounds (`guarded.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, TypeAlias

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
        return self.advanced(key)[1]

    def advanced(self, key: Hashable) -> tuple[int, bool]:
        """The positions that can follow those of a key, and whether the text may end. The last ones are remembered."""
        found = self._advanced.get(key)
        if found is None:
            if len(self._advanced) >= _KEPT:
                self._advanced.clear()
            found = self._advanced[key] = self._program.root.advance(bits_of(key), 0)
        return found

    def loop(self, key: Hashable) -> Sequence[int]:
        """The classes of a position that follows itself, if the key is one: no text over them leads nowhere."""
        assert isinstance(key, tuple)
        bits, low = key
        return self._program.classes_at(low) if bits == 1 and self.advanced(key)[0] >> low & 1 else ()

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
        bits, low = key
        if bits == 1 or bits.bit_count() > _FEW:
            return [key]
        return [(1, low + at) for at in ones(bits)]

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


def ones(bits: int) -> list[int]:
    """The places of the bits that are set."""
    found: list[int] = []
    at = 0
    while bits:
        skipped = (bits & -bits).bit_length()
        at += skipped
        bits >>= skipped
        found.append(at - 1)
    return found
