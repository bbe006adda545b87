"""Which gates are open in the gap between two characters, by what stands before and after it.

Of the character before and the one after it matters whether they are newlines or of words; beyond an edge of the text
there is neither. A lookbehind is run along with the text, and is open where it could end.

Not here: lookaheads, which what stands beside the gap does not decide (`guarded.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from nbsglang.engine.grammar.alphabet import Alphabet
from nbsglang.engine.grammar.plan import GateSpec
from nbsglang.engine.grammar.program import Program
from nbsglang.engine.grammar.syntax import Ahead, Behind, Boundary, Edge

EDGE = 1  # the flag of an edge of the text; sets of characters have the others


class Before(NamedTuple):
    """What stands before a gap: the flags of the last character, and where each lookbehind is."""

    flags: int
    behind: tuple[int, ...]


class Gaps:
    """The gates of a pattern; `kinds` are the classes after a gap by those of their flags that matter to the gates."""

    def __init__(self, gates: Sequence[GateSpec], programs: Sequence[Program | None], alphabet: Alphabet) -> None:
        self._gates = gates
        set_ids = dict.fromkeys(gate.set_id for gate in gates if gate.set_id is not None)
        self._flag_of = {set_id: 2 << index for index, set_id in enumerate(set_ids)}
        self._behind = [
            program
            for gate, program in zip(gates, programs, strict=True)
            if program is not None and isinstance(gate.node, Behind)
        ]
        flags = [0] * alphabet.n_classes
        for set_id, flag in self._flag_of.items():
            for class_id in alphabet.classes_of[set_id].tolist():
                flags[class_id] |= flag
        before, after = self._mattering()
        self._before_flags = [flag & before for flag in flags]
        of_flags = {flag: Before(flag, ()) for flag in self._before_flags}
        self._plain = [of_flags[flag] for flag in self._before_flags]  # without lookbehinds
        self.kinds: dict[int, set[int]] = {}
        for class_id, flag in enumerate(flags):
            self.kinds.setdefault(flag & after, set()).add(class_id)
        self.start = Before(EDGE & before, (1,) * len(self._behind))
        self._known: dict[tuple[Before, int], int] = {}

    def open(self, before: Before, after: int) -> int:
        """The open gates, as bits, where the character after the gap has these flags; all lookaheads are shut."""
        known = self._known.get((before, after))
        if known is None:
            known, behind = 0, zip(self._behind, before.behind, strict=True)
            for index, gate in enumerate(self._gates):
                if isinstance(gate.node, Behind):
                    program, bits = next(behind)
                    is_open = program.root.advance(bits, known)[1] != gate.node.negative
                else:
                    is_open = not isinstance(gate.node, Ahead) and self._is_open(gate, before.flags, after)
                known |= is_open << index
            self._known[before, after] = known
        return known

    def after(self, before: Before, gates: int, class_id: int) -> Before:
        """What stands before the next gap, when a character of the class comes after one with these open gates."""
        if not self._behind:
            return self._plain[class_id]
        behind = (
            program.root.advance(bits, gates)[0] & program.of_class(class_id) | 1
            for program, bits in zip(self._behind, before.behind, strict=True)
        )
        return Before(self._before_flags[class_id], tuple(behind))

    def _is_open(self, gate: GateSpec, before: int, after: int) -> bool:
        flag = self._flag_of.get(gate.set_id, 0) if gate.set_id is not None else 0
        if isinstance(gate.node, Edge):
            return bool((after if gate.node.at_end else before) & (EDGE | flag))
        assert isinstance(gate.node, Boundary)
        if not gate.node.inside:
            return bool((before ^ after) & flag)
        return not (before ^ after) & flag and (not before & after & EDGE or _inside_empty_text())

    def _mattering(self) -> tuple[int, int]:
        """The flags that matter of the character before a gap, and of the one after it."""
        before = after = 0
        for gate in self._gates:
            flag = EDGE | (self._flag_of[gate.set_id] if gate.set_id is not None else 0)
            if isinstance(gate.node, Boundary) or (isinstance(gate.node, Edge) and not gate.node.at_end):
                before |= flag
            if isinstance(gate.node, Boundary) or (isinstance(gate.node, Edge) and gate.node.at_end):
                after |= flag
        return before, after


@cache
def _inside_empty_text() -> bool:
    """Whether this Python's `\\B` matches in an empty text: it does from 3.14 on."""
    return re.fullmatch(r"\B", "") is not None
