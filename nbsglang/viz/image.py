"""Pictures as images in a page: as wide as they want where there is room, and light or dark as the page is.

Inside an image `prefers-color-scheme` is what the image element's `color-scheme` says. Pages of notebooks say nothing
there, whatever their theme is, and the system would decide; so a rule reads the theme off their attributes.

Not here: what is drawn (`dot.py`, `icicle.py`, `timeline_page.py`), the frame (`page.py`).
"""

from __future__ import annotations

import base64
import re
from html import escape

_CLASS = "nbsglang-picture"
# JupyterLab and nbconvert, VS Code, Colab. A page that says none of this is light.
_DARK = "[data-jp-theme-light=false],.vscode-dark,.vscode-high-contrast:not(.vscode-high-contrast-light),[theme=dark]"
_THEMES = f"<style>.{_CLASS}{{color-scheme:light}}:is({_DARK}) .{_CLASS}{{color-scheme:dark}}</style>"


def image(svg: str, alt: str, style: str) -> str:
    """The picture as an image element; scripts in it, if there were any, are dead. Its page needs `themes`."""
    data = base64.b64encode(svg.encode("utf-8", errors="replace")).decode()
    return f'<img class="{_CLASS}" alt="{escape(alt)}" style="{style}" src="data:image/svg+xml;base64,{data}">'


def themes(html: str) -> str:
    """The rule by which images follow the page's theme; "" where the HTML has none."""
    return _THEMES if f'<img class="{_CLASS}"' in html else ""


def image_html(svg: str, title: str, height: int = 560) -> str:
    """A picture in a box of at most this height in pixels, beyond which it is scrolled."""
    wide = width_of(svg)
    style = f"display:block;width:{wide}px;max-width:100%;min-width:{min(wide, max(wide * 8 // 10, 600))}px;height:auto"
    return f'<div style="overflow:auto;max-height:{height}px;margin-top:4px">{image(svg, title, style)}</div>'


def width_of(svg: str) -> int:
    """The width in CSS pixels that the picture gives itself."""
    found = re.search(r'<svg[^>]*? width="([\d.]+)(pt)?', svg)
    return 960 if found is None else max(1, int(float(found[1]) * (4 / 3 if found[2] else 1)))
