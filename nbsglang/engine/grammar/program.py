"""A block with the characters of its positions: which of them a class of code points goes to.

Not here: how positions follow each other (`blocks.py`), what a state is (`plain.py`, `guarded.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nbsglang.engine.grammar.alphabet import Alphabet
from nbsglang.engine.grammar.ends import ends
from nbsglang.engine.grammar.plan import Sketch

_FEW = 16


class Program:
    """The positions of a sketch over an alphabet. Sets of positions are the bits of an integer; bit 0 is the start."""

    def __init__(self, sketch: Sketch, alphabet: Alphabet) -> None:
        self.root = sketch.root
        self._sets = sketch.sets
        self.set_ids = self._set_array = np.array(sketch.sets, dtype=np.int32)  # of each position
        self._order = np.argsort(self._set_array, kind="stable")  # positions, those of a set together
        self._ends = np.searchsorted(self._set_array[self._order], np.arange(len(alphabet.classes_of) + 1)).tolist()
        self._classes = [tuple(classes.tolist()) for classes in alphabet.classes_of]
        self._of_set: dict[int, int] = {}
        self._of_class: dict[int, int] = {}
        self._sets_of_class: dict[int, list[int]] = {}

    def next_alone(self, position: int) -> Sequence[int] | None:
        """The classes that go to the next position, if that follows this one and no other, and no text ends here."""
        return self._classes[self._sets[position + 1]] if self.root.alone >> position & 1 else None

    def last_classes(self) -> set[int]:
        """The classes of the last characters of texts, if all gates were open."""
        return {cls for set_id in self.sets_of(ends(self.root)) if set_id >= 0 for cls in self._classes[set_id]}

    def classes_at(self, position: int) -> Sequence[int]:
        """The classes that go to a position."""
        classes: Sequence[int] = self._classes[self._sets[position]]
        return classes

    def of_set(self, index: int) -> int:
        """The positions of a set of characters."""
        known = self._of_set.get(index)
        if known is None:
            positions = self._order[self._ends[index] : self._ends[index + 1]]
            if len(positions) <= _FEW:
                known = sum(1 << position for position in positions.tolist())
            else:
                known = _packed(self._set_array == index)
            self._of_set[index] = known
        return known

    def of_class(self, index: int) -> int:
        """The positions that a class of code points goes to."""
        known = self._of_class.get(index)
        if known is None:
            if not self._sets_of_class:
                for set_id, classes in enumerate(self._classes):
                    for class_id in classes:
                        self._sets_of_class.setdefault(class_id, []).append(set_id)
            known = 0
            for set_id in self._sets_of_class.get(index, ()):
                known |= self.of_set(set_id)
            self._of_class[index] = known
        return known

    def sets_of(self, bits: int) -> Iterable[int]:
        """The sets of characters that these positions have."""
        if bits.bit_count() > _FEW:
            data = np.frombuffer(bits.to_bytes((len(self._sets) + 7) // 8, "little"), dtype=np.uint8)
            chosen = np.unpackbits(data, count=len(self._sets), bitorder="little").astype(bool)
            return [int(index) for index in np.unique(self._set_array[chosen])]
        found: dict[int, None] = {}
        while bits:
            low = bits & -bits
            found[self._sets[low.bit_length() - 1]] = None
            bits ^= low
        return list(found)

    def by_class(self, bits: int) -> dict[int, int]:
        """Of these positions those that each class goes to, for the classes that go to any."""
        found: dict[int, int] = {}
        for index in self.sets_of(bits):
            part = bits & self.of_set(index)
            for class_id in self._classes[index]:
                found[class_id] = found.get(class_id, 0) | part
        return found


def _packed(chosen: np.typing.NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")
