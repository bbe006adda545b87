"""From nodes to blocks: the positions of a pattern, its sets of characters and its gates.

Without recursion, and a part that occurs often is worked out once. What no text can match is left out, so that from
every position an end can be reached as long as gates do not forbid it.

Not here: how positions follow each other (`runs.py`, `blocks.py`), how blocks are made one (`joins.py`), what
opens a gate (`guarded.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from nbsglang.engine.grammar.blocks import Block, Fork, Gate, Loop, Row
from nbsglang.engine.grammar.joins import flat, folded, in_groups, in_lines
from nbsglang.engine.grammar.limits import Limits, NoTextError
from nbsglang.engine.grammar.plan import GateSpec, Plan, Sketch
from nbsglang.engine.grammar.runs import Run, chain, line
from nbsglang.engine.grammar.syntax import (
    ALL_CHARS,
    Ahead,
    Alt,
    Behind,
    Boundary,
    Chars,
    Edge,
    Empty,
    Node,
    Ranges,
    Repeat,
    Seq,
)
from nbsglang.errors import ConstraintError

NEWLINE: Ranges = ((10, 10),)
_LOOK_DEPTH = 3  # a lookaround in another is followed by so many functions that call each other
NO_SET = -1  # of the position before the first character


class _Part(NamedTuple):
    block: Block
    sets: list[int]
    depth: int
    n_gates: int = 0  # written out; parts that are shared could otherwise grow without end


def build(node: Node, limits: Limits) -> Plan:
    """The plan of a node. Raises ConstraintError past the limits, and when there is no text in the language."""
    builder = _Builder(limits)
    part = builder.part(node)
    if part is None:
        raise NoTextError("the constraint matches no text at all: some part of it allows no character")
    main = builder.sketch([part])
    return Plan(list(builder.set_ids), builder.gates, main)


class _Builder:
    """Parts that are done, by the node they are of."""

    def __init__(self, limits: Limits) -> None:
        self.set_ids: dict[Ranges, int] = {}
        self.gates: list[GateSpec] = []
        self._limits = limits
        self._one = chain(1, 1)  # any single character
        self._done: dict[int, _Part | None] = {}  # by identity: nodes can be too deep to compare
        self._equal: dict[Hashable, _Part | None] = {}  # by what a node is made of
        self._n_positions = 0  # of sketches

    def part(self, node: Node) -> _Part | None:
        """The block of a node; None if no text matches."""
        stack = [(node, False)]
        while stack:
            at, is_ready = stack.pop()
            if id(at) in self._done:
                continue
            if isinstance(at, Seq) and _is_line(at):
                self._done[id(at)] = self._line(at)
            elif is_ready:
                part = self._known(at)
                if part is not None and part.depth > self._limits.depth:
                    raise ConstraintError(
                        f"the constraint has more than {self._limits.depth} repeats, choices and lookarounds inside "
                        "each other: take some of them apart"
                    )
                self._done[id(at)] = part
            else:
                stack.append((at, True))
                stack += [(inner, False) for inner in _inner(at) if id(inner) not in self._done]
        return self._done[id(node)]

    def sketch(self, parts: Sequence[_Part]) -> Sketch:
        """The parts one after the other, after a position before the first character."""
        row = self._row([_Part(self._one, [NO_SET], 0), *parts])
        self._n_positions += row.block.size
        self._check(self._n_positions)
        return Sketch(row.block, row.sets)

    def _known(self, node: Node) -> _Part | None:
        """The block of a node whose inner nodes are done; the same for equal nodes, so that equal gates are one."""
        key = type(node), _own(node), tuple(id(self._done[id(inner)]) for inner in _inner(node))
        if key not in self._equal:
            self._equal[key] = self._made(node)
        return self._equal[key]

    def _made(self, node: Node) -> _Part | None:
        if isinstance(node, Chars):
            return self._chars(node.ranges) if node.ranges else None
        if isinstance(node, Empty):
            return _blank()
        if isinstance(node, Repeat):
            return self._repeat(node)
        if isinstance(node, Edge | Boundary):
            return self._gate(GateSpec(node, self._beside(node)))
        parts = [self._done[id(inner)] for inner in _inner(node)]
        there = [part for part in parts if part is not None]
        if isinstance(node, Alt):
            return self._fork(there) if there else None
        if isinstance(node, Seq):
            return self._row(there) if len(there) == len(parts) else None
        if not there:  # a lookaround for what is nowhere
            return _blank() if node.negative else None
        if isinstance(node, Ahead):
            there.append(_Part(chain(0, None), self._chars(ALL_CHARS).sets, 1))
        depth = max(part.depth for part in there) + _LOOK_DEPTH
        return self._gate(GateSpec(node, sketch=self.sketch(there)), depth)

    def _chars(self, ranges: Ranges) -> _Part:
        return _Part(self._one, [self._set_id(ranges)], 1)

    def _line(self, node: Seq) -> _Part:
        """The block of a text, which would else be built character by character."""
        size = len(node.parts)
        sets = [self._set_id(part.ranges) for part in node.parts if isinstance(part, Chars)]
        self._check(size)
        return _Part(line(size), sets, 2) if size > 1 else _Part(self._one, sets, 1)

    def _beside(self, node: Edge | Boundary) -> int | None:
        if isinstance(node, Boundary):
            return self._set_id(node.word.ranges)
        return self._set_id(NEWLINE) if node.lines else None

    def _set_id(self, ranges: Ranges) -> int:
        return self.set_ids.setdefault(ranges, len(self.set_ids))

    def _gate(self, gate: GateSpec, depth: int = 1) -> _Part:
        self.gates.append(gate)
        return _Part(Gate(len(self.gates) - 1), [], depth, 1)

    def _row(self, parts: Sequence[_Part]) -> _Part:
        """The parts one after the other."""
        n_gates = self._count(parts)
        depth = max((part.depth + (not isinstance(part.block, Row)) for part in parts), default=1)
        blocks = [block for part in parts for block in flat(part.block, Row) if not _is_blank(block)]
        blocks = in_lines(blocks, self._one)
        sets = _chained(part.sets for part in parts)
        if len(blocks) == 1:
            return _Part(blocks[0], sets, depth - 1 if len(parts) == 1 else depth, n_gates)
        return _Part(in_groups(blocks, Row), sets, depth, n_gates) if blocks else _blank()

    def _fork(self, parts: Sequence[_Part]) -> _Part:
        """One of the parts."""
        if len(parts) == 1:
            return parts[0]
        n_gates = self._count(parts)
        runs = [part for part in parts if isinstance(part.block, Run)]
        others = [part for part in parts if not isinstance(part.block, Run)]
        blocks = [block for part in others for block in flat(part.block, Fork)]
        if runs:
            blocks.insert(0, folded([part.block for part in runs if isinstance(part.block, Run)], Run.beside))
        depth = max(part.depth + (not isinstance(part.block, Fork)) for part in parts)
        sets = _chained(part.sets for part in (*runs, *others))
        return _Part(in_groups(blocks, Fork), sets, depth, n_gates)

    def _repeat(self, node: Repeat) -> _Part | None:
        part, least, most = self._done[id(node.part)], node.least, node.most
        assert least >= 0, "a repeat of less than nothing"
        assert most is None or most >= least, "a repeat has its bounds the wrong way round"
        if part is None:
            return None if least else _blank()
        block = part.block
        if most == 0 or (block.size == 0 and least == 0):
            return _blank()
        if (least, most) == (1, 1) or block.size == 0:  # a gate is open as often as one looks
            return part
        n_copies = max(least, 1) if most is None else most
        self._check(block.size * n_copies)
        if isinstance(block, Run):
            if block is self._one:
                return _Part(chain(least, most), part.sets * n_copies, part.depth)
            if (least, most) == (0, 1):
                run = Run(block.size, block.starts, block.go, block.stay, block.out, nullable=True)
                return _Part(run, part.sets, part.depth)
        loop = Loop(block, least, most)
        return _Part(loop, part.sets * loop.n_copies, part.depth + 1, part.n_gates)

    def _count(self, parts: Sequence[_Part]) -> int:
        """The gates of the parts, which are checked to be few enough together with the positions."""
        n_gates = sum(part.n_gates for part in parts)
        self._check(n_gates + sum(part.block.size for part in parts))
        return n_gates

    def _check(self, size: int) -> None:
        if size > self._limits.positions:
            raise ConstraintError(
                f"the constraint has {size} positions with its repeats written out, and {self._limits.positions} go: "
                "make its repeats shorter"
            )


def _is_line(node: Seq) -> bool:
    """Whether a sequence is of characters, one after the other."""
    return bool(node.parts) and all(isinstance(part, Chars) and part.ranges for part in node.parts)


def _inner(node: Node) -> Sequence[Node]:
    if isinstance(node, Seq | Alt):
        return node.parts
    return (node.part,) if isinstance(node, Repeat | Ahead | Behind) else ()


def _own(node: Node) -> Hashable:
    """What a node is but for its inner nodes."""
    if isinstance(node, Chars):
        return node.ranges
    if isinstance(node, Repeat):
        return node.least, node.most
    if isinstance(node, Ahead | Behind):
        return node.negative
    return node if isinstance(node, Edge | Boundary) else None


def _blank() -> _Part:
    return _Part(Run(0, 0, 0, 0, 0, nullable=True), [], 1)


def _is_blank(block: Block) -> bool:
    return block.size == 0 and isinstance(block, Run)


def _chained(lists: Iterable[list[int]]) -> list[int]:
    return [value for values in lists for value in values]
