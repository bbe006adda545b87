"""Logs made by hand, for tests of pictures: `scene_of(text)` has that text in every place that a text can be in."""

from __future__ import annotations

from nbsglang.events import (
    Admitted,
    Body,
    CallBegan,
    CallEnded,
    Event,
    Failed,
    Finished,
    NodeAdded,
    NodeEvicted,
    NodeLocked,
    NodeSplit,
    NodeTouched,
    Queued,
    Ready,
    Step,
    StreamBegan,
    StreamEnded,
    StreamText,
    Tokens,
    TokenTexts,
    VariableSet,
)
from nbsglang.viz.fold import View, fold
from nbsglang.viz.scene import Scene

HOSTILE = [
    "</script><script>alert(1)</script>", "\x1b[31mred\x1b[0m\x1b]0;title\x07", '"];n9 [label="x', "[bold]x[/bold]",
    "a\\", "\\N\\G\\l", "<img src=x onerror=y>", "' onload='z", "\u202eevil", "]]>", "&lt;", "\x00\x7f\x9b31m", "{a|b}",
    "\ud800", "line\nbreak\r", "[link=file:///etc]x[/link]", ":smile:", "<TABLE>&#60;</TABLE>", "\u2066a\u2069\u200f",
]  # fmt: skip
STEP = Step(1, 3, 1, 1, 0, 10, 5, 2, 0.0, 0.0, 0.1, 0.0)
S = 1_000_000_000


def events_of(*bodies: Body, start: int = 1) -> list[Event]:
    """The bodies as events of one source, a tenth of a second apart."""
    return [Event(n, n * S // 10, "e", body) for n, body in enumerate(bodies, start)]


def tree_view(text: str) -> View:
    """A tree with a node of every mark."""
    bodies = [
        TokenTexts((1, 2, 3), (text, "plain", "x" * 500)),
        NodeAdded(1, 0, (1, 2), 1, 0),
        NodeAdded(4, 0, (1,), 2, 0),
        STEP,
        NodeSplit(1, 2, 1, 5),
        NodeTouched((2,), 3, 5),
        NodeTouched((2,), 4, 6),
        NodeAdded(3, 2, (3,), 5, 5),
        NodeLocked(3, 1),
        NodeEvicted(4, 1),
        Finished(1, "c", "stop", 10, 4, 2),
    ]
    return fold(events_of(*bodies))


def scene_of(text: str, state: str = "running") -> Scene:
    """A run with a literal, a value, a chosen text, one that is being written, and one that broke off."""
    bodies: list[Body] = [
        Ready(text, text, "cpu", "float32", 100),
        TokenTexts((1, 2, 3), (text, "plain", "x" * 500)),
        NodeAdded(9, 0, (1,), 1, 0),
        StreamBegan("r", "", 0, text),
        StreamText("r", text),
        VariableSet("r", text, text),
    ]
    for number, kind in enumerate(("gen", "score", "gen"), 1):
        stream, call = f"r.{number}", f"r.{number}.1"
        bodies += [
            StreamBegan(stream, "r", number, text),
            StreamText(stream, text),
            CallBegan(stream, call, kind, text),
            Queued(number, call, 10),
            Admitted(number, call, 6, 4, 0),
            NodeAdded(number, 0, (1, 2), 1, number),
            NodeLocked(number, 1),
            Tokens((number,), ((1,),)),
            Tokens((number,), ((2,),)),
        ]
    bodies += [
        Finished(2, "r.2.1", "stop", 10, 6, 2),
        CallEnded("r.2", "r.2.1", ""),
        VariableSet("r.2", text, text),
        StreamEnded("r.2", "done"),
        CallEnded("r.3", "r.3.1", f"BackendError: {text}"),
        StreamEnded("r.3", "failed"),
        Failed("r.3.1", text),
        NodeTouched((1, 2), 2, 7),
        NodeEvicted(9, 1),
        STEP,
    ]
    view = fold(events_of(*bodies))
    return Scene(view, tuple(view.streams_of("e")), view.marks, text, state, 1.5)
