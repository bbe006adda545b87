"""The tokens that requests receive: their ids and texts, how likely they were, what a constraint did about them.

Not here: the requests (`engine.py`), the tokens of the cache (`tree.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from nbsglang.events.fields import TokenIds, Word


class Tokens(NamedTuple):
    """New tokens of a step: request ids and, aligned with them, the ids that each received."""

    requests: tuple[int, ...]
    ids: tuple[TokenIds, ...]


class Jumped(NamedTuple):
    """Tokens that a constraint forced, without a choice of the model: they follow what the request received."""

    request: int
    call_id: Word
    ids: TokenIds


class Healed(NamedTuple):
    """The first tokens that the request receives also spell `over`: the end of its prompt, none of its text."""

    request: int
    call_id: Word
    over: str


class Masked(NamedTuple):
    """How much the constraints of a step have taken away: request ids and, aligned with them, probabilities.

    They belong to the tokens that these requests receive next: that of all other tokens, by the model's own
    distribution, before the mask.
    """

    requests: tuple[int, ...]
    removed: tuple[float, ...]


class Logprobs(NamedTuple):
    """How likely tokens of a step were: ids of requests that asked for it and, aligned with them, log probabilities.

    They belong to the tokens that these requests receive next.
    """

    requests: tuple[int, ...]
    logprobs: tuple[float, ...]


class TopLogprobs(NamedTuple):
    """The likeliest tokens of a step, for requests that asked for them: ids and, aligned, their log probabilities.

    They are of the model's own distribution, before the mask; `allowed` says which of them the request's constraint
    lets come. They belong where the tokens stand that these requests receive next.
    """

    requests: tuple[int, ...]
    ids: tuple[TokenIds, ...]
    logprobs: tuple[tuple[float, ...], ...]
    allowed: tuple[tuple[bool, ...], ...]


class TokenTexts(NamedTuple):
    """The texts of token ids that this log has not named before, or so long ago that it may soon forget them."""

    ids: TokenIds
    texts: tuple[str, ...]


TokensBody = Tokens | Jumped | Healed | Masked | Logprobs | TopLogprobs | TokenTexts
