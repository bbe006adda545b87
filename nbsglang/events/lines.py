"""Events as lines of JSON, and back.

Not here: files of them (`log.py`), what of a field is private (`fields.py`).
"""

from __future__ import annotations

import functools
import json
from typing import Any, get_type_hints

from nbsglang.events.event import KINDS, Event, Row
from nbsglang.events.fields import checked, redacted


class OtherVersion(ValueError):
    """A line has the form of an event, but no such event is known."""


def to_line(event: Event, redact: bool) -> str:
    """One line without its end; `redact` leaves out every text but ids and words of our own."""
    kind, fields = type(event.body).__name__, event.body._asdict()
    if redact:
        fields = {name: redacted(fields[name], wanted) for name, wanted in _types(kind).items()}
    return json.dumps([event.seq, event.t_ns, event.source, kind, fields])


def from_line(line: str, before: int) -> Row:
    """The row of a line, whose seq must be above `before`. Raises ValueError when it is not an event."""
    row = json.loads(line)
    if not isinstance(row, list) or [type(part) for part in row] != [int, int, str, str, dict]:
        raise ValueError("it is not a list of seq, t_ns, source, kind and fields")
    seq, t_ns, source, kind, fields = row
    if seq <= before:
        raise ValueError(f"its seq {seq} is not above {before}")
    if kind not in KINDS:
        raise OtherVersion(f"there is no kind {kind[:40]!r}")
    types = _types(kind)
    if fields.keys() != types.keys():
        raise OtherVersion(f"the fields of {kind} are {', '.join(types)}")
    return seq, t_ns, source, kind, tuple(checked(fields[name], wanted, name) for name, wanted in types.items())


@functools.cache
def _types(kind: str) -> dict[str, Any]:
    """The types of a kind's fields, in order, with their marks."""
    return get_type_hints(KINDS[kind], include_extras=True)
