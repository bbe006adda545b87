"""Finding out before the first run whether a front end makes our widgets, where that cannot be while a cell runs.

Not here: the widgets (`desk.py`), and what is shown until they have said hello (`widget_front.py`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

_HEARS = "kernel subshells"  # a feature of kernels: what a page says is heard while a cell runs


def greet(shell: Any) -> None:
    """In a kernel that hears nothing while a cell runs, let the page say hello after this cell: the first view is then
    live from its beginning, and not HTML until its cell ends."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return
    with suppress(Exception):  # packages are missing, or do not work with each other: HTML it is
        from nbsglang.notebook.fronts import widgets_wanted

        if widgets_wanted() and _HEARS not in kernel.kernel_info.get("supported_features", ()):
            from nbsglang.notebook.desk import desk_of  # it loads ipywidgets and anywidget

            desk_of(shell).greet()
