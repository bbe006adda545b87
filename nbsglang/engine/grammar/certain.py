"""The positions of a block from which its end is reached whatever the gates: there is a way past none of them.

Most states of most patterns have such a position, so that it is known without a search that a match can be reached.

Not here: the search for the other states (`automaton.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nbsglang.engine.grammar.blocks import Block, Fork, Loop, Row


class Ways(NamedTuple):
    """Of a block with all gates shut: whether it has a text, and the positions from which its end is reached."""

    has_text: bool
    positions: int


def ways(block: Block) -> Ways:
    """The ways through a block with all gates shut."""
    if not block.gates:  # what leads nowhere is left out when blocks are made
        return Ways(True, (1 << block.size) - 1)
    if isinstance(block, Row):
        return _row([ways(part) for part in block.parts], block.offsets)
    if isinstance(block, Fork):
        parts = [ways(part) for part in block.parts]
        positions = _joined([part.positions for part in parts], block.offsets)
        return Ways(any(part.has_text for part in parts), positions)
    if isinstance(block, Loop):
        return _loop(block)
    return Ways(False, 0)  # a gate


def _row(parts: Sequence[Ways], offsets: Sequence[int]) -> Ways:
    needed = max((index for index, part in enumerate(parts) if not part.has_text), default=-1)
    positions = [part.positions if index >= needed else 0 for index, part in enumerate(parts)]
    return Ways(needed < 0, _joined(positions, offsets))


def _loop(loop: Loop) -> Ways:
    part, width = ways(loop.part), loop.part.size
    first = 0 if part.has_text else max(loop.least - 1, 0)  # the copy after which no other must come
    positions = sum(part.positions << copy * width for copy in range(first, loop.n_copies))
    return Ways(loop.least == 0 or part.has_text, positions)


def _joined(positions: Sequence[int], offsets: Sequence[int]) -> int:
    return sum(bits << offset for bits, offset in zip(positions, offsets, strict=True))
