"""Which names mean what at a place of a cell: bound by the cell, shadowed by an inner scope, free for the language.

Not here: collecting what statements bind (`cell_names.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Names:
    """`bound` by the cell and the branches around the place, `parameters` of the program, `shadowed` by functions and
    comprehensions inside the cell, `class_names` by the class body that the place is directly in.

    `at_cell` is false inside `def`, `lambda` and `class`. `loop` is what `continue` would go on with: "", "loop" or
    "fork". `in_branch` says that the statements are those of a branch.
    """

    bound: frozenset[str]
    parameters: frozenset[str]
    shadowed: frozenset[str] = frozenset()
    class_names: frozenset[str] = frozenset()
    at_cell: bool = True
    loop: str = ""
    in_branch: bool = False

    def is_bound(self, name: str) -> bool:
        """Whether a read gives what the cell has bound, which may have to be waited for."""
        return name in self.bound and name not in self.shadowed and name not in self.class_names

    def is_free(self, name: str) -> bool:
        """Whether nothing in the cell binds it here."""
        return not (name in self.bound or name in self.parameters or name in self.shadowed or name in self.class_names)


class Place:
    """The names where the pass is right now."""

    def __init__(self, names: Names) -> None:
        self.names = names

    @contextmanager
    def inside(self, **changes: object) -> Iterator[None]:
        """Something is different in here."""
        outer = self.names
        self.names = replace(outer, **changes)  # type: ignore[arg-type]  # the fields' own types
        try:
            yield
        finally:
            self.names = outer

    @contextmanager
    def function(self, own: set[str]) -> Iterator[None]:
        """In the body of a function of the cell, which has these names of its own. It does not see a class body's."""
        shadowed = self.names.shadowed | own
        with self.inside(shadowed=shadowed, class_names=frozenset(), at_cell=False, loop="", in_branch=False):
            yield
