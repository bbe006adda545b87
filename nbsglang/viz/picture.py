"""Pictures that a notebook and a terminal both know how to show: HTML and plain text of the same thing.

Not here: pictures that move (`notebook/live.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from nbsglang.viz import lines, page
from nbsglang.viz.fold import View
from nbsglang.viz.numbers import Figure, engine_figures, line
from nbsglang.viz.scene import Scene
from nbsglang.viz.text import shown


@dataclass(frozen=True)
class Picture:
    """The last value of a cell, or what `display` is given; `str()` is its text."""

    html: str
    text: str

    def bundle(self) -> dict[str, str]:
        """The picture by mime type."""
        return {"text/html": self.html, "text/plain": self.text}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None, **kwargs: Any) -> dict[str, str]:
        return self.bundle()

    def _repr_html_(self) -> str:
        return self.html

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def tree_display(view: View) -> Picture:
    """The radix tree of an engine, marked by its latest step, with its figures."""
    scene = Scene.of_engine(view, view.ready.name if view.ready else "")
    figures = engine_figures(view)
    html = page.page(page.head_html(scene), page.figures_html(figures), page.tree_html(scene))
    return Picture(html, f"{line(figures)}\n{lines.tree_text(scene)}")


def status_display(view: View | None, facts: Mapping[str, str]) -> Picture:
    """An engine's model and figures, with other facts before them (such as the backend, and runs in the background)."""
    rows = [Figure(shown(name, 40), shown(value, 200)) for name, value in facts.items()]
    if view is not None and view.ready is not None:
        ready = view.ready
        rows.append(Figure("model", f"{shown(ready.model, 80)} on {ready.device}, {ready.dtype}"))
        rows.append(Figure("pool size", f"{ready.n_slots:,} tokens"))
    if view is not None:
        rows += engine_figures(view)
        rows += [Figure("last error", shown(message, 200)) for message in view.errors[-1:]]
    wide = max((len(name) for name, _ in rows), default=0)
    cells = "".join(
        f'<tr><td style="text-align:left;padding:0 14px 0 0;opacity:.75">{escape(name)}</td>'
        f'<td style="text-align:left;overflow-wrap:anywhere">{escape(value)}</td></tr>'
        for name, value in rows
    )
    table = f'<table style="border-collapse:collapse;color:inherit;background:inherit;font:inherit">{cells}</table>'
    return Picture(page.page("", table), "\n".join(f"{name:<{wide}}  {value}" for name, value in rows))
