"""The texts of token ids in the log: each is said once, and again before the log has forgotten it.

A log keeps its newest events only. What was said in its older half is as good as lost, so an id that comes up again is
named again, and now and then those that are still held are.

Not here: the log (`events/`), the texts (`tokenizer.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from nbsglang.engine.slots import Ints
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.events import Body, TokenTexts

_NEVER = -1


class TokenNames:
    """Emits the texts of ids. `emit` returns the seq of the event in a log that keeps `capacity` events.

    Where it returns something else, or the capacity is 0, nothing is ever lost.
    """

    def __init__(self, tokenizer: Tokenizer, n_vocab: int, emit: Callable[[Body], object], capacity: int = 0) -> None:
        self._tokenizer = tokenizer
        self._emit = emit
        self._capacity = capacity
        self._named_at = np.full(max(n_vocab, tokenizer.n_vocab), _NEVER, np.int64)
        self._lost = 0  # what was named before this seq counts as forgotten
        self._renewed_at = 0

    def name(self, tokens: Ints) -> None:
        """Log the texts of those ids that the log does not know, or may soon not know."""
        new = tokens[self._named_at[tokens] < self._lost]
        if len(new):
            ids = tuple(sorted(set(new.tolist())))
            seq = self._emit(TokenTexts(ids, tuple(self._tokenizer.token_text(i) for i in ids)))
            self._named_at[list(ids)] = seq if isinstance(seq, int) else 0

    def is_due(self, seq: object) -> bool:
        """Whether, with the log at this seq, what is still held should be named, and the tree told anew.

        That is four times while the log forgets all that it has. Costs nothing but two comparisons.
        """
        if not isinstance(seq, int) or not self._capacity:
            return False
        self._lost = max(seq - self._capacity // 2, 0)
        return seq - self._renewed_at >= max(self._capacity // 4, 1)

    def renew(self, seq: object, held: Iterable[Ints]) -> None:
        """Name these ids where that is needed; the next time is counted from here."""
        self._renewed_at = seq if isinstance(seq, int) else 0
        if parts := [*held]:
            self.name(np.concatenate(parts))
