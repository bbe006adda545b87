"""The radix tree as SVG boxes: width is tokens, height is leaves, so that area reads as KV memory.

Needs nothing but Python. All text is escaped, and the picture holds no script.

Not here: the look with circles and edges (`dot.py`), pages (`page.py`).
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks
from nbsglang.viz.paint import EVICTED, GREY, mark_of
from nbsglang.viz.prune import Drawn, pruned
from nbsglang.viz.text import brief, shown

MAX_NODES = 400

_ROW = 22  # pixels
_WIDTH = 960
_FOLD_TOKENS = 1 / 12  # the width of what is folded away, as a share of the whole
_STYLE = "text{fill:#222}.paper{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#1e1e1e}}"


class _Box(NamedTuple):
    drawn: Drawn
    column: int  # tokens before it
    row: int  # leaves above it
    n_columns: int
    n_rows: int


def icicle_svg(view: View, marks: Marks, calm: int | None = None) -> str:
    """The tree, left to right as a prompt reads."""
    boxes, n_rows, n_columns = _layout(pruned(view, marks, MAX_NODES, calm))
    scale = _WIDTH / max(n_columns, 1)
    height = max(n_rows, 1) * _ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="monospace" font-size="11" role="img"><title>radix tree</title><style>{_STYLE}</style>'
        '<defs><pattern id="gone" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="M0 6L6 0" stroke="{EVICTED.colour}"/></pattern></defs>'
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>'
    ]
    parts += [_box_svg(view, marks, box, scale) for box in boxes]
    return "".join([*parts, "</svg>"])


def _box_svg(view: View, marks: Marks, box: _Box, scale: float) -> str:
    x, y, w, h = box.column * scale, box.row * _ROW, max(box.n_columns * scale, 1.0), box.n_rows * _ROW
    node = box.drawn.node
    colour, fill, stroke, dashes, sign, text = GREY, "none", 1, ' stroke-dasharray="3"', "", box.drawn.words
    if node is not None:
        mark = mark_of(marks, node)
        colour, fill, sign = mark.colour, "url(#gone)" if mark is EVICTED else mark.colour, mark.sign
        text, stroke, dashes = brief(view.text_of(node.tokens)), 3 if node.locks else 1, ""
        title = f"node {node.id}, {len(node.tokens)} tokens: {shown(text, 300)}"
    else:
        title = text
    room = int(w / 7) - len(sign) - 1
    if node is None and room < len(text):
        text = f"+{box.drawn.n_nodes}"
    label = f"{sign} {shown(text, room)}".strip() if room > 1 else ""
    return (
        f'<g><title>{escape(title)}</title><rect x="{x:.1f}" y="{y + 1}" width="{w:.1f}" height="{h - 2}" '
        f'fill="{fill}" fill-opacity="0.25" stroke="{colour}" stroke-width="{stroke}"{dashes}/>'
        f'<text x="{x + 3:.1f}" y="{y + 15}">{escape(label)}</text></g>'
    )


def _layout(order: list[Drawn]) -> tuple[list[_Box], int, int]:
    """The boxes of all that is drawn, and the size of the whole in leaves and tokens."""
    leaves: dict[int, int] = {0: 0}
    for drawn in reversed(order):
        own = 1 if drawn.node is None else max(leaves.get(drawn.node.id, 0), 1)
        if drawn.node is not None:
            leaves[drawn.node.id] = own
        leaves[drawn.parent] = leaves.get(drawn.parent, 0) + own
    ends, rows = {0: 0}, {0: 0}  # the column where a node ends, the row of its next child
    for drawn in order:
        if drawn.node is not None:
            ends[drawn.node.id] = ends[drawn.parent] + len(drawn.node.tokens)
    n_fold = max(1, int(max(ends.values()) * _FOLD_TOKENS))
    boxes = []
    for drawn in order:
        column, row = ends[drawn.parent], rows[drawn.parent]
        n_rows = 1 if drawn.node is None else leaves[drawn.node.id]
        boxes.append(_Box(drawn, column, row, n_fold if drawn.node is None else len(drawn.node.tokens), n_rows))
        rows[drawn.parent] += n_rows
        if drawn.node is not None:
            rows[drawn.node.id] = row
    return boxes, rows[0], max((box.column + box.n_columns for box in boxes), default=0)
