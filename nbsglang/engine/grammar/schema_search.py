"""Patterns of a schema tried on texts that the schema has: listed values and the names of properties.

They are read by the automata that free strings are made of (`schema_patterns.py`), one character after the other: in
time that grows with the text alone, where a search that goes back and forth may never end.

Not here: what a value must fit besides (`schema_fitting.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.limits import Limits, NoTextError, OutgrownError
from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.schema_patterns import searched
from nbsglang.engine.grammar.schema_places import NotRegularError
from nbsglang.errors import ConstraintError

_LIMITS = Limits(states=4000, memory=8 << 20, depth=200)
_CHARS_A_STEP = 16


class Search:
    """Looks for patterns in texts, with an automaton for each; `spend` counts the work. For one thread at a time."""

    def __init__(self, spend: Callable[[int], None]) -> None:
        self._spend = spend
        self._automata: dict[tuple[str, bool], Automaton | None] = {}
        self._found: dict[tuple[str, bool, str], bool] = {}

    def found(self, pattern: str, text: str, loose: bool) -> bool:
        """Whether a pattern is found in a text to all readers of schemas, with `loose` to any of them.

        Raises NotRegularError where that is too much to find out.
        """
        key = pattern, loose, text
        known = self._found.get(key)
        if known is None:
            self._spend(1 + len(text) // _CHARS_A_STEP)
            try:
                known = self._found[key] = self._read(pattern, text, loose)
            except ConstraintError as error:
                raise NotRegularError(f"the pattern {shown(pattern)}, on {shown(text)}: {error}") from None
        return known

    def _read(self, pattern: str, text: str, loose: bool) -> bool:
        automaton = self._automaton(pattern, loose)
        if automaton is None:
            return False
        starts, classes = automaton.class_runs
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        state = automaton.start
        for cls in classes[np.searchsorted(starts, points, "right") - 1].tolist():
            try:
                after = int(automaton.row(state)[cls])
            except OutgrownError:  # it goes on in a new one
                key = automaton.key(state)
                automaton = self._automata[pattern, loose] = automaton.renewed()
                after = int(automaton.row(automaton.state_of(key))[cls])
            if after < 0:
                return False
            state = after
        return automaton.accepts(state)

    def _automaton(self, pattern: str, loose: bool) -> Automaton | None:
        """The automaton of the texts in which a pattern is found; None if there are none."""
        key = pattern, loose
        if key not in self._automata:
            try:
                self._automata[key] = Automaton(searched(pattern, loose), _LIMITS)
            except NoTextError:
                self._automata[key] = None
        return self._automata[key]
