"""Pictures of a folded state that do not move: rich for terminals, SVG and HTML for notebooks, graphviz source.

All text is hostile: rich gets `Text` (never markup), SVG and HTML are escaped and hold no script, labels of graphviz
are quoted, control characters are shown instead of sent.

Not here: the state (`fold.py`), live widgets.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from rich.text import Text
from rich.tree import Tree

from nbsglang.viz.fold import View
from nbsglang.viz.state import Node
from nbsglang.viz.text import shown

# The Okabe-Ito palette, which colour-blind readers can tell apart; each mark has a sign as well.
NEW, HIT, EVICTED, PLAIN = "#009e73", "#0072b2", "#d55e00", "#8a8a8a"
MAX_NODES = 400  # in one picture; what is left out is counted

_ROW = 22  # pixels
_WIDTH = 960


class Mark(NamedTuple):
    """How a node is marked: a colour, and a sign that says the same without colour."""

    colour: str
    sign: str


def mark_of(view: View, node: Node) -> Mark:
    """The mark of a node after the latest step: ＋ new, ● hit (× how many), ✕ evicted; 🔒 while it is locked."""
    lock = " 🔒" if node.locks else ""
    if node.id in view.evicted:
        return Mark(EVICTED, "✕")
    if node.id in view.hits:
        n = view.hits[node.id]
        return Mark(HIT, (f"● ×{n}" if n > 1 else "●") + ("＋" if node.id in view.new else "") + lock)
    return Mark(NEW, "＋" + lock) if node.id in view.new else Mark(PLAIN, lock.strip())


def tree_text(view: View, width: int = 100) -> Tree:
    """The radix tree for a terminal of `width` columns."""
    n_tokens = sum(len(node.tokens) for node in view.nodes.values())
    title = f"{len(view.nodes)} nodes, {n_tokens} tokens" + ("" if view.complete else " (waiting for a snapshot)")
    root = Tree(Text(title))
    branches = {0: root}
    for node, depth in _shown_nodes(view):
        mark = mark_of(view, node)
        count = f" {len(node.tokens)} "
        text = shown(view.text_of(node.tokens), max(8, width - 4 * depth - len(count) - len(mark.sign) - 4))
        label = Text.assemble((mark.sign, mark.colour), (count, "dim"), text, no_wrap=True, overflow="ellipsis")
        branches[node.id] = branches[node.parent].add(label)
    if len(view.nodes) + len(view.evicted) > MAX_NODES:
        root.add(Text(f"… {len(view.nodes) + len(view.evicted) - MAX_NODES} more nodes"))
    return root


def numbers_line(view: View) -> str:
    """The figures in one line: hit rate, what runs and waits, the pool."""
    totals = view.totals
    parts = [f"hit rate {totals.hit_rate:.0%}", f"{totals.n_cached} of {totals.n_prompt} prompt tokens from the cache"]
    parts.append(f"{totals.n_generated} generated")
    if view.step is not None:
        step = view.step
        parts.append(f"step {step.step}: {step.n_running} running, {step.n_waiting} waiting")
        parts.append(f"pool {step.n_locked} locked, {step.n_evictable} evictable, {step.n_free} free")
    if totals.n_evicted or totals.n_preempted:
        parts.append(f"{totals.n_evicted} evicted, {totals.n_preempted} preempted")
    return " · ".join(parts)


def tree_dot(view: View) -> str:
    """The tree as graphviz source, left to right. Labels are quoted: nothing in a text can end or format them."""
    lines = ['digraph { rankdir=LR; node [shape=box, fontname="monospace", fontsize=10]; n0 [label="root"];']
    for node, _ in _shown_nodes(view):
        mark = mark_of(view, node)
        label = f"{mark.sign} {len(node.tokens)} {shown(view.text_of(node.tokens), 40)}".strip()
        border = 2 if node.locks else 1
        lines.append(f'n{node.id} [label="{_dot(label)}", color="{mark.colour}", peripheries={border}];')
        lines.append(f"n{node.parent} -> n{node.id};")
    return "\n".join([*lines, "}"])


def tree_svg(view: View) -> str:
    """The tree as SVG, left to right as a prompt reads: width is tokens, height is leaves, area is KV memory."""
    boxes, n_rows, n_columns = _layout(view)
    scale = _WIDTH / max(n_columns, 1)
    height = max(n_rows, 1) * _ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="monospace" font-size="11" role="img"><title>{escape(numbers_line(view))}</title>'
        '<defs><pattern id="gone" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="M0 6L6 0" stroke="{EVICTED}"/></pattern></defs>'
    ]
    for box in boxes:
        mark = mark_of(view, box.node)
        text = view.text_of(box.node.tokens)
        x, y, w, h = box.column * scale, box.row * _ROW, max(box.n_columns * scale, 1.0), box.n_rows * _ROW
        fill = "url(#gone)" if box.node.id in view.evicted else mark.colour
        room = int(w / 7) - len(mark.sign) - 1
        label = f"{mark.sign} {shown(text, room)}".strip() if room > 1 else ""
        parts.append(
            f"<g><title>{escape(f'node {box.node.id}, {len(box.node.tokens)} tokens: {shown(text, 300)}')}</title>"
            f'<rect x="{x:.1f}" y="{y + 1}" width="{w:.1f}" height="{h - 2}" fill="{fill}" fill-opacity="0.25" '
            f'stroke="{mark.colour}" stroke-width="{3 if box.node.locks else 1}"/>'
            f'<text x="{x + 3:.1f}" y="{y + 15}">{escape(label)}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def tree_html(view: View) -> str:
    """The tree and its figures as HTML that stands by itself; the picture is an image, which cannot run scripts."""
    line = escape(numbers_line(view))
    image = base64.b64encode(tree_svg(view).encode("utf-8", errors="replace")).decode()
    legend = "".join(
        f'<span style="color:{colour}">{sign} {word}</span> '
        for colour, sign, word in ((NEW, "＋", "new"), (HIT, "●", "hit"), (EVICTED, "✕", "evicted"))
    )
    return (
        '<div style="font-family:monospace;background:#fff;color:#222;padding:4px">'
        f"<div>{line}</div><div>{legend}🔒 locked: thick border</div>"
        f'<img alt="radix tree: {line}" style="max-width:100%" src="data:image/svg+xml;base64,{image}"></div>'
    )


def _shown_nodes(view: View) -> Iterator[tuple[Node, int]]:
    """The nodes with their depths, each after its parent, at most MAX_NODES; those just evicted at their old places."""
    below = view.children()
    for node in view.evicted.values():
        below.setdefault(node.parent, []).append(node)
    stack = [(node, 0) for node in reversed(below.get(0, []))]
    for _ in range(MAX_NODES):
        if not stack:
            return
        node, depth = stack.pop()
        yield node, depth
        stack += [(child, depth + 1) for child in reversed(below.get(node.id, []))]


class _Box(NamedTuple):
    node: Node
    column: int  # tokens before it
    row: int  # leaves above it
    n_columns: int
    n_rows: int


def _layout(view: View) -> tuple[list[_Box], int, int]:
    """The boxes of all shown nodes, and the size of the whole in leaves and tokens."""
    order = [node for node, _ in _shown_nodes(view)]
    leaves = {node.id: 0 for node in order}
    for node in reversed(order):
        leaves[node.id] = max(leaves[node.id], 1)
        if node.parent in leaves:
            leaves[node.parent] += leaves[node.id]
    ends, rows = {0: 0}, {0: 0}  # the column where a node ends, the row of its next child
    boxes = []
    for node in order:
        column, row = ends[node.parent], rows[node.parent]
        boxes.append(_Box(node, column, row, len(node.tokens), leaves[node.id]))
        ends[node.id], rows[node.id] = column + len(node.tokens), row
        rows[node.parent] += leaves[node.id]
    return boxes, rows[0], max(ends.values())


def _dot(text: str) -> str:
    """For a quoted label: backslashes and quotes escaped, so that no escape of graphviz is left."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
