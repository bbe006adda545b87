"""Which lines of a cell go one way or another depending on what the model writes: conditions, loops, and matches over
generated values, found in its text.

Not here: what follows from them (`rehearsal.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from nbsglang.lang.cell_names import GENERATIONS
from nbsglang.viz.text import shown


class Guess(NamedTuple):
    """A line, from 1 on, the generated names that it depends on, and its text."""

    line: int
    names: tuple[str, ...]
    text: str


def guesses(source: str) -> list[Guess]:
    """The lines of a cell's text whose outcome depends on a generated value. A text that is no Python has none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    made = _made(tree)
    lines = source.splitlines()
    found: dict[int, Guess] = {}
    for node in _decisions(tree):
        names = tuple(sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in made}))
        if names:
            found.setdefault(node.lineno, Guess(node.lineno, names, shown(lines[node.lineno - 1].strip(), 80)))
    return [found[line] for line in sorted(found)]


def _made(tree: ast.Module) -> set[str]:
    """Names that hold what a model wrote, or what was made of it."""
    made: set[str] = set()
    while True:
        before = len(made)
        for node in ast.walk(tree):
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if _is_made(value, made):
                    made |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
            elif isinstance(node, ast.For | ast.comprehension) and _is_made(node.iter, made):
                made |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        if len(made) == before:
            return made


def _is_made(value: ast.expr, made: set[str]) -> bool:
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id in made:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in GENERATIONS:
            return True
    return False


def _decisions(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions that decide which way the cell goes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            yield node.test
        elif isinstance(node, ast.Match):
            yield node.subject
        elif isinstance(node, ast.For | ast.AsyncFor):
            yield node.iter
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
