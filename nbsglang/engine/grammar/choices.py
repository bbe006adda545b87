"""The automaton of a few given texts.

Not here: those of patterns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from nbsglang.engine.grammar.table import DEAD
from nbsglang.errors import ConstraintError, UsageError

_MAX_STATES = 1_000_000
_MAX_CLASSES = 4096


class Choices:
    """An `Automaton` of the given texts: its states are their beginnings.

    Raises UsageError if there is none, ConstraintError if one is no Unicode text or all are too long.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(dict.fromkeys(texts))
        if not texts:
            raise UsageError("choices needs at least one text to choose from")
        _check(texts)
        points = sorted(set(map(ord, "".join(texts))))
        self.n_classes = len(points) + 1  # the last: characters that are in no text
        self.class_of: npt.NDArray[np.uint16] = np.full(0x110000, len(points), np.uint16)
        self.class_of[points] = np.arange(len(points))
        self.start = 0
        self._nexts: list[dict[int, int]] = [{}]  # code point -> state
        self._ends = {self._add(text) for text in texts}

    def row(self, state: int) -> npt.NDArray[np.int32]:
        """See `Automaton.row`."""
        row = np.full(self.n_classes, DEAD, np.int32)
        for point, after in self._nexts[state].items():
            row[self.class_of[point]] = after
        return row

    def accepts(self, state: int) -> bool:
        """See `Automaton.accepts`."""
        return state in self._ends

    def renewed(self) -> Choices:
        """See `Automaton.renewed`: all states are there from the beginning."""
        return self

    def key(self, state: int) -> int:
        """See `Automaton.key`."""
        return state

    def state_of(self, key: Hashable) -> int:
        """See `Automaton.state_of`."""
        assert isinstance(key, int)
        return key

    def _add(self, text: str) -> int:
        state = self.start
        for char in text:
            after = self._nexts[state].get(ord(char))
            if after is None:
                after = self._nexts[state][ord(char)] = len(self._nexts)
                self._nexts.append({})
            state = after
        return state


def _check(texts: list[str]) -> None:
    if sum(map(len, texts)) > _MAX_STATES:
        raise ConstraintError(f"choices of more than {_MAX_STATES} characters in all cannot be used")
    if len(set("".join(texts))) > _MAX_CLASSES:
        raise ConstraintError(f"choices of more than {_MAX_CLASSES} different characters cannot be used")
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ConstraintError(f"choice {text!r} holds a lone surrogate, which no text has") from None
