"""What a pattern becomes: blocks of positions, sets of characters, and gates.

Not here: how it is made of nodes (`build.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nbsglang.engine.grammar.blocks import Block
from nbsglang.engine.grammar.syntax import Ahead, Behind, Boundary, Edge, Ranges


class Sketch(NamedTuple):
    """A block that begins with a position before the first character, and the set of characters of each position."""

    root: Block
    sets: list[int]


class GateSpec(NamedTuple):
    """What a gate stands for.

    `set_id` is the set of the characters beside it that matter: newlines or those of words. `sketch` is that of the
    part of a lookaround; a lookahead's goes on with any text.
    """

    node: Edge | Boundary | Ahead | Behind
    set_id: int | None = None
    sketch: Sketch | None = None


@dataclass(frozen=True)
class Plan:
    """A pattern in blocks: its sets of characters, its gates (those inside of others first) and its main sketch."""

    sets: list[Ranges]
    gates: list[GateSpec]
    main: Sketch
