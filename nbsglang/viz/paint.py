"""How things are told apart: a colour of the Okabe-Ito palette, and always a sign that says the same without it.

Not here: where they are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from nbsglang.viz.marks import Marks
from nbsglang.viz.state import Node

# Which colour-blind readers can tell apart.
GREEN, BLUE, VERMILION, PURPLE, ORANGE, GREY = "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#e69f00", "#8a8a8a"
SKY = "#56b4e9"  # in the place of blue on a dark ground


class Mark(NamedTuple):
    """A colour, a sign, and a word."""

    colour: str
    sign: str
    word: str


NEW, HIT, EVICTED, OLD = (
    Mark(GREEN, "+", "new"),
    Mark(BLUE, "●", "hit"),
    Mark(VERMILION, "✕", "evicted"),
    Mark(GREY, "", ""),
)
LEGEND = (NEW, HIT, EVICTED)

STATES: Mapping[str, Mark] = MappingProxyType(
    {
        "running": Mark(BLUE, "▶", "running"),
        "waiting": Mark(GREY, "…", "waiting"),
        "done": Mark(GREEN, "✓", "done"),
        "joined": Mark(GREEN, "⤴", "joined"),
        "failed": Mark(VERMILION, "✗", "failed"),
        "cancelled": Mark(ORANGE, "■", "cancelled"),
    }
)
KINDS: Mapping[str, Mark] = MappingProxyType(
    {
        "literal": Mark(GREY, "", "text of the program"),
        "gen": Mark(GREEN, "▸", "generated"),
        "choice": Mark(PURPLE, "◆", "chosen"),
        "partial": Mark(ORANGE, "▹", "unfinished"),
        "value": Mark(GREY, "=", "value"),
    }
)


def state_mark(state: str) -> Mark:
    """The mark of a stream's state, whatever a log calls it."""
    return STATES.get(state, Mark(GREY, "·", "ended"))


def mark_of(marks: Marks, node: Node) -> Mark:
    """The mark of a node; the sign of a hit has the number of requests, and + where the node is new as well."""
    if node.id in marks.evicted:
        return EVICTED
    if node.id in marks.hits:
        n = marks.hits[node.id]
        return Mark(BLUE, (f"●×{n}" if n > 1 else "●") + ("+" if node.id in marks.new else ""), "hit")
    return NEW if node.id in marks.new else OLD
