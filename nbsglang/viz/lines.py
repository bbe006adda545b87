"""Plain text: for a file, a log, a terminal that shows nothing else, and as the text/plain of an output.

Not here: colours (`terminal.py`).
"""

from __future__ import annotations

import textwrap

from nbsglang.viz.numbers import line, run_figures
from nbsglang.viz.paint import KINDS, mark_of, state_mark
from nbsglang.viz.prune import pruned
from nbsglang.viz.scene import Lane, Scene, lanes, merged, seconds
from nbsglang.viz.state import Part
from nbsglang.viz.text import brief, shown

MAX_LANES = 30
MAX_NODES = 40
_MAX_LITERAL, _MAX_WRITTEN = 160, 600  # characters of one piece


def headline(scene: Scene) -> str:
    """Title, state and time of a run in one line; "" for a scene without a run."""
    if not scene.state:
        return shown(scene.title, 80)
    mark = state_mark(scene.state)
    time = "" if scene.seconds is None else f" · {seconds(scene.seconds)}"
    return f"{mark.sign} {shown(scene.title, 80)} {mark.word}{time}"


def numbers_text(scene: Scene) -> str:
    """The figures in one line."""
    return line(run_figures(scene))


def streams_text(scene: Scene, width: int = 100) -> str:
    """The streams below each other, indented by depth, each with its figures and its text."""
    shown_lanes, more = lanes(scene, MAX_LANES)
    rows = [row for lane in shown_lanes for row in _lane_rows(lane, width)]
    return "\n".join([*rows, f"… {more}"] if more else rows)


def tree_text(scene: Scene, width: int = 100) -> str:
    """The radix tree, a node a line."""
    rows = [tree_title(scene)]
    for drawn in pruned(scene.view, scene.marks, MAX_NODES, scene.calm):
        indent = "  " * (drawn.depth + 1)
        if drawn.node is None:
            rows.append(f"{indent}… {drawn.words}")
            continue
        lock = " (locked)" if drawn.node.locks else ""
        head = f"{indent}{mark_of(scene.marks, drawn.node).sign or '·'} {len(drawn.node.tokens)}{lock} "
        rows.append(head + shown(brief(scene.view.text_of(drawn.node.tokens)), max(12, width - len(head))))
    return "\n".join(rows)


def tree_title(scene: Scene) -> str:
    """How large the tree is."""
    view = scene.view
    n_tokens = sum(len(node.tokens) for node in view.nodes.values())
    n_nodes = len(view.nodes)
    words = f"radix tree: {n_nodes:,} node{'s'[: n_nodes != 1]}, {n_tokens:,} token{'s'[: n_tokens != 1]}"
    return words if view.complete else f"{words} (waiting for a snapshot)"


def _lane_rows(lane: Lane, width: int) -> list[str]:
    indent, mark = "    " * lane.depth, state_mark(lane.state)
    rows = [" · ".join([f"{indent}{mark.sign} {shown(lane.label, 40)} {mark.word}", *lane.figures])]
    for piece in merged(lane.pieces):
        rows += _piece_rows(piece, f"{indent}  ", width)
    return rows


def _piece_rows(piece: Part, indent: str, width: int) -> list[str]:
    text = shown(piece.text, _MAX_LITERAL if piece.kind in {"literal", "value"} else _MAX_WRITTEN)
    if not text.strip() and not piece.name:
        return []
    head = " ".join(filter(None, [KINDS[piece.kind].sign, shown(piece.name, 40) + ":" if piece.name else ""]))
    room = max(20, width - len(indent) - 2)
    wrapped = textwrap.wrap(f"{head} {text}" if head else text, room, drop_whitespace=False) or [head]
    return [f"{indent}{'' if n == 0 else '  '}{row}" for n, row in enumerate(wrapped)]
