"""The positions of a block at which its texts can end.

Not here: which positions follow each other (`blocks.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from nbsglang.engine.grammar.blocks import Block, Fork, Loop, Row
from nbsglang.engine.grammar.runs import Run

_Known: TypeAlias = dict[int, int]


def ends(block: Block, known: _Known | None = None) -> int:
    """As bits, with all gates open; `known` is for those of blocks inside, which may be in many places."""
    known = {} if known is None else known
    found = known.get(id(block))
    if found is None:
        found = 0
        if isinstance(block, Run):
            found = block.out
        elif isinstance(block, Row):
            found = _last(block.parts, block.offsets, known)
        elif isinstance(block, Fork):
            for part, offset in zip(block.parts, block.offsets, strict=True):
                found |= ends(part, known) << offset
        elif isinstance(block, Loop):
            found = _last_copies(block, ends(block.part, known))
        known[id(block)] = found
    return found


def _last(parts: Sequence[Block], offsets: Sequence[int], known: _Known) -> int:
    found = 0
    for part, offset in zip(reversed(parts), reversed(offsets), strict=True):
        found |= ends(part, known) << offset
        if not part.empty(part.gates):
            break
    return found


def _last_copies(loop: Loop, inner: int) -> int:
    """A text may end in each copy from the last one on that is needed."""
    first, width = 0 if loop.part.empty(loop.gates) else max(loop.least - 1, 0), loop.part.size
    ones = ((1 << (loop.n_copies - first) * width) - 1) // ((1 << width) - 1)  # at the beginning of each of these
    return inner * ones << first * width
