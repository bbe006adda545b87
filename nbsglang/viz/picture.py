"""Pictures that a notebook and a terminal both know how to show: HTML and plain text of the same thing.

Not here: pictures that move (`notebook/live.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nbsglang.viz import lines, page
from nbsglang.viz.fold import View
from nbsglang.viz.numbers import engine_figures, line
from nbsglang.viz.scene import Scene


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
