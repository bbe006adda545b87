"""What a picture of one run is drawn from: the view, which streams are the run's, and what is told about its end.

Not here: the pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks
from nbsglang.viz.state import Part, StreamView
from nbsglang.viz.text import name_of

Stats = Mapping[str, float | None]
_CALM = 24


@dataclass(frozen=True)
class Scene:
    """See the module. `streams` come in their order; `stats` are the run's own, for backends that log no requests."""

    view: View
    streams: tuple[StreamView, ...] = ()
    marks: Marks = field(default_factory=Marks)
    title: str = ""
    state: str = "running"
    seconds: float | None = None
    stats: Stats = field(default_factory=dict)

    @property
    def calm(self) -> int | None:
        """Below a run: how many nodes the tree may have before those that the run has not touched are folded."""
        return _CALM if self.state else None

    @classmethod
    def of_engine(cls, view: View, title: str = "") -> Scene:
        """A whole engine, without the streams of any run."""
        return cls(view, marks=view.marks, title=title, state="")


@dataclass(frozen=True)
class Lane:
    """One stream as it is drawn: its state, a few figures, its pieces; the last piece may still grow (`is_live`)."""

    label: str
    depth: int
    state: str
    figures: tuple[str, ...]
    pieces: tuple[Part, ...]
    is_live: bool
    tokens: tuple[int, int, int]  # cached, computed, generated


MAX_DEPTH = 8  # deeper lanes are indented no further
_MAX_PIECES = 40  # of one lane, the latest


def lanes(scene: Scene, limit: int) -> tuple[list[Lane], str]:
    """At most `limit` lanes, rather those that failed or run, and words on what is left out ("" if nothing is)."""
    streams = scene.streams
    if len(streams) <= limit:
        return [_lane(scene.view, stream) for stream in streams], ""
    ranked = sorted(range(len(streams)), key=lambda i: (_rank(streams[i]), i))
    chosen = set(ranked[:limit])
    left = [stream.state for i, stream in enumerate(streams) if i not in chosen]
    words = ", ".join(f"{left.count(state)} {state}" for state in dict.fromkeys(left))
    return [_lane(scene.view, s) for i, s in enumerate(streams) if i in chosen], f"{len(left)} more streams: {words}"


def _rank(stream: StreamView) -> int:
    if not stream.parent:
        return 0
    return {"failed": 1, "running": 2, "waiting": 3}.get(stream.state, 4)


def _lane(view: View, stream: StreamView) -> Lane:
    pieces = stream.parts[-_MAX_PIECES:]
    if len(stream.parts) > _MAX_PIECES:
        pieces.insert(0, Part("literal", "", f"… {len(stream.parts) - _MAX_PIECES} pieces before …"))
    call = stream.open_call if not stream.ended else None
    if call is not None:
        pieces.append(Part("choice" if call.kind == "score" else "gen", call.name, view.live_text(stream), call.under))
    return Lane(
        name_of(stream.label, stream.id, stream.parent, stream.branch),
        min(stream.depth, MAX_DEPTH),
        stream.state,
        tuple(_figures(stream)),
        tuple(_spoken(pieces)),
        call is not None,
        (stream.n_cached, stream.n_computed, stream.n_generated),
    )


def _spoken(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts without the roles, whose names are now those of the literals that begin them."""
    role = ""
    for part in parts:
        if part.kind == "role":
            role = part.name
        elif part.kind == "literal" and role:
            yield part._replace(name=role)
            role = ""
        else:
            role = role if part.kind == "value" else ""
            yield part


def merged(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts, with literals that follow each other in one message made one."""
    literal: Part | None = None
    for part in parts:
        if literal is not None and part.kind == "literal" and not part.name:
            literal = literal._replace(text=literal.text + part.text)
            continue
        if literal is not None:
            yield literal
        literal = part if part.kind == "literal" else None
        if literal is None:
            yield part
    if literal is not None:
        yield literal


def _figures(stream: StreamView) -> Iterator[str]:
    if stream.n_cached or stream.n_computed:
        yield f"{stream.n_cached} cached"
        yield f"{stream.n_computed} prefilled"
    if stream.n_generated:
        yield f"{stream.n_generated} generated"
    if stream.first_token_s is not None:
        yield f"first token {seconds(stream.first_token_s)}"
    if (speed := stream.tokens_per_s) is not None:
        yield f"{speed:.1f} tok/s" if speed < 100 else f"{speed:.0f} tok/s"


def seconds(value: float) -> str:
    """A time in few characters."""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s" if value < 100 else f"{value:.0f} s"
