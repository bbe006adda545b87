"""The automata that the generations of a run ran under, those that the log has a graph of; each is drawn once.

Not here: how an automaton looks (`fsm.py`), who asks the engine for the graphs (`notebook/graphs.py`).
"""

from __future__ import annotations

from rich.text import Text

from nbsglang.events import ConstraintGraph
from nbsglang.viz.fsm import fsm_html, fsm_text
from nbsglang.viz.scene import Scene
from nbsglang.viz.text import shown

MAX_GRAPHS = 6  # in one picture


def run_graphs(scene: Scene) -> list[tuple[str, ConstraintGraph]]:
    """The graphs of a run in the order of its calls, each with the names of the generations under it.

    Of a scene without a run, all graphs that the log has.
    """
    graphs = {f"{kind} {text}": graph for (kind, text), graph in scene.view.graphs.items()}
    if not scene.state:
        return [("", graph) for graph in graphs.values()]
    names: dict[str, dict[str, None]] = {}
    for stream in scene.streams:
        for call in stream.calls.values():
            if call.under in graphs:
                names.setdefault(call.under, {})[call.name] = None
    return [(", ".join(filter(None, called)), graphs[under]) for under, called in names.items()]


def fsms_text(scene: Scene, width: int = 100) -> str:
    """The automata below each other; "" if there are none."""
    drawn = run_graphs(scene)
    rows = [f"{_head(names)}{fsm_text(graph, width)}" for names, graph in drawn[:MAX_GRAPHS]]
    return "\n".join([*rows, *_more(drawn)])


def fsms_rich(scene: Scene, width: int = 100, height: int | None = None) -> Text:
    """The same in a terminal; with a height, in a third of it."""
    rows = fsms_text(scene, width).split("\n")
    limit = len(rows) if height is None else max(2, height // 3)
    return Text("\n".join([*rows[:limit], *(["…"] if len(rows) > limit else [])]))


def fsms_html(scene: Scene) -> str:
    """The automata as images below each other."""
    drawn = run_graphs(scene)
    parts = [f'<div style="margin-top:8px">{fsm_html(graph, names)}</div>' for names, graph in drawn[:MAX_GRAPHS]]
    return "".join(parts) + "".join(f'<div style="opacity:.75">{words}</div>' for words in _more(drawn))


def _head(names: str) -> str:
    return f"{shown(names, 60)}: " if names else ""


def _more(drawn: list[tuple[str, ConstraintGraph]]) -> list[str]:
    n = len(drawn) - MAX_GRAPHS
    return [f"… {n} more automat{'on' if n == 1 else 'a'}"] if n > 0 else []
