"""What a walk over a trie has found.

Not here: the walk (`walk.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from nbsglang.engine.grammar.stretch import Stretch
from nbsglang.engine.grammar.trie import Indices


class Part(NamedTuple):
    """A stretch, and `chain[d]`: the state at depth d of it, from 0 on as deep as it is followed."""

    stretch: Stretch
    chain: list[int]


class Reached(NamedTuple):
    """Nodes that can follow a state, the root apart: those of some stretches, and others with the state at each."""

    start: int
    parts: list[Part]
    nodes: Indices
    states: Indices
