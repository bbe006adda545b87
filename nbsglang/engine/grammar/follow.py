"""What can follow a single position of a block without gates: most states are one, for which this is quicker than what
holds for sets of positions.

Not here: sets of them (`blocks.py`).
"""

from __future__ import annotations

from bisect import bisect_right

from nbsglang.engine.grammar.blocks import Block, Fork, Loop, Row

_SPLIT = (Row, Fork)  # blocks with several parts


def follow(block: Block, position: int) -> tuple[int, bool]:
    """As `Block.advance` of this position: those that can follow, and whether a text can end here."""
    path: list[tuple[Row | Loop, int, int]] = []  # blocks around it, where it is in them, and their first position
    first = 0
    while True:
        if isinstance(block, _SPLIT):
            at = bisect_right(block.offsets, position) - 1
            offset, inner = block.offsets[at], block.parts[at]
        elif isinstance(block, Loop):
            inner, width = block.part, block.part.size
            at = position // width
            offset = at * width
        else:
            break
        if not isinstance(block, Fork):
            path.append((block, at + 1, first))
        first += offset
        position -= offset
        block = inner
    found, ends = block.advance(1 << position, 0)
    found <<= first
    while ends and path:
        outer, at, first = path.pop()
        more, ends = outer.rest(at, 0) if isinstance(outer, Row) else outer.enter(at, 0)
        found |= more << first
    return found, ends
