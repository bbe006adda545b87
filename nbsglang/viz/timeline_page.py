"""The timeline as an SVG in a page: it needs nothing but Python, holds no script, and all text in it is escaped.

Not here: what is drawn (`timeline.py`).
"""

from __future__ import annotations

from html import escape

from nbsglang.viz.image import image
from nbsglang.viz.paint import BLUE, GREY, ORANGE, SKY, VERMILION
from nbsglang.viz.scene import Scene, seconds
from nbsglang.viz.timeline import LOOKS, Row, Timeline, label_of, timeline

_WIDTH, _LABELS, _ROW, _BATCH = 960, 170, 20, 44  # pixels
_FIT = f"display:block;width:{_WIDTH}px;max-width:100%;min-width:600px;height:auto"
_STYLE = (
    "text{fill:#222}.paper{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#1e1e1e}"
    f'[fill="{BLUE}"]{{fill:{SKY}}}[stroke="{BLUE}"]{{stroke:{SKY}}}}}'
)


def timeline_html(scene: Scene) -> str:
    """The picture as an image, with a legend."""
    drawn = timeline(scene)
    if not drawn.rows:
        return ""
    svg = timeline_svg(drawn)
    legend = " ".join(
        f'<span style="white-space:nowrap"><b style="color:{look.colour}">{look.char}</b> {look.word}</span>'
        for look in LOOKS.values()
    )
    jumps = f' <span style="white-space:nowrap"><b style="color:{ORANGE}">◆</b> forced</span>'
    if not any(row.jumps for row in drawn.rows):
        jumps = ""
    more = f'<div style="opacity:.75">… {escape(drawn.more)}</div>' if drawn.more else ""
    words = f"timeline of {seconds(drawn.seconds)}"
    return (
        f'<div style="margin-top:8px">{words} <span style="opacity:.75;margin-left:10px">{legend}{jumps}</span></div>'
        f'<div style="overflow:auto;max-height:560px;margin-top:4px">{image(svg, words, _FIT)}</div>{more}'
    )


def timeline_svg(drawn: Timeline) -> str:
    """Rows of bars over one axis, and the batch as a curve of steps."""
    height = len(drawn.rows) * _ROW + 22 + (_BATCH if drawn.batch else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'font-family="system-ui,sans-serif" font-size="11" role="img"><title>timeline</title><style>{_STYLE}</style>'
        "<defs>",
        *(
            f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
            f'<path d="{look.lines}" stroke="{look.colour}" stroke-width="1.5"/></pattern>'
            for name, look in LOOKS.items()
            if look.lines
        ),
        f'</defs><rect class="paper" width="{_WIDTH}" height="{height}"/>',
    ]
    parts += [_row_svg(row, n * _ROW, drawn) for n, row in enumerate(drawn.rows)]
    parts.append(_axis_svg(drawn, len(drawn.rows) * _ROW))
    if drawn.batch:
        parts.append(_batch_svg(drawn, len(drawn.rows) * _ROW + 22))
    return "".join([*parts, "</svg>"])


def _x(at: float, drawn: Timeline) -> float:
    return _LABELS + (_WIDTH - _LABELS - 8) * min(max(at / drawn.seconds, 0.0), 1.0)


def _row_svg(row: Row, top: int, drawn: Timeline) -> str:
    middle = top + _ROW / 2
    parts = [
        f'<text x="{4 + 10 * min(row.depth, 4)}" y="{top + 14}">{escape(label_of(row._replace(depth=0), 22))}</text>'
        f'<path d="M{_x(row.begin, drawn):.1f} {middle}H{_x(row.end, drawn):.1f}" stroke="{GREY}" '
        'stroke-dasharray="1 3"/>'
    ]
    for bar in row.bars:
        look = LOOKS[bar.phase]
        x = _x(bar.begin, drawn)
        width = max(_x(bar.end, drawn) - x, 1.0)
        fill = f"url(#{bar.phase})" if look.lines else look.colour
        title = f"{look.word}, {seconds(bar.end - bar.begin)}"
        parts.append(
            f'<g><title>{title}</title><rect class="paper" x="{x:.1f}" y="{top + 3}" width="{width:.1f}" height="14"/>'
            f'<rect x="{x:.1f}" y="{top + 3}" width="{width:.1f}" height="14" fill="{fill}" stroke="{look.colour}" '
            'stroke-width=".8"/></g>'
        )
    for moment in row.jumps:
        x = _x(moment, drawn)
        parts.append(f'<path d="M{x:.1f} {middle - 5}l4 5l-4 5l-4 -5z" fill="{ORANGE}"/>')
    if row.failed:
        parts.append(f'<text x="{_x(row.end, drawn) - 4:.1f}" y="{top + 14}" fill="{VERMILION}">✗</text>')
    return "".join(parts)


def _axis_svg(drawn: Timeline, top: int) -> str:
    tick = _tick(drawn.seconds)
    marks = [n * tick for n in range(int(drawn.seconds / tick) + 1)]
    words = "".join(
        f'<path d="M{_x(at, drawn):.1f} 0V{top + 4}" stroke="{GREY}" stroke-opacity=".3"/>'
        f'<text x="{_x(at, drawn):.1f}" y="{top + 16}" text-anchor="middle">{seconds(at) if at else "0"}</text>'
        for at in marks
        if _x(at, drawn) < _WIDTH - 20
    )
    return f'<g aria-hidden="true">{words}</g>'


def _tick(total: float) -> float:
    """A round number of seconds of which three to eight fit."""
    size = 1e-6
    while total / size > 8:
        for factor in (2, 5, 10):
            if total / (size * factor) <= 8:
                return size * factor
        size *= 10
    return size


def _batch_svg(drawn: Timeline, top: int) -> str:
    highest = max(drawn.n_running, 1)
    base, scale = top + _BATCH - 6, (_BATCH - 14) / highest
    path = f"M{_x(0, drawn):.1f} {base}"
    for at, n, _ in drawn.batch:  # what is left after a step goes on from there
        path += f"H{_x(at, drawn):.1f}V{base - n * scale:.1f}"
    path += f"H{_x(drawn.seconds, drawn):.1f}"
    return (
        f'<text x="4" y="{top + 18}">batch, at most {drawn.n_running}</text>'
        f'<path d="{path}V{base}Z" fill="{GREY}" fill-opacity=".35" stroke="{GREY}"/>'
    )
