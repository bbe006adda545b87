"""Cells to be watched: one that forks and chooses, and one call that may fail or take long."""

from __future__ import annotations

from typing import Any

import nbsglang as sgl
from nbsglang.lang.cell import compile_cell
from nbsglang.lang.cell_run import CellRun

_JUDGE = """
"An essay. "
for n in fork(2):
    f"Judge {n}: "
    verdict = gen(max_tokens=20, temperature=0, ignore_eos=True)
f"{verdict[0]}. Then? "  # which waits for it
decision = select(["yes", "no"])
"""


def judge(**options: Any) -> CellRun:
    """A run with two branches and a choice."""
    return compile_cell(_JUDGE, name="judge").prepare({}, **options)


def single(**options: Any) -> CellRun:
    """A run with one call."""
    return compile_cell('"x"\na = gen()', name="single").prepare({}, **options)


def mock(delay: float = 0.0) -> sgl.MockBackend:
    """Answers of `judge`."""
    return sgl.MockBackend({"decision": "yes", "Judge 0": "good", "Judge 1": "bad"}, delay=delay)
