"""The sections of a run's picture by name. One that fails is switched off, and that is all.

Not here: what each draws (`lines.py`, `terminal.py`, `page.py`), where the picture goes (`notebook/fronts.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rich.console import Group, RenderableType

from nbsglang.viz import fsms, lines, page, terminal, timeline, timeline_page
from nbsglang.viz.scene import Scene

_TREE_EVERY_S = 1.0  # the picture of the tree is the dear one
_SHARE = 0.1  # of the time that drawing it may take


class Section(NamedTuple):
    """How a section looks as text, as HTML, and in a terminal of a height (None: as high as it wants)."""

    text: Callable[[Scene], str]
    html: Callable[[Scene], str]
    rich: Callable[[Scene, int, int | None], RenderableType]


SECTIONS: Mapping[str, Section] = MappingProxyType(
    {
        "numbers": Section(lines.numbers_text, page.numbers_html, terminal.numbers_rich),
        "streams": Section(lines.streams_text, page.streams_html, terminal.streams_rich),
        "tree": Section(lines.tree_text, page.tree_html, terminal.tree_rich),
        "timeline": Section(timeline.timeline_text, timeline_page.timeline_html, timeline.timeline_rich),
        "fsm": Section(fsms.fsms_text, fsms.fsms_html, fsms.fsms_rich),
    }
)


class Gallery:
    """Draws the sections that `show` names. `failures` says which were switched off, and why."""

    def __init__(self, show: Iterable[str]) -> None:
        wanted = set(show)
        self._sections = {name: section for name, section in SECTIONS.items() if name in wanted}
        self.failures: dict[str, str] = {}
        self._tree = ""  # its HTML, of this version of it:
        self._tree_version = -1
        self._tree_not_before = 0.0

    @property
    def names(self) -> list[str]:
        """The sections that are still drawn."""
        return [name for name in self._sections if name not in self.failures]

    def text(self, scene: Scene, *, brief: bool = False) -> str:
        """The picture as plain text; if brief, without streams and tree."""
        names = [name for name in self.names if not brief or name == "numbers"]
        parts = [self._draw("title", lines.headline, scene)]
        parts += [self._draw(name, self._sections[name].text, scene) for name in names]
        return "\n".join(filter(None, parts))

    def html(self, scene: Scene, *, live: bool = False) -> str:
        """The picture as HTML. While it is live, the tree is redrawn when it has changed, and not too often."""
        head = self._draw("title", page.head_html, scene) or ""
        parts = []
        for name in self.names:
            if name == "tree":
                parts.append(self._draw(name, self._tree_html, scene, live))
            else:
                parts.append(self._draw(name, self._sections[name].html, scene))
        return page.page(head, *filter(None, parts))

    def rich(self, scene: Scene, width: int, height: int | None = None) -> RenderableType:
        """The picture for a terminal."""
        parts = [self._draw("title", terminal.head_rich, scene)]
        parts += [self._draw(name, self._sections[name].rich, scene, width, height) for name in self.names]
        return Group(*(part for part in parts if part is not None))

    def _tree_html(self, scene: Scene, live: bool) -> str:
        version, began = scene.view.tree.version, time.monotonic()
        if version != self._tree_version and not (live and began < self._tree_not_before):
            self._tree = self._sections["tree"].html(scene)
            self._tree_version = version
            took = time.monotonic() - began
            self._tree_not_before = began + took + max(_TREE_EVERY_S, took / _SHARE)
        return self._tree

    def _draw(self, name: str, draw: Callable[..., Any], *args: Any) -> Any:
        """What `draw` makes; None where it fails, and from then on."""
        if name in self.failures:
            return None
        try:
            return draw(*args)
        except Exception as error:  # a picture is never worth a run
            self.failures[name] = f"{type(error).__name__}: {error}"
            return None
