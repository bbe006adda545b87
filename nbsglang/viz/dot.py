"""The radix tree as the paper draws it: circles, and the text on the edges between them; graphviz lays it out.

Labels are quoted: nothing in a text can end or format them. Without the program `dot` there is no such picture
(`icicle.py` has one that needs nothing).

Not here: pages (`page.py`).
"""

from __future__ import annotations

import re
import shutil
import subprocess

from graphviz import Digraph, escape, nohtml

from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks
from nbsglang.viz.paint import BLUE, EVICTED, GREY, SKY, mark_of
from nbsglang.viz.prune import Drawn, pruned
from nbsglang.viz.state import Node
from nbsglang.viz.text import SPECIAL, brief, shown

MAX_NODES = 200
_TIMEOUT_S = 5.0
_LINE, _N_LINES = 18, 3  # characters of an edge's text
_WORD = re.compile(f"[^ ⏎{SPECIAL}]*[ ⏎{SPECIAL}]*")
_RAGGED = 10  # characters that ends of lines may leave free
_FONT = "DejaVu Sans Mono,Menlo,Consolas,monospace"
_INK = {"fontname": _FONT, "fontsize": "9", "color": GREY, "fontcolor": "#222222"}
GRAPH = {"rankdir": "LR", "bgcolor": "transparent", "nodesep": "0.24", "ranksep": "0.22", "pad": "0.1"}
_SIZE = {"margin": "0.02", "width": "0.36", "height": "0.36"}
NODE = {"shape": "circle", "style": "filled", "fillcolor": "#ffffff", **_SIZE, **_INK}
EDGE = {"arrowsize": "0.5", **_INK}
# Inside an image, where the page's own colours do not reach.
_STYLE = (
    f"<style>svg{{background:#fff;border-radius:6px}}text{{font:9px {_FONT};text-anchor:middle;fill:#222}}"
    "polygon~text{transform:translateY(-1px)}"  # texts of edges: off their line, and not into the one above
    "@media(prefers-color-scheme:dark){svg{background:#1e1e1e}"
    'text{fill:#ddd}[fill="#ffffff"]{fill:#1e1e1e}'
    f'[stroke="{BLUE}"]{{stroke:{SKY}}}[fill="{BLUE}"]{{fill:{SKY}}}}}</style>'
)


_SHARED = re.compile(r' (?:font-family|font-size|text-anchor|id|class)="[^"]*"| fill="#222222"')
_NUMBER = re.compile(r"(\d\.\d)\d+")


def tree_dot(view: View, marks: Marks | None = None, limit: int = MAX_NODES, *, calm: int | None = None) -> str:
    """The tree as graphviz source, left to right, in at most `limit` nodes; marks are those of the latest step.

    `calm` is that of `pruned`.
    """
    marks = marks or view.marks
    graph = Digraph(graph_attr=GRAPH, node_attr=NODE, edge_attr=EDGE)
    graph.node("n0", "root")
    for drawn in pruned(view, marks, limit, calm):
        if drawn.node is None:
            _add_fold(graph, drawn)
        else:
            _add_node(graph, view, marks, drawn, drawn.node)
    return str(graph.source)


def dot_svg(source: str) -> str | None:
    """The SVG of graphviz source, made to stand in an <img>; None where `dot` is missing or fails."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=source.encode("utf-8", errors="replace"),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
            start_new_session=True,  # an interrupt of the cell is not for it
        )
    except (OSError, subprocess.SubprocessError):
        return None
    svg = done.stdout.decode("utf-8", errors="replace")
    return _slim(svg[max(svg.find("<svg"), 0) :])


def _slim(svg: str) -> str:
    """The same picture in less than half of the bytes: what all texts share is in the style, tenths of a point do."""
    svg = re.sub(r"<!--.*?-->|<title>.*?</title>|\n", "", svg, flags=re.DOTALL)
    parts = re.split(r"(<[^>]*>)", svg)  # in texts, < and > are escaped
    parts[1::2] = [_NUMBER.sub(r"\1", _SHARED.sub("", tag)) for tag in parts[1::2]]
    return "".join(parts).replace("<g >", "<g>").replace(">", f">{_STYLE}", 1)


def _add_node(graph: Digraph, view: View, marks: Marks, drawn: Drawn, node: Node) -> None:
    mark = mark_of(marks, node)
    look = {"color": mark.colour, "penwidth": "1.6" if mark.sign else "1"}
    if mark is EVICTED:
        look["style"] = "dashed"
    head = [mark.sign, str(len(node.tokens))] if mark.sign else [str(len(node.tokens))]
    graph.node(f"n{node.id}", label(head), **({"peripheries": "2", **look} if node.locks else look))
    text = wrapped(shown(brief(view.text_of(node.tokens)), _LINE * _N_LINES - _RAGGED))
    graph.edge(f"n{drawn.parent}", f"n{node.id}", label(text), **look)


def _add_fold(graph: Digraph, drawn: Drawn) -> None:
    graph.node(f"f{drawn.parent}", label([drawn.words]), shape="box", style="dotted,rounded", margin="0.06")
    graph.edge(f"n{drawn.parent}", f"f{drawn.parent}", style="dotted")


def wrapped(text: str, line: int = _LINE) -> list[str]:
    """Lines that break where words, lines or special tokens end, or inside a word that is longer than a line."""
    lines = [""]
    for word in _WORD.findall(text):
        for at in range(0, len(word), line):
            piece = word[at : at + line]
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > line:
                lines.append("")
            lines[-1] += piece
    return lines


def label(lines: list[str]) -> str:
    """Nothing in the lines is an escape or HTML to graphviz, and none is an entity such as &lt;."""
    quoted: str = nohtml("\\n".join(escape(line).replace("&", "&amp;") for line in lines))  # str() would undo it
    return quoted
