"""Blocks made of blocks: into as few as will do, and into groups where there are many.

Not here: which blocks a node has (`build.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from nbsglang.engine.grammar.blocks import Block, Fork, Row
from nbsglang.engine.grammar.runs import Run, line

_MANY = 32


def flat(block: Block, kind: type[Row] | type[Fork]) -> Sequence[Block]:
    """The blocks of a block of this kind, else itself."""
    return block.parts if isinstance(block, kind) else [block]


def in_groups(blocks: Sequence[Block], kind: type[Row] | type[Fork]) -> Block:
    """The blocks as one, in groups of groups if there are many: each works on the bits of its own positions only."""
    while len(blocks) > 1:
        blocks = [kind(blocks[at : at + _MANY]) for at in range(0, len(blocks), _MANY)]
    return blocks[0]


def in_lines(blocks: Sequence[Block], one: Run) -> list[Block]:
    """The blocks, with those made one run that can be; `one` is that of a single character."""
    lines: list[Block] = []
    for is_one, group in groupby(blocks, lambda block: block is one):
        some = list(group)
        lines += [line(len(some))] if is_one else some
    groups = [lines[:1]]
    for before, block in pairwise(lines):
        if isinstance(before, Run) and isinstance(block, Run) and before.joins(block):
            groups[-1].append(block)
        else:
            groups.append([block])
    return [group[0] if len(group) == 1 else folded(group, Run.then) for group in groups if group]


def folded(runs: Sequence[Block], into_one: Callable[[Run, Run], Run]) -> Run:
    """The runs made one, in pairs of about equal size, as their masks are copied each time."""
    left = [run for run in runs if isinstance(run, Run)]
    while len(left) > 1:
        odd = left[len(left) & ~1 :]
        left = [into_one(one, other) for one, other in zip(left[::2], left[1::2], strict=False)] + odd
    return left[0]
