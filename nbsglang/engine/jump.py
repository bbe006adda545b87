"""Jump-forward decoding: text that a constraint forces becomes tokens without a forward pass for each of them.

The forced text is spelled as the tokenizer itself would spell it: it is encoded together with the text before it, where
that has a token that begins with the forced text. How the model has spelled the text before it makes no difference.
Tokens at its end that a longer token could still absorb, by what may follow, are left to the model.

Not here: what is forced (the matchers), appending the tokens (`commit.py`). Source: the SGLang paper, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.request import Request
from nbsglang.engine.spellings import Spellings
from nbsglang.engine.tokenizer import Tokenizer

_CONTEXTS = (64, 16, 4, 1)  # tokens before the forced text with which it is encoded, the most that fit first


class Jumper:
    """Spells forced text in the tokens of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def tokens(self, request: Request) -> list[int]:
        """The tokens that follow the request's text without a choice; none where there is one, or no spelling fits.

        The matcher of the request is as it was afterwards.
        """
        assert request.matcher is not None
        forced = request.matcher.forced()
        if not forced:
            return []
        ids = self._spelled(request.generated.tolist(), forced)
        return ids[: self._n_settled(request.matcher, ids)]

    def _spelled(self, before: Sequence[int], forced: str) -> list[int]:
        """The tokenizer's own tokens of the forced text, where it sets one apart from the text before it."""
        for n in dict.fromkeys(min(n, len(before)) for n in _CONTEXTS):
            data = b"".join(map(self._tokenizer.token_bytes, before[len(before) - n :]))
            try:
                text = data.decode()
            except UnicodeDecodeError:  # it begins or ends within a character
                continue
            ids = self._tokenizer.encode(text + forced, first=False)
            ends = list(accumulate((len(self._tokenizer.token_bytes(token)) for token in ids), initial=0))
            if len(data) in ends:
                own = ids[ends.index(len(data)) :]
                if self._tokenizer.decode(own) == forced:
                    return own
        return []

    def _n_settled(self, matcher: Matcher, ids: Sequence[int]) -> int:
        """How many of the tokens stay whatever follows: those before the first that a longer one could absorb."""
        spelled = list(map(self._tokenizer.token_bytes, ids))
        at = matcher.fork()
        try:
            for n, token in enumerate(ids):
                rest = b"".join(spelled[n:])
                if self._absorbs(rest, at):
                    return n
                if not at.accept(token):  # the vocabulary of the constraint lacks it
                    return n
        finally:
            at.close()
        return len(ids)

    def _absorbs(self, rest: bytes, matcher: Matcher) -> bool:
        """Whether a token that may come next begins with `rest` and goes on."""
        tokens = self._spellings.longer(rest)
        if not len(tokens):
            return False
        words = matcher.mask()[tokens >> 5]
        return bool((words >> (tokens & 31) & 1).any())

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self._tokenizer.bytes_table)
