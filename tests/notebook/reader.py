"""A front end's side of the messages, in Python: it folds deltas, restores keyframes, and notices what is missing."""

from __future__ import annotations

from typing import Any

from nbsglang.events import KINDS, Event
from nbsglang.viz import wire
from nbsglang.viz.dump import dump
from nbsglang.viz.fold import View


def plain(view: View) -> Any:
    """The state as a keyframe has it, without the marks of runs and what only says how it was come by."""
    state = wire.unpacked(wire.packed(dump(view)))
    state["tree"].pop("watched")
    return state


class Reader:
    """What came, and the state that it makes. `is_waiting` for a keyframe after a gap."""

    def __init__(self) -> None:
        self.messages: list[wire.Message] = []
        self.sizes: list[int] = []
        self.lines: list[wire.Line] = []  # of all deltas
        self.state: Any = None  # that of the last keyframe, if nothing came after it
        self.view = View()
        self.n_keys = 0
        self.is_waiting = False
        self._seq = 0

    def take(self, message: wire.Message) -> None:
        self.messages.append(message)
        self.sizes.append(sum(map(len, message.buffers)))
        kind, content = message.content["kind"], message.content
        if kind == "key":
            self.state, self.is_waiting, self._seq = wire.unpacked(message.buffers[0]), False, content["to"]
            self.state["tree"].pop("watched")
            self.n_keys += 1
        elif kind == "delta":
            lines = wire.unpacked(message.buffers[0])
            assert [line[0] for line in lines] == list(range(content["from"], content["to"] + 1)), "without gaps"
            self.lines += lines
            if content["from"] != self._seq + 1:
                self.is_waiting = True
            self._seq = content["to"]
            self.state = None
            for seq, t_ns, source, name, fields in lines:
                body = KINDS[name](**{key: _tuples(value) for key, value in fields.items()})
                self.view.apply(Event(seq, t_ns, source, body))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
