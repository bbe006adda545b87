"""How the answers of an engine look as the value of a cell; by name, so that no engine is loaded for it.

Not here: runs (`handles.py`), the pictures themselves (`nbsglang/viz`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nbsglang.viz.allowed import allowed_html

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_WHERE = "nbsglang.engine.allowed", "Allowed"


def install(shell: InteractiveShell) -> Callable[[], None]:
    """Let the shell show answers so; returns what takes it back."""
    display: Any = shell.display_formatter
    formatter = display.formatters["text/html"]
    formatter.for_type_by_name(*_WHERE, allowed_html)
    return partial(_take_back, formatter)


def _take_back(formatter: Any) -> None:
    formatter.deferred_printers.pop(_WHERE, None)
    for kind in [*formatter.type_printers]:  # where it went when the first answer was shown
        if (kind.__module__, kind.__name__) == _WHERE:
            del formatter.type_printers[kind]
