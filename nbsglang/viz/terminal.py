"""Renderables of rich for terminals: the streams and the radix tree, in colour.

All text is `Text`, never markup, and made of visible characters only: nothing in it can colour, move or hide.

Not here: plain text (`lines.py`), the live display (`notebook/live.py`).
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from nbsglang.viz.lines import headline, tree_title
from nbsglang.viz.numbers import run_figures
from nbsglang.viz.paint import BLUE, KINDS, SKY, Mark, mark_of, state_mark
from nbsglang.viz.prune import pruned
from nbsglang.viz.scene import Lane, Scene, lanes, merged
from nbsglang.viz.state import Part
from nbsglang.viz.text import brief, elide, shown

_MAX_NODES = 60
_ROOMY, _TIGHT = 400, 60  # characters of a piece: where there is room, and where a lane is one line


def head_rich(scene: Scene) -> Text:
    """Title, state and time."""
    return Text(headline(scene), style=f"bold {_colour(state_mark(scene.state))}", no_wrap=True, overflow="ellipsis")


def numbers_rich(scene: Scene, width: int = 100, height: int | None = None) -> Text:
    """The figures, in as many lines as the width needs."""
    parts: list[tuple[str, str]] = []
    for figure in run_figures(scene):
        parts += [(" · " if parts else "", "dim"), (f"{figure.name} ", "dim"), (figure.value, "bold")]
    return Text.assemble(*parts)


def streams_rich(scene: Scene, width: int = 100, height: int | None = None) -> RenderableType:
    """The streams as a tree of lanes; with a height, in about so many lines."""
    shown_lanes, more = lanes(scene, 40 if height is None else max(1, min(40, height)))
    is_tight = height is not None and sum(1 + len(lane.pieces) for lane in shown_lanes) > height
    roots: list[Tree] = []
    above: list[Tree] = []  # the latest lane of each depth
    for lane in shown_lanes:
        del above[lane.depth :]
        tree = Tree(_lane_text(lane, is_tight), guide_style="dim")
        (above[-1].children if above else roots).append(tree)
        above.append(tree)
    return Group(*roots, *([Text(f"… {more}", style="dim")] if more else []))


def tree_rich(scene: Scene, width: int = 100, height: int | None = None) -> Tree:
    """The radix tree for a terminal of `width` columns; with a height, in a third of it."""
    limit = _MAX_NODES if height is None else max(2, height // 3)
    root = Tree(Text(tree_title(scene)), guide_style="dim")
    branches = {0: root}
    for drawn in pruned(scene.view, scene.marks, limit, scene.calm):
        if drawn.node is None:
            branches[drawn.parent].add(Text(f"… {drawn.words}", style="dim"))
            continue
        node, mark = drawn.node, mark_of(scene.marks, drawn.node)
        sign = mark.sign + (" 🔒" if node.locks else "")
        count = f" {len(node.tokens)} " if sign else f"{len(node.tokens)} "
        text = shown(
            brief(scene.view.text_of(node.tokens)), max(8, width - 4 * (drawn.depth + 1) - len(count) - len(sign) - 4)
        )
        label = Text.assemble((sign, _colour(mark)), (count, "dim"), text, no_wrap=True, overflow="ellipsis")
        branches[node.id] = branches[drawn.parent].add(label)
    return root


def _lane_text(lane: Lane, is_tight: bool) -> Text:
    mark = state_mark(lane.state)
    text = Text.assemble((f"{mark.sign} ", _colour(mark)), (shown(lane.label, 40), "bold"), overflow="fold")
    figures = " · ".join([mark.word, *lane.figures])
    if is_tight:
        if lane.pieces:
            text.append("  ").append_text(_piece(lane.pieces[-1], _TIGHT))
        text.append(f"  {figures}", "dim")
        text.no_wrap, text.overflow = True, "ellipsis"
        return text
    text.append(f"  {figures}", "dim")
    for piece in merged(lane.pieces):
        if piece.text.strip() or piece.name:
            text.append("\n").append_text(_piece(piece, _ROOMY))
    return text


def _piece(piece: Part, room: int) -> Text:
    mark = KINDS[piece.kind]
    room = room if piece.kind in {"gen", "choice", "partial"} else min(room, 160)
    words = shown(piece.text, room)
    if not mark.sign:
        said = f"{elide(shown(piece.name), 40)}: " if piece.name else ""
        return Text.assemble((said, "bold dim"), (words, "dim"))
    name = f" {elide(shown(piece.name), 40)}:" if piece.name else ""
    return Text.assemble((f"{mark.sign}{name} ", _colour(mark)), words)


def _colour(mark: Mark) -> str:
    """The mark's colour; most terminals are dark, and blue is not to be seen there."""
    return SKY if mark.colour == BLUE else mark.colour
