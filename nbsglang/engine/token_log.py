"""What is told of tokens and of requests that end: events, the names of ids, and their share of the counters.

Not here: what becomes of tokens (`commit.py`), what is told of steps (`step_log.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nbsglang.engine.draws import Sampled
from nbsglang.engine.names import TokenNames
from nbsglang.engine.request import Request
from nbsglang.engine.tops import top_logprobs
from nbsglang.engine.totals import Totals
from nbsglang.events import Body, Finished, Healed, Jumped, Logprobs, Masked, Tokens


class TokenLog:
    """Emits the events of tokens and ends, each id with its name before."""

    def __init__(self, names: TokenNames, totals: Totals, emit: Callable[[Body], object]) -> None:
        self._names = names
        self._totals = totals
        self._emit = emit

    def drawn(self, rows: Sequence[tuple[Request, Sampled]]) -> None:
        """The model chose a token for each of these requests."""
        if not rows:
            return
        self._name([token.id for _, token in rows])
        masked = [(r.id, token.removed) for r, token in rows if token.removed is not None]
        if masked:
            self._emit(Masked(*zip(*masked, strict=True)))
        likely = [(r.id, token.logprob.logprob) for r, token in rows if token.logprob is not None]
        if likely:
            self._emit(Logprobs(*zip(*likely, strict=True)))
        if tops := [(r, token.top) for r, token in rows if token.top]:
            body = top_logprobs(tops)
            self._name([token for ids in body.ids for token in ids])
            self._emit(body)
        self._emit(Tokens(tuple(r.id for r, _ in rows), tuple((token.id,) for _, token in rows)))
        self._totals.generated_tokens += len(rows)

    def jumped(self, request: Request, tokens: Sequence[int]) -> None:
        """The constraint forced these tokens."""
        self._name(tokens)
        self._emit(Jumped(request.id, request.call_id, tuple(tokens)))
        self._totals.generated_tokens += len(tokens)

    def healed(self, request: Request) -> None:
        """The request's first tokens will spell the end of its prompt anew."""
        self._emit(Healed(request.id, request.call_id, request.over))

    def ended(self, request: Request, reason: str) -> None:
        """The request is over: `reason` is a finish reason, "cancelled" or "error"."""
        n_generated = request.n_tokens - request.n_prompt
        self._totals.prompt_tokens += request.n_prompt
        self._totals.cached_tokens += request.n_cached
        body = Finished(request.id, request.call_id, reason, request.n_prompt, request.n_cached, n_generated)
        self._emit(body)

    def _name(self, tokens: Sequence[int]) -> None:
        self._names.name(np.array(tokens, np.int32))
