"""The compressed automaton of a constraint: circles, and edges with what may follow; a forced text is one bold edge.

What is drawn is folded (`fsm_fold.py`). Labels are quoted and bounded, as those of trees are (`dot.py`); without the
program `dot` there is text.

Not here: how an automaton comes about, pages (`page.py`).
"""

from __future__ import annotations

from html import escape

from graphviz import Digraph

from nbsglang.events import ConstraintGraph
from nbsglang.viz import page
from nbsglang.viz.dot import EDGE, GRAPH, NODE, dot_svg, label, wrapped
from nbsglang.viz.fsm_fold import Fsm, FsmEdge, folded
from nbsglang.viz.image import image_html, width_of
from nbsglang.viz.paint import BLUE, SKY
from nbsglang.viz.picture import Picture
from nbsglang.viz.text import elide, shown

MAX_ROWS = 80  # of text
WIDTH = 900  # pixels in which a picture should be read
_WIDE, _NARROW, _N_LINES = 24, 16, 4  # characters and lines of an edge's text, left to right and top down
_FORCED = {"color": BLUE, "fontcolor": BLUE, "penwidth": "2.4"}
_INK = (
    f'text[fill="{BLUE}"]{{fill:{BLUE};font-weight:bold}}'
    f'@media(prefers-color-scheme:dark){{text[fill="{BLUE}"]{{fill:{SKY}}}}}'
)


def fsm_dot(graph: ConstraintGraph, *, is_tall: bool = False) -> str:
    """The automaton as graphviz source, left to right, or top down."""
    fsm = folded(graph)
    look = GRAPH | {"rankdir": "TB", "nodesep": "0.2"} if is_tall else GRAPH | {"nodesep": "0.36"}
    line = _NARROW if is_tall else _WIDE
    drawn = Digraph(graph_attr=look, node_attr=NODE | {"width": "0.3", "height": "0.3"}, edge_attr=EDGE)
    if fsm.start is not None:
        drawn.node("start", "", shape="point", width="0.09", height="0.09")
        drawn.edge("start", f"n{fsm.start}", "")
    for n in range(fsm.n_nodes):
        drawn.node(f"n{n}", str(n), **({"peripheries": "2"} if n in fsm.accepting else {}))
    for edge in fsm.edges:
        lines = [f" {part} " for part in wrapped(_said(edge, line * _N_LINES - line // 2), line)]
        drawn.edge(f"n{edge.source}", f"n{edge.target}", label(lines), **(_FORCED if edge.is_forced else {}))
    return str(drawn.source)


def fsm_svg(graph: ConstraintGraph) -> str | None:
    """The automaton as SVG, left to right if that is not too wide; None without `dot`."""
    pictures = []
    for is_tall in (False, True):
        svg = dot_svg(fsm_dot(graph, is_tall=is_tall))
        if svg is None:
            break
        pictures.append(svg)
        if width_of(svg) <= WIDTH:
            break
    if not pictures:
        return None
    best = min(pictures, key=lambda svg: max(width_of(svg), WIDTH))
    return best.replace("</style>", f"{_INK}</style>", 1)


def fsm_text(graph: ConstraintGraph, width: int = 100) -> str:
    """The automaton, an edge a line: `═` leads over a forced text, double brackets are where the text may end."""
    fsm = folded(graph)
    rows = [fsm_title(graph)]
    before = None
    for edge in sorted(fsm.edges, key=lambda edge: edge.source)[:MAX_ROWS]:
        head = "" if edge.source == before else _node(fsm, edge.source)
        line = "═" if edge.is_forced else "─"
        end = f" {line}▶ {_node(fsm, edge.target).strip()}"
        before = edge.source
        rows.append(f"{head:>9} {line} {_said(edge, max(12, width - len(end) - 12))}{end}")
    if len(fsm.edges) > MAX_ROWS:
        rows.append(f"{'':9} … {len(fsm.edges) - MAX_ROWS} more edges")
    return "\n".join(rows)


def fsm_title(graph: ConstraintGraph) -> str:
    """What it is the automaton of, and how large it is."""
    n_nodes, n_edges, n_forced = len(graph.nodes), len(graph.edges), sum(n > 0 for *_, n in graph.edges)
    words = f"{n_nodes:,} state{'s'[: n_nodes != 1]}, {n_edges:,} edge{'s'[: n_edges != 1]}, {n_forced:,} forced"
    rest = "" if graph.is_whole else " (the rest is left out)"
    return f"compressed automaton of {shown(graph.kind, 12)} {shown(graph.text, 60)}: {words}{rest}"


def fsm_html(graph: ConstraintGraph, names: str = "") -> str:
    """The automaton as an image with a legend, or as text where it cannot be drawn; `names` stand before its title."""
    svg = fsm_svg(graph)
    title = (f"<b>{escape(shown(names, 60))}</b>: " if names else "") + escape(fsm_title(graph))
    if svg is None:
        return f'<pre style="margin:0;overflow:auto;color:inherit;background:inherit">{escape(fsm_text(graph))}</pre>'
    legend = (
        f'<b style="color:{BLUE}">━</b> forced text, no choice of the model · ─ one of some characters · '
        "◎ the text may end"
    )
    return f'<div>{title}</div><div style="opacity:.75">{legend}</div>{image_html(svg, fsm_title(graph), height=960)}'


def fsm_display(graph: ConstraintGraph) -> Picture:
    """The automaton for a notebook and a terminal."""
    return Picture(page.page("", fsm_html(graph)), fsm_text(graph))


def _said(edge: FsmEdge, room: int) -> str:
    """The text of an edge in one line; spaces at its ends are to be seen."""
    text = elide(shown(edge.text), room - len(edge.times))
    bare = text.strip(" ")
    n_before = len(text) - len(text.lstrip(" ")) if bare else len(text)
    return f"{'␣' * n_before}{bare}{'␣' * (len(text) - n_before - len(bare))}{edge.times}"


def _node(fsm: Fsm, n: int) -> str:
    begin, end = ("((", "))") if n in fsm.accepting else ("(", ")")
    return f"{'→ ' if n == fsm.start else '  '}{begin}{n}{end}"
