"""What travels from Python to the views of a front end: messages of a few plain values, each with a buffer of JSON.

A "delta" holds events, a "key" the whole state after them; both say from which event to which they go, so that a
reader notices what it has missed. A buffer is JSON in UTF-8, deflated with zlib's header.

Not here: when something is sent (`notebook/pump.py`), what a state consists of (`dump.py`).
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from nbsglang.events import Event
from nbsglang.viz.dump import dump
from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks

VERSION = 1
_LEVEL = 1  # of zlib: a run must not wait for its pictures

Line = list[Any]  # [seq, t_ns, source, kind, {fields}]: an event as a saved log has it


class Message(NamedTuple):
    """The content of a message and its buffers."""

    content: dict[str, Any]
    buffers: tuple[bytes, ...] = ()


def event_line(event: Event) -> Line:
    """The event as plain values."""
    return [event.seq, event.t_ns, event.source, type(event.body).__name__, event.body._asdict()]


def delta(number: int, lines: list[Line]) -> Message:
    """The message with these events, at least one."""
    content = _content(number, "delta", {"from": lines[0][0], "to": lines[-1][0]})
    return Message(content, (packed(lines),))


def keyframe(number: int, first: int, view: View, watched: Mapping[str, Marks] | None = None) -> Message:
    """The message with the state of the view; `first` is the seq of the first event that no delta has brought."""
    content = _content(number, "key", {"from": first, "to": view.seq})
    return Message(content, (packed(dump(view, watched)),))


def word(number: int, kind: str, **values: Any) -> Message:
    """A message without a buffer: an answer to a ping, the end of a run."""
    return Message(_content(number, kind, values))


def snapshot(base: Mapping[str, Any] | None, lines: Iterable[Line]) -> str:
    """A state and the events after it as one text (base64), to be kept beside a picture."""
    return base64.b64encode(packed({"events": list(lines), "base": base})).decode()


def begun(seq: int) -> dict[str, Any] | None:
    """The base of a snapshot whose first event has this seq: what came before it is lost; None where nothing did."""
    if seq == 1:
        return None
    view = View()
    view.seq = view.n_lost = seq - 1
    view.tree.complete = False
    return dump(view)


def before_run(view: View) -> dict[str, Any]:
    """The state that a run begins with, without what other runs have said and asked: the base of a snapshot."""
    return dump(view) | {"streams": [], "requests": [], "n_kept": 0}


def packed(value: Any) -> bytes:
    """The value as deflated JSON; a number that JSON does not have is null there."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(value), parse_constant=lambda name: None)
        text = json.dumps(plain, separators=(",", ":"))
    return zlib.compress(text.encode(), _LEVEL)


def unpacked(buffer: bytes) -> Any:
    """The value again."""
    return json.loads(zlib.decompress(buffer))


def _content(number: int, kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"v": VERSION, "kind": kind, "n": number, **values}
