"""The likeliest tokens of a step as an event, each with the word of its constraint.

Not here: who chooses them (`draws.py`), what becomes of the one that was drawn (`commit.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nbsglang.calls import TokenLogprob
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.request import Request
from nbsglang.events import TopLogprobs

MAX_TOPS = 20  # of one token: more are for the caller alone


def top_logprobs(rows: Sequence[tuple[Request, Sequence[TokenLogprob]]]) -> TopLogprobs:
    """The event of requests with what was likely where their next token stands, which their matchers have not taken."""
    cut = [(request, top[:MAX_TOPS]) for request, top in rows]
    return TopLogprobs(
        tuple(request.id for request, _ in cut),
        tuple(tuple(token.id for token in top) for _, top in cut),
        tuple(tuple(token.logprob for token in top) for _, top in cut),
        tuple(tuple(_allows(request.matcher, token.id) for token in top) for request, top in cut),
    )


def _allows(matcher: Matcher | None, token: int) -> bool:
    """Whether the mask has the token; without a matcher every token may come."""
    if matcher is None:
        return True
    mask = matcher.mask()
    return token < 32 * len(mask) and bool(mask[token >> 5] >> (token & 31) & 1)
