"""Time, left to right: what each stream's calls wait for and do, and under it how many requests run at once.

A row is a stream; on it a call is queued, computes its prompt, writes. Each of the three has a colour and a texture,
and what a constraint forced is a ◆.

Not here: when what happened (`history.py`), the picture of a page (`timeline_page.py`), a trace (`perfetto.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from nbsglang.viz.history import CallSpan, History
from nbsglang.viz.paint import BLUE, GREEN, GREY, ORANGE, SKY, VERMILION
from nbsglang.viz.scene import Scene, seconds
from nbsglang.viz.state import StreamView
from nbsglang.viz.text import name_of, shown

MAX_ROWS = 40
_MAX_STEPS = 400  # points of the curve


class Look(NamedTuple):
    """How a phase looks: a colour, a character, an SVG pattern's lines ("" is plain), and a word."""

    colour: str
    char: str
    lines: str
    word: str


LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        "queued": Look(GREY, "░", "M3 0V6", "queued"),
        "prefill": Look(BLUE, "▒", "M0 6L6 0", "prompt"),
        "decode": Look(GREEN, "█", "", "writing"),
    }
)
_IDLE = "·"
FAILED = Look(VERMILION, "✗", "", "failed")
_RISING = "▁▂▃▄▅▆▇█"


class Bar(NamedTuple):
    """A phase of a call, in seconds from the beginning of the picture."""

    phase: str
    begin: float
    end: float


class Row(NamedTuple):
    """A stream: from when to when it was there, its bars, and the moments at which text was forced."""

    label: str
    depth: int
    begin: float
    end: float
    bars: tuple[Bar, ...]
    jumps: tuple[float, ...]
    failed: bool


class Timeline(NamedTuple):
    """What is drawn. `batch` has (second, running, waiting) after each step."""

    rows: tuple[Row, ...]
    seconds: float
    batch: tuple[tuple[float, int, int], ...]
    more: str  # about rows that are left out

    @property
    def n_running(self) -> int:
        """The largest batch."""
        return max((n for _, n, _ in self.batch), default=0)


def timeline(scene: Scene) -> Timeline:
    """The streams of a scene over time."""
    history, streams = scene.view.history, scene.streams
    begin = min((stream.began_ns for stream in streams), default=history.begin_ns)
    ends = [stream.ended_ns or history.end_ns for stream in streams]
    end = max([*ends, begin + 1])
    by_stream: dict[str, list[CallSpan]] = {}
    for call in history.calls.values():
        by_stream.setdefault(call.stream, []).append(call)
    rows = [_row(stream, by_stream.get(stream.id, []), history, begin) for stream in streams[:MAX_ROWS]]
    more = f"{len(streams) - MAX_ROWS} more streams" if len(streams) > MAX_ROWS else ""
    steps = [
        ((at.t_ns - begin) / 1e9, at.step.n_running, at.step.n_waiting)
        for at in history.steps
        if begin <= at.t_ns <= end
    ]
    return Timeline(tuple(rows), (end - begin) / 1e9, tuple(_thinned(steps)), more)


def timeline_text(scene: Scene, width: int = 100) -> str:
    """The rows as characters, and the batch size under them."""
    drawn = timeline(scene)
    if not drawn.rows:
        return ""
    room = max(20, width - 24)
    lines = [f"timeline: {seconds(drawn.seconds)} · {_legend_text()}"]
    lines += [f"  {label_of(row, 20):20} {''.join(char for char, _ in _cells(row, drawn, room))}" for row in drawn.rows]
    if drawn.batch:
        lines.append(f"  {f'batch, at most {drawn.n_running}':20} {_curve(drawn, room)}")
    return "\n".join([*lines, f"  … {drawn.more}"] if drawn.more else lines)


def timeline_rich(scene: Scene, width: int = 100, height: int | None = None) -> RenderableType:
    """The same in colour; with a height, in a third of it."""
    drawn = timeline(scene)
    if not drawn.rows:
        return Text("")
    room, limit = max(20, width - 24), MAX_ROWS if height is None else max(2, height // 3)
    lines = [Text(f"timeline: {seconds(drawn.seconds)} · {_legend_text()}", style="dim", no_wrap=True)]
    for row in drawn.rows[:limit]:
        line = Text(f"{label_of(row, 20):20} ", no_wrap=True, overflow="crop")
        for char, colour in _cells(row, drawn, room):
            line.append(char, style=SKY if colour == BLUE else colour)
        lines.append(line)
    if drawn.batch:
        lines.append(Text(f"{f'batch, at most {drawn.n_running}':20} {_curve(drawn, room)}", style="dim", no_wrap=True))
    n_more = len(drawn.rows) - limit
    more = drawn.more if n_more <= 0 else f"{n_more} more streams"
    return Group(*lines, *([Text(f"… {more}", style="dim")] if more else []))


# ------------------------------------------------------------------------------------------- from the history


def _row(stream: StreamView, calls: list[CallSpan], history: History, begin: int) -> Row:
    def at(t_ns: int | None) -> float:
        return ((history.end_ns if t_ns is None else t_ns) - begin) / 1e9

    bars: list[Bar] = []
    for call in calls:
        phases = [phase for request in call.requests for phase in request.phases]
        if phases:
            bars += [Bar(phase.name, at(phase.begin_ns), at(phase.end_ns)) for phase in phases]
        elif call.kind != "prefix":  # a backend that tells nothing of requests
            bars.append(Bar("decode", at(call.begin_ns), at(call.end_ns)))
    jumps = tuple(at(jump.t_ns) for call in calls for request in call.requests for jump in request.jumps)
    label = name_of(stream.label, stream.id, stream.parent, stream.branch)
    failed = bool(stream.error) and not stream.error.startswith("Cancelled")
    # What works is drawn over what waits: the choices of a select are requests side by side.
    bars.sort(key=lambda bar: ("queued", "prefill", "decode").index(bar.phase))
    return Row(label, stream.depth, at(stream.began_ns), at(stream.ended_ns), tuple(bars), jumps, failed)


def _thinned(steps: list[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
    """At most so many points that a curve can show, the highest of those that fall together."""
    every = -(-len(steps) // _MAX_STEPS) or 1
    return [max(steps[i : i + every], key=lambda step: step[1]) for i in range(0, len(steps), every)]


# ------------------------------------------------------------------------------------------------- characters


def label_of(row: Row, room: int) -> str:
    return shown("  " * min(row.depth, 4) + row.label, room)


def _cells(row: Row, drawn: Timeline, room: int) -> list[tuple[str, str]]:
    """A character with its colour for each column; the last phase that touches it is seen."""
    cells = [(" ", GREY)] * room
    scale = room / drawn.seconds

    def fill(begin: float, end: float, char: str, colour: str) -> None:
        first = min(max(int(begin * scale), 0), room - 1)
        for i in range(first, min(max(int(end * scale), first + 1), room)):
            cells[i] = (char, colour)

    fill(row.begin, row.end, _IDLE, GREY)
    for bar in row.bars:
        fill(bar.begin, bar.end, LOOKS[bar.phase].char, LOOKS[bar.phase].colour)
    for moment in row.jumps:
        fill(moment, moment, "◆", ORANGE)
    if row.failed:
        fill(row.end, row.end, FAILED.char, FAILED.colour)
    return cells


def _curve(drawn: Timeline, room: int) -> str:
    """The largest batch of each column."""
    heights = [0] * room
    columns = [min(int(at * room / drawn.seconds), room - 1) for at, _, _ in drawn.batch]
    for n, (first, (_, size, _)) in enumerate(zip(columns, drawn.batch, strict=True)):
        after = columns[n + 1] if n + 1 < len(columns) else room
        for i in range(first, max(after, first + 1)):
            heights[i] = max(heights[i], size)
    highest = max(drawn.n_running, 1)
    return "".join(_RISING[-(-n * 8 // highest) - 1] if n else " " for n in heights)


def _legend_text() -> str:
    return " ".join(f"{look.char} {look.word}" for look in LOOKS.values()) + " ◆ forced"
