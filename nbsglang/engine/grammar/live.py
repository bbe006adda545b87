"""Whether tokens can bring a text to a full match. Characters alone do not say: some bytes have no token.

Mostly nothing is searched: where tokens can spell a character of each class of the automaton, whatever can follow over
characters can follow over tokens. Else a match is looked for over the classes that tokens can spell, and only where
there is none, over the graph of tokens, within a budget.

Not here: what can follow a state (`index.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from nbsglang.engine.grammar.moves import Moves, State
from nbsglang.engine.grammar.table import Table
from nbsglang.engine.grammar.vocab import Vocab
from nbsglang.errors import ConstraintError

MAX_SEARCHED = 4000  # states of which the search for a match looks at what can follow


class Liveness:
    """Remembers of which states it is known whether a match can be reached. Not for several threads at once.

    `is_proved` says that all states are live that tokens lead to over characters, as far as those have begun they can
    be finished.
    """

    def __init__(self, vocab: Vocab, table: Table, moves: Moves) -> None:
        self._vocab, self._table = vocab, table
        self._moves = moves
        self._known: dict[State, bool] = {}
        self._n_searched = 0
        self._can_finish = vocab.finishes_all
        self._spelled: list[bool] = (table.classes.meeting(*vocab.spelled) | table.classes.is_empty).tolist()
        self._spellable: dict[int, bool] = {}  # whether the classes that tokens can spell lead to a match
        self.is_proved = vocab.spells_all or (self._can_finish and all(self._spelled))

    def is_live(self, state: State) -> bool:
        """Whether tokens lead from a state to a full match. Raises ConstraintError past the budget."""
        if self.is_proved:
            return True
        known = self._known.get(state)
        return self._search(state) if known is None else known

    def lacking(self) -> str:
        """Why no match can be reached from a state for which that was found."""
        points = [
            point for run in self._table.classes.runs(self._table.met() & ~np.array(self._spelled)) for point in run
        ]
        needed = f", such as {', '.join(f'U+{point:04X}' for point in dict.fromkeys(points[:4]))}" * bool(points)
        return f"every match needs characters for which this vocabulary has no tokens{needed}"

    # ------------------------------------------------------------------------------ by characters

    def _is_spelled(self, state: State) -> bool:
        """Whether characters that tokens can spell alone lead to a match; more may be live."""
        at, begun = state
        if not begun:
            return self._is_spellable(at)
        if not self._can_finish:
            return False
        nexts = zip(self._table.after(at), self._table.classes.begun_by(begun), strict=True)
        return any(has and after >= 0 and self._is_spellable(after) for after, has in nexts)

    def _is_spellable(self, state: int) -> bool:
        """Depth first to a state that accepts, or until there are no more."""
        known = self._spellable.get(state)
        if known is not None:
            return known
        path = [(state, self._next(state))]
        seen = {state}
        while path:
            at, nexts = path[-1]
            if self._table.accepts(at) or self._spellable.get(at):
                self._spellable.update((passed, True) for passed, _ in path)
                return True
            after = nexts.pop() if nexts else None
            if after is None:
                path.pop()
            elif after not in seen and self._spellable.get(after) is not False:
                seen.add(after)
                path.append((after, self._next(after)))
        self._spellable.update((passed, False) for passed in seen)
        return False

    def _next(self, state: int) -> list[int]:
        row = self._table.after(state)
        return list({after for after, is_spelled in zip(row, self._spelled, strict=True) if is_spelled and after >= 0})

    # ------------------------------------------------------------------------------ by tokens

    def _search(self, state: State) -> bool:
        """Breadth first to a state from which characters lead to a match."""
        came_from: dict[State, State | None] = {state: None}
        queue = deque([state])
        while queue:
            at = queue.popleft()
            known = self._known.get(at)
            if known or (known is None and self._is_spelled(at)):
                self._mark(at, came_from)
                return True
            if known is None:
                for after in self._looked_at(at):
                    if after not in came_from:
                        came_from[after] = at
                        queue.append(after)
        self._known.update(dict.fromkeys(came_from, False))
        return False

    def _looked_at(self, state: State) -> Iterable[State]:
        self._n_searched += 1
        if self._n_searched > MAX_SEARCHED:
            raise ConstraintError(
                "this vocabulary lacks tokens for some of the constraint's characters, and whether the others "
                f"suffice was not found in {MAX_SEARCHED} states; leave those characters out"
            )
        return self._moves.successors(state)

    def _mark(self, state: State | None, came_from: dict[State, State | None]) -> None:
        while state is not None:
            self._known[state] = True
            state = came_from[state]
