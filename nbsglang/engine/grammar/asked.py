"""The automaton of a part as its language asks it: by classes of code points that all parts have in common.

Not here: how parts follow each other (`nested.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.rules import Derived, Indices, Piece, Rule, Shared, called_by
from nbsglang.engine.grammar.spots import Spots, is_plain

_SURROGATES = (0xD800, 0xE000)


class Steps(NamedTuple):
    """What can follow a state of a part: characters, by common classes, and other parts, with the states after them."""

    moves: list[tuple[int, Sequence[int]]]
    calls: list[tuple[int, int]]


class Asked:
    """A part with its automaton; `classes` are the common classes of each of its own.

    With `is_leaf` it has no places for others. `lock` is to be held by those that ask `piece` themselves.
    """

    def __init__(self, rule: Rule, piece: Piece, classes: list[list[int]]) -> None:
        shared = rule.shared if isinstance(rule, Derived) else rule
        self.rule = rule
        self.piece = piece
        self.start = piece.start
        self.lock = shared.lock if isinstance(shared, Shared) else threading.RLock()
        self._called = called_by(piece)
        self.is_leaf = not self._called
        self._classes = classes
        self._steps: dict[int, Steps] = {}
        self._behind: dict[int, int] = {}
        self._of_future: dict[Hashable, int] = {}
        self._after: dict[int, dict[int, int]] = {}
        self._accepts: dict[int, bool] = {}
        self._places: dict[int, Sequence[int]] = {}

    @cached_property
    def spots(self) -> Spots | None:
        """The positions of a part with places for others, if they are of single characters."""
        piece = self.piece
        if self.is_leaf or not isinstance(piece, Automaton) or not is_plain(piece):
            return None
        return Spots(piece)

    def behind(self, state: int) -> int:
        """A state that goes on as this one does: the same for all that do, as far as that is plain."""
        found = self._behind.get(state)
        if found is None:
            with self.lock:
                future = self.piece.future(state)
            found = self._behind[state] = self._of_future.setdefault(future, state)
        return found

    def steps(self, state: int) -> Steps:
        """What can follow a state."""
        found = self._steps.get(state)
        if found is None:
            found = Steps([], [])
            with self.lock:
                moves = self.piece.moves(state)
            for target, own in moves:
                classes = tuple([cls for one in own for cls in self._classes[one]])
                if classes:
                    found.moves.append((target, classes))
                found.calls.extend((self._called[one], target) for one in own if one in self._called)
            self._steps[state] = found
        return found

    def after(self, state: int) -> dict[int, int]:
        """The next states by common classes."""
        found = self._after.get(state)
        if found is None:
            found = {cls: target for target, classes in self.steps(state).moves for cls in classes}
            self._after[state] = found
        return found

    def accepts(self, state: int) -> bool:
        """See `Piece.accepts`."""
        found = self._accepts.get(state)
        if found is None:
            with self.lock:
                found = self._accepts[state] = self.piece.accepts(state)
        return found

    def places(self, state: int) -> Sequence[int]:
        """See `Piece.places`."""
        found = self._places.get(state)
        if found is None:
            with self.lock:
                found = self._places[state] = self.piece.places(state)
        return found

    def key(self, state: int) -> Hashable:
        """See `Piece.key`."""
        with self.lock:
            return self.piece.key(state)

    def state_of(self, key: Hashable) -> int:
        """See `Piece.state_of`."""
        with self.lock:
            return self.piece.state_of(key)


def common(pieces: Sequence[Piece]) -> tuple[tuple[Indices, Indices], int, list[list[list[int]]]]:
    """The classes that some automata tell apart together, as runs; their number; and those of each class of each.

    Surrogates are in no text: they have a class of their own, which is none of any automaton.
    """
    starts = np.unique(np.concatenate([*(piece.class_runs[0] for piece in pieces), _SURROGATES]))
    is_text = (starts < _SURROGATES[0]) | (starts >= _SURROGATES[1])
    each = [piece.class_runs[1][np.searchsorted(piece.class_runs[0], starts, "right") - 1] for piece in pieces]
    numbers = np.zeros(len(starts), np.int64)
    for piece, own in zip(pieces, each, strict=True):
        numbers = np.unique(numbers * piece.n_classes + own, return_inverse=True)[1]
    _, first, numbers = np.unique(np.where(is_text, numbers, -1), return_index=True, return_inverse=True)
    classes: list[list[list[int]]] = []
    for piece, own in zip(pieces, each, strict=True):
        of_class: list[list[int]] = [[] for _ in range(piece.n_classes)]
        for cls, own_class in enumerate(own[first].tolist()):
            if is_text[first[cls]]:
                of_class[own_class].append(cls)
        classes.append(of_class)
    return (starts, numbers), len(first), classes
