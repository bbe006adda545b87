"""A shortest text that a constraint allows: for who wants an answer of the right shape without asking a model.

Not here: which text a model would write.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache

import numpy as np

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.graph import automaton_of
from nbsglang.engine.grammar.table import Table
from nbsglang.errors import ConstraintError

_MAX_STATES = 20_000
_LIKED = "0aA xe1"  # characters that are taken where several would do; any other class gives its first visible one


@lru_cache(maxsize=64)
def shortest_text(constraint: Constraint) -> str:
    """One of the shortest full matches. Raises ConstraintError for grammars and where none is found in bounds."""
    table = Table(automaton_of(constraint))
    came_from: dict[int, tuple[int, str]] = {table.start: (table.start, "")}
    queue = deque([table.start])
    while queue and len(came_from) < _MAX_STATES:
        state = queue.popleft()
        if table.accepts(state):
            return _spelled(came_from, state, table.start)
        row = np.asarray(table.after(state))
        for target in dict.fromkeys(row[row >= 0].tolist()):
            if target not in came_from:
                came_from[target] = (state, _char(table, row == target))
                queue.append(target)
    raise ConstraintError(f"no short text was found that matches {str(constraint.value)[:80]!r}")


def _spelled(came_from: dict[int, tuple[int, str]], state: int, start: int) -> str:
    chars = []
    while state != start:
        state, char = came_from[state]
        chars.append(char)
    return "".join(reversed(chars))


def _char(table: Table, classes: np.typing.NDArray[np.bool_]) -> str:
    """A character of these classes, rather one that people can read."""
    runs = table.classes.runs(classes)
    for char in _LIKED:
        if any(first <= ord(char) <= last for first, last in runs):
            return char
    seen = (point for first, last in runs for point in range(first, min(last, first + 200) + 1))
    return next((chr(point) for point in seen if chr(point).isprintable()), chr(runs[0].first))
