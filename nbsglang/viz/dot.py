"""The radix tree as the paper draws it: circles, and the text on the edges between them; graphviz lays it out.

Labels are quoted: nothing in a text can end or format them. Without the program `dot` there is no such picture
(`icicle.py` has one that needs nothing).

Not here: pages (`page.py`).
"""

from __future__ import annotations

import re
import shutil
import subprocess

from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks
from nbsglang.viz.paint import BLUE, EVICTED, GREY, SKY, mark_of
from nbsglang.viz.prune import Drawn, pruned
from nbsglang.viz.text import SPECIAL, brief, shown

MAX_NODES = 200
_TIMEOUT_S = 5.0
_LINE, _N_LINES = 18, 3  # characters of an edge's text
_WORD = re.compile(f"[^ ⏎{SPECIAL}]*[ ⏎{SPECIAL}]*")
_RAGGED = 10  # characters that ends of lines may leave free
_FONT = "DejaVu Sans Mono,Menlo,Consolas,monospace"
_HEAD = (
    'digraph { rankdir=LR; bgcolor="transparent"; nodesep=0.14; ranksep=0.22; pad=0.1;\n'
    f'node [shape=circle, style=filled, fillcolor="#ffffff", fontname="{_FONT}", fontsize=9, margin=0.02, width=0.36, '
    f'height=0.36, color="{GREY}", fontcolor="#222222"];\n'
    f'edge [fontname="{_FONT}", fontsize=9, arrowsize=0.5, color="{GREY}", fontcolor="#222222"];\n'
    'n0 [label="root"];'
)
# Inside an image, where the page's own colours do not reach.
_STYLE = (
    f"<style>svg{{background:#fff;border-radius:6px}}text{{font:9px {_FONT};text-anchor:middle;fill:#222}}"
    "polygon~text{transform:translateY(-3px)}"  # texts of edges, off the line
    "@media(prefers-color-scheme:dark){svg{background:#1e1e1e}"
    'text{fill:#ddd}[fill="#ffffff"]{fill:#1e1e1e}'
    f'[stroke="{BLUE}"]{{stroke:{SKY}}}[fill="{BLUE}"]{{fill:{SKY}}}}}</style>'
)


_SHARED = re.compile(r' (?:font-family|font-size|text-anchor|id|class)="[^"]*"| fill="#222222"')
_NUMBER = re.compile(r"(\d\.\d)\d+")


def tree_dot(view: View, marks: Marks | None = None, limit: int = MAX_NODES) -> str:
    """The tree as graphviz source, left to right, in at most `limit` nodes; marks are those of the latest step."""
    marks = marks or view.marks
    lines = [_HEAD]
    for drawn in pruned(view, marks, limit):
        lines += _fold_lines(drawn) if drawn.node is None else _node_lines(view, marks, drawn)
    return "\n".join([*lines, "}"])


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


def _node_lines(view: View, marks: Marks, drawn: Drawn) -> list[str]:
    node = drawn.node
    assert node is not None
    mark = mark_of(marks, node)
    head = [mark.sign, str(len(node.tokens))] if mark.sign else [str(len(node.tokens))]
    look = f'color="{mark.colour}"'
    if node.locks:
        look += ", peripheries=2"
    edge = look = f"{look}, penwidth={1.6 if mark.sign else 1}{', style=dashed' if mark is EVICTED else ''}"
    text = _wrapped(shown(brief(view.text_of(node.tokens)), _LINE * _N_LINES - _RAGGED))
    edge = edge.replace(", peripheries=2", "")
    return [
        f'n{node.id} [label="{_label(head)}", {look}];',
        f'n{drawn.parent} -> n{node.id} [label="{_label(text)}", {edge}];',
    ]


def _fold_lines(drawn: Drawn) -> list[str]:
    return [
        f'f{drawn.parent} [label="{_label([drawn.words])}", shape=box, style="dotted,rounded", margin=0.06];',
        f"n{drawn.parent} -> f{drawn.parent} [style=dotted];",
    ]


def _wrapped(text: str) -> list[str]:
    """Lines that break where words, lines or special tokens end, or inside a word that is longer than a line."""
    lines = [""]
    for word in _WORD.findall(text):
        for at in range(0, len(word), _LINE):
            piece = word[at : at + _LINE]
            if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > _LINE:
                lines.append("")
            lines[-1] += piece
    return lines


def _label(lines: list[str]) -> str:
    """For a quoted label: backslashes and quotes escaped, so that no escape of graphviz is left but our line ends."""
    # graphviz reads entities such as &lt; in labels
    safe = [line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines]
    return "\\n".join(safe)
