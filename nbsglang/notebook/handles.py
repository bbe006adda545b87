"""How a run looks as the value of a cell: whether it is over, what it has used, its variables.

Not here: the run itself (`nbsglang/lang/cell_run.py`), its views (`nbsglang/viz`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from nbsglang.errors import Cancelled
from nbsglang.lang.cell_run import CellRun
from nbsglang.viz.page import page
from nbsglang.viz.paint import state_mark
from nbsglang.viz.scene import seconds
from nbsglang.viz.text import shown

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_MAX_VARIABLES = 12


def install(shell: InteractiveShell) -> Callable[[], None]:
    """Let the shell show runs so; returns what takes it back."""
    display: Any = shell.display_formatter
    formatter = display.formatters["text/html"]
    formatter.for_type(CellRun, run_html)
    return partial(formatter.type_printers.pop, CellRun, None)


def run_html(run: CellRun) -> str:
    """The state of a run as it is now. Nothing is waited for."""
    mark = state_mark(_state(run))
    stats = run.stats
    figures = [f"{stats['calls']:,.0f} calls", f"{stats['generated_tokens']:,.0f} tokens generated"]
    if stats["prompt_tokens"]:
        figures.append(f"hit rate {stats['hit_rate']:.0%}")
    if stats["seconds"]:
        figures.append(seconds(stats["seconds"]))
    error = run.error if run.done else None
    words = "" if error is None else f"<div>{escape(shown(f'{type(error).__name__}: {error}', 200))}</div>"
    if not run.done:
        words = '<div style="opacity:.75">wait(), result() and reading a variable wait for it; cancel() ends it</div>'
    head = (
        f'<div><b style="border-bottom:2px solid {mark.colour}">{mark.sign} run, {mark.word}</b> '
        f'<span style="opacity:.75">{escape(" · ".join(figures))}</span></div>'
    )
    return page(head, words, _variables(run) if run.done else "")


def _variables(run: CellRun) -> str:
    rows = [
        f'<tr><td style="text-align:left;padding:0 14px 0 0;opacity:.75">{escape(shown(name, 40))}</td>'
        f'<td style="text-align:left;overflow-wrap:anywhere">{escape(shown(repr(value), 160))}</td></tr>'
        for name, value in [*run.variables.items()][:_MAX_VARIABLES]
    ]
    look = "border-collapse:collapse;color:inherit;background:inherit;font:inherit"
    return f'<table style="{look}">{"".join(rows)}</table>' if rows else ""


def _state(run: CellRun) -> str:
    if not run.done:
        return "running"
    if run.error is None:
        return "done"
    return "cancelled" if isinstance(run.error, Cancelled | KeyboardInterrupt) else "failed"
