"""HTML that stands by itself: inline styles, no script, the tree as an image; readable in nbconvert and on GitHub too.

Text is escaped and wraps wherever it must. Background and text colours are painted together, those of the front end
where it names them. Every colour has a sign beside it, since sanitizers may drop all styles.

Not here: what is shown (`scene.py`), when (`notebook/live.py`), how an image follows the page (`image.py`).
"""

from __future__ import annotations

from html import escape

from nbsglang.viz.dot import dot_svg, tree_dot
from nbsglang.viz.icicle import icicle_svg
from nbsglang.viz.image import image_html, themes
from nbsglang.viz.lines import tree_title
from nbsglang.viz.numbers import Figure, run_figures
from nbsglang.viz.paint import BLUE, GREEN, GREY, KINDS, LEGEND, state_mark
from nbsglang.viz.scene import Lane, Scene, lanes, seconds
from nbsglang.viz.state import Part
from nbsglang.viz.text import SPECIAL, shown, shown_lines

MAX_LANES = 40
_MAX_LITERAL, _MAX_VALUE, _MAX_WRITTEN = 320, 120, 1500  # characters of one piece
_MAX_CHOICES = 8  # of a select, whose shares are told

_FRAME = (
    "background:var(--jp-layout-color1,var(--vscode-editor-background,#fff));"
    "color:var(--jp-content-font-color1,var(--vscode-editor-foreground,#222));"
    "border:1px solid var(--jp-border-color2,var(--vscode-panel-border,#ddd));border-radius:6px;"
    "padding:8px 12px;margin:0;max-width:100%;box-sizing:border-box;overflow:hidden;"
    "font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif)"
)
_WRAP = "white-space:pre-wrap;overflow-wrap:anywhere;word-break:break-word"
_MONO = "font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:12px"
_FAINT = "opacity:.75"


def page(title: str, *sections: str) -> str:
    """A frame around sections, which are HTML already; `title` too. Its class keeps MathJax off: $1 is no maths."""
    html = title + "".join(sections)
    return f'<div class="tex2jax_ignore mathjax_ignore" style="{_FRAME}">{themes(html)}{html}</div>'


def head_html(scene: Scene) -> str:
    """Title, state and time."""
    if not scene.state:
        return f"<div><b>{escape(shown(scene.title, 80))}</b></div>" if scene.title else ""
    mark = state_mark(scene.state)
    time = "" if scene.seconds is None else f" · {seconds(scene.seconds)}"
    return (
        f'<div style="margin-bottom:4px"><b style="border-bottom:2px solid {mark.colour}">{mark.sign} '
        f'{escape(shown(scene.title, 80))}</b> <span style="{_FAINT}">{mark.word}{time}</span></div>'
    )


def numbers_html(scene: Scene) -> str:
    """The figures side by side."""
    return figures_html(run_figures(scene))


def figures_html(figures: list[Figure]) -> str:
    """Names and values side by side, in as many rows as it takes."""
    cells = " ".join(
        f'<span style="display:inline-block;margin-right:18px"><span style="{_FAINT}">{escape(name)}</span> '
        f"<b>{escape(value)}</b></span>"
        for name, value in figures
    )
    return f'<div style="margin:2px 0 6px">{cells}</div>'


def streams_html(scene: Scene) -> str:
    """The streams as lanes, indented by depth, their text as chips by kind."""
    shown_lanes, more = lanes(scene, MAX_LANES)
    rows = "".join(map(_lane_html, shown_lanes))
    return f'<div role="list">{rows}</div>' + (f'<div style="{_FAINT}">… {escape(more)}</div>' if more else "")


def tree_html(scene: Scene) -> str:
    """The radix tree as an image, with a legend."""
    title = escape(tree_title(scene))
    if not scene.view.nodes and not scene.marks.evicted:
        return f'<div style="margin-top:8px">{title}</div>'
    legend = " ".join(
        f'<span style="white-space:nowrap"><b style="color:{mark.colour}">{mark.sign}</b> {mark.word}</span>'
        for mark in LEGEND
    )
    svg = dot_svg(tree_dot(scene.view, scene.marks, calm=scene.calm))
    locked = f"{'double' if svg else 'thick'} border: locked"
    svg = svg or icicle_svg(scene.view, scene.marks, scene.calm)
    legend += f" · {locked}" + (f" · {SPECIAL} special token" if SPECIAL in svg else "")
    head = f'<div style="margin-top:8px">{title} <span style="{_FAINT};margin-left:10px">{legend}</span></div>'
    return head + image_html(svg, tree_title(scene))


def _lane_html(lane: Lane) -> str:
    mark = state_mark(lane.state)
    figures = " · ".join([mark.word, *lane.figures])
    pieces = " ".join(
        _piece_html(piece, lane.is_live and n == len(lane.pieces)) for n, piece in enumerate(lane.pieces, 1)
    )
    return (
        f'<div role="listitem" style="margin:0 0 6px {22 * lane.depth}px;padding-left:8px;'
        f'border-left:3px solid {mark.colour}"><div><span>{mark.sign}</span> <b>{escape(shown(lane.label, 40))}</b> '
        f'<span style="{_FAINT}">{escape(figures)}</span></div>{_bar(lane)}'
        f'<div style="{_WRAP};{_MONO}">{pieces}</div></div>'
    )


def _bar(lane: Lane) -> str:
    """Cached, prefilled and generated tokens as parts of a line; their numbers stand above it."""
    total = sum(lane.tokens)
    if not total:
        return ""
    # Sanitizers take the hatching off, and leave the colour.
    hatched = f"{BLUE};background-image:repeating-linear-gradient(135deg,transparent 0 3px,#fffa 3px 6px)"
    fills = (hatched, GREY, GREEN)
    parts = [(n, fill) for n, fill in zip(lane.tokens, fills, strict=True) if n]
    spans = "".join(f'<span style="flex:{n};background-color:{fill}"></span>' for n, fill in parts)
    return f'<div aria-hidden="true" style="display:flex;height:5px;max-width:420px;margin:1px 0 3px">{spans}</div>'


def _piece_html(piece: Part, is_live: bool) -> str:
    mark = KINDS[piece.kind]
    if piece.kind == "literal":
        text = escape(shown(piece.text, _MAX_LITERAL))
        seam = f"{_FAINT};border-left:1px dotted {GREY};padding:0 3px"  # where one literal ends and another begins
        said = f'<b style="{_FAINT}">{escape(shown(piece.name, 40))}:</b> ' if piece.name else ""
        return f'{said}<span title="{mark.word}" style="{seam}">{text}</span>' if text.strip() or said else ""
    is_value = piece.kind == "value"
    text = escape(shown(piece.text, _MAX_VALUE) if is_value else shown_lines(piece.text, _MAX_WRITTEN))
    name = f"{escape(shown(piece.name, 40))}:" if piece.name else ""
    line = {"gen": "solid", "choice": "double", "partial": "dashed", "value": "dotted"}[piece.kind]
    cursor = "▌" if is_live else ""
    title = escape(_title(piece, mark.word))
    return (
        f'<span title="{title}" style="background:{mark.colour}26;border-bottom:{3 if line == "double" else 2}px '
        f"{line} {mark.colour};border-radius:3px 3px 0 0;padding:0 3px;-webkit-box-decoration-break:clone;"
        f'box-decoration-break:clone"><b>{mark.sign} {name}</b> {text}{cursor}</span>'
    )


def _title(piece: Part, word: str) -> str:
    """What the piece is, under which constraint, and out of which choices."""
    if piece.under:
        return f"{word} under {shown(piece.under, _MAX_VALUE)}"
    if not piece.scores:
        return word
    shares = ", ".join(f"{shown(each.choice, 40)} {each.share:.1%}" for each in piece.scores[:_MAX_CHOICES])
    left = len(piece.scores) - _MAX_CHOICES
    return f"{word} by score: {shares}{f', {left} more' if left > 0 else ''}"
