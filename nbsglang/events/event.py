"""One event: a body of one of the known kinds, with its place in the log.

Not here: the kinds themselves (`engine.py`, `tokens.py`, `constraints.py`, `tree.py`, `programs.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nbsglang.events.constraints import ConstraintBody
from nbsglang.events.engine import EngineBody
from nbsglang.events.programs import ProgramBody
from nbsglang.events.tokens import TokensBody
from nbsglang.events.tree import TreeBody

Body = EngineBody | TokensBody | ConstraintBody | TreeBody | ProgramBody
KINDS: dict[str, type[Body]] = {kind.__name__: kind for kind in Body.__args__}


class Event(NamedTuple):
    """A body with its place in the log: `seq` from 1 without gaps, `t_ns` monotonic, `source` who says it."""

    seq: int
    t_ns: int
    source: str
    body: Body


Row = tuple[int, int, str, str, tuple[Any, ...]]  # an Event of plain values, its body as kind and fields


def event_of(row: Row) -> Event:
    """The event of a row."""
    seq, t_ns, source, kind, fields = row
    return Event(seq, t_ns, source, KINDS[kind]._make(fields))
