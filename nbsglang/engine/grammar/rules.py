"""The parts that a nested language is written in: nodes that refer to each other, and some that many languages share.

Not here: how they follow each other (`nested.py`), which parts schemas have (`schema_nodes.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.limits import Limits
from nbsglang.engine.grammar.syntax import Node, called

_SHARED = Limits(states=4000, memory=4 << 20)
Indices: TypeAlias = npt.NDArray[np.int64]


class Piece(Protocol):
    """An automaton of a part. See `automaton.Automaton` for what is asked of it."""

    start: int
    n_classes: int

    @property
    def class_runs(self) -> tuple[Indices, Indices]:
        """The runs of code points of one class: where each begins, and its class."""
        ...

    def moves(self, state: int) -> Sequence[tuple[int, Sequence[int]]]:
        """The next states with the classes that lead to each, a class once."""
        ...

    def row(self, state: int) -> npt.NDArray[np.int32]:
        """The next state for each class, -1 where there is none. [n_classes]"""
        ...

    def accepts(self, state: int) -> bool:
        """The text so far is one of the part."""
        ...

    def key(self, state: int) -> Hashable:
        """What a state is, as a value."""
        ...

    def state_of(self, key: Hashable) -> int:
        """The state of a key."""
        ...

    def future(self, state: int) -> Hashable:
        """A value that two states have in common only where the same can follow them."""
        ...

    def places(self, state: int) -> Sequence[int]:
        """States that allow together what this one does, each as simple as can be."""
        ...


class Shared:
    """A node without places for others, whose automaton all grammars share; `lock` is for who asks it.

    Who finds no room for more states in it can make one alone (`piece_of`).
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.lock = threading.RLock()
        self._automaton: Automaton | None = None

    @property
    def automaton(self) -> Automaton:
        """Made when it is first asked for. Raises ConstraintError where there is no text, and past the limits."""
        with self.lock:  # there must be one only: its states are known by their numbers
            if self._automaton is None:
                self._automaton = Automaton(self.node, _SHARED)
            return self._automaton


class Others(NamedTuple):
    """The texts of a shared node but for some, of which none goes on as another one."""

    shared: Shared
    texts: tuple[str, ...]


class Counted(NamedTuple):
    """The texts of a shared node of strings that have so many characters."""

    shared: Shared
    least: int
    most: int | None


class Measured(NamedTuple):
    """The texts of a shared node of strings of a pattern that have up to `most` characters.

    No more than `farthest` characters end the string of a text of the node, whatever it begins with.
    """

    shared: Shared
    most: int
    farthest: int


class Divided(NamedTuple):
    """The texts of a shared node of whole numbers that leave one of some rests when divided by `step`."""

    shared: Shared
    step: int
    rests: frozenset[int]


Derived: TypeAlias = Others | Counted | Measured | Divided
Rule: TypeAlias = Node | Shared | Derived


def piece_of(rule: Rule, limits: Limits, alone: bool) -> Piece:
    """The automaton of a part, with `alone` one that nobody else has.

    Raises ConstraintError past the limits, and where there is no text.
    """
    from nbsglang.engine.grammar.counted import CountedStrings  # they need what is here
    from nbsglang.engine.grammar.measured import MeasuredStrings
    from nbsglang.engine.grammar.multiples import Residues
    from nbsglang.engine.grammar.others import Without

    if isinstance(rule, Derived):
        with rule.shared.lock:
            inner = piece_of(rule.shared, limits, alone)
            if isinstance(rule, Counted):
                return CountedStrings(inner, rule.least, rule.most)
            if isinstance(rule, Measured):
                return MeasuredStrings(inner, rule.most)
            if isinstance(rule, Divided):
                return Residues(inner, rule.step, rule.rests)
            return Without(inner, rule.texts)
    if isinstance(rule, Shared) and not alone:
        return rule.automaton
    return Automaton(rule.node if isinstance(rule, Shared) else rule, limits)


def called_by(piece: Piece) -> dict[int, int]:
    """The classes that are places for other parts, with the numbers of these."""
    starts, classes = piece.class_runs
    pairs = ((cls, called(point)) for point, cls in zip(starts.tolist(), classes.tolist(), strict=True))
    sizes = np.bincount(classes, np.diff(starts, append=0x110000), piece.n_classes)
    return {cls: number for cls, number in pairs if number is not None and sizes[cls] == 1}
