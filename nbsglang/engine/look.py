"""One look at one state of a constraint: which tokens may come, beside what the model would say there.

A call for one token brings the model's own distribution over the whole vocabulary; the constraint's mask, which the
engine's thread makes, says which of it stays. Both are put side by side here, on the caller's thread.

Not here: the answer (`allowed.py`), the mask that a step works with (`sampler.py`), its constraints (`grammar/`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nbsglang.calls import (
    Constraint,
    GenCall,
    Generated,
    LogprobSpec,
    Media,
    Prompt,
    RoleBegin,
    RoleEnd,
    SamplingParams,
    Text,
    TokenLogprob,
)
from nbsglang.engine.access import Access
from nbsglang.engine.allowed import Allowed, Candidate, short
from nbsglang.engine.caller import Caller
from nbsglang.engine.grammar.matcher import MaskRow, Matcher
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import TextRefused, UsageError

_SEGMENTS = (Text, Generated, RoleBegin, RoleEnd, Media)


class Standing(NamedTuple):
    """Where a text stands in its constraint: see `Matcher`."""

    mask: MaskRow
    forced: str
    done: bool


class Look:
    """Looks for one engine, safe from any thread.

    `compiled` gives a matcher at the beginning of a constraint; the `caller` asks the model, `access` the thread.
    """

    def __init__(
        self,
        compiled: Callable[[Constraint], Matcher],
        caller: Caller,
        access: Access,
        tokenizer: Tokenizer,
        n_vocab: int,
    ) -> None:
        self._compiled = compiled
        self._caller = caller
        self._access = access
        self._tokenizer = tokenizer
        self._n_vocab = n_vocab

    def at(
        self,
        prompt: str | Iterable[int] | Prompt,
        after: str | Iterable[int],
        constraint: Constraint | None,
        n: int | None,
    ) -> Allowed:
        """What the constraint allows once `after` is written; see `Engine.allowed`."""
        matcher = None if constraint is None else self._compiled(constraint)
        so_far = _spelled(after, self._tokenizer)
        if constraint is not None and matcher is not None:
            _advance(matcher, so_far, constraint, self._tokenizer)
        at = self._access.ask(lambda core: standing(matcher)) if matcher is not None else None
        if isinstance(at, Exception):
            raise at
        call = _question(self._caller.call_id(), prompt, so_far, self._n_vocab)
        tops = self._caller.reply(call).completions[0].top_logprobs
        assert tops is not None
        return compared(tops[0], at, constraint, so_far.text, n, self._tokenizer)


def _question(call_id: str, prompt: str | Iterable[int] | Prompt, so_far: Generated, n_vocab: int) -> GenCall:
    """The call whose reply has the log probability of each token after the prompt and the text so far."""
    whole = (*_segments(prompt), *([so_far] if so_far.ids else ()))
    sampling = SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True)  # an EOS would have none
    return GenCall(call_id, whole, sampling, logprobs=LogprobSpec(n_vocab))


def _spelled(after: str | Iterable[int], tokenizer: Tokenizer) -> Generated:
    """The text so far with its ids: of a text the tokenizer's own, as those of a text that follows on a prompt."""
    if isinstance(after, str):
        return Generated(after, tuple(tokenizer.encode(after, first=False)))
    ids = _ids(after)
    return Generated(tokenizer.decode(ids), ids)


def _segments(prompt: str | Iterable[int] | Prompt) -> Prompt:
    """A prompt as the contract has it: of a text (its special tokens are meant), of ids, or of segments."""
    if isinstance(prompt, str):
        return (Text(prompt, special=True),)
    items: tuple[Any, ...] = tuple(prompt)
    if items and all(isinstance(item, _SEGMENTS) for item in items):
        return items
    return (Generated("", _ids(items)),)


def _ids(items: Iterable[Any]) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, items))
    except TypeError:
        raise UsageError("allowed looks at one prompt: a text, a list of ids, or the segments of a prompt") from None


def _advance(matcher: Matcher, so_far: Generated, constraint: Constraint, tokenizer: Tokenizer) -> None:
    """Let the matcher take the text so far. Raises TextRefused where the constraint does not allow it."""
    data = b""
    for token in so_far.ids:
        if not matcher.accept(token):
            start = _n_whole(data)
            end = max(_n_whole(data + tokenizer.token_bytes(token)), start + 1)
            start += _n_fitting(matcher, so_far.text[start:end], tokenizer)
            what = so_far.text[start:end] or tokenizer.token_text(token)
            where = f"characters {start} to {end} of after={so_far.text!r}"
            raise TextRefused(f"{_named(constraint)} does not allow {what!r}, {where}", start, end)
        data += tokenizer.token_bytes(token)


def _n_whole(data: bytes) -> int:
    """How many characters the bytes have in whole."""
    return len(data.decode(errors="ignore"))


def _n_fitting(matcher: Matcher, text: str, tokenizer: Tokenizer) -> int:
    """How many characters of a refused token's text the constraint would have taken."""
    for n in range(len(text) - 1, 0, -1):
        at = matcher.fork()
        try:
            if all(at.accept(token) for token in tokenizer.encode(text[:n], first=False)):
                return n
        finally:
            at.close()
    return 0


def standing(matcher: Matcher) -> Standing | Exception:
    """Where the matcher's text stands, or why that cannot be told. The matcher is of no more use.

    For the engine's thread, to which the table of masks belongs.
    """
    try:
        return Standing(matcher.mask().copy(), matcher.forced(), matcher.done)
    except Exception as error:  # a constraint past its budget, say: it is the caller's
        return error
    finally:
        matcher.close()


def compared(
    tops: Sequence[TokenLogprob],
    at: Standing | None,
    constraint: Constraint | None,
    after: str,
    n: int | None,
    tokenizer: Tokenizer,
) -> Allowed:
    """The whole vocabulary with its log probabilities, likeliest first, split by the mask; without one all is allowed.

    At most `n` of either kind are listed.
    """
    if n is not None and n < 0:
        raise UsageError(f"n={n} must not be negative; None lists all tokens")
    ids = np.array([top.id for top in tops], np.int64)
    logprobs = np.array([top.logprob for top in tops])
    is_allowed = np.ones(len(tops), bool) if at is None else _bits(at.mask, len(tops))[ids]
    probabilities, shares = np.exp(logprobs), _shares(np.where(is_allowed, logprobs, -math.inf))

    def listed(chosen: npt.NDArray[np.bool_]) -> tuple[Candidate, ...]:
        return tuple(
            Candidate(top.id, top.text, float(probabilities[row]), float(shares[row]), top.id in tokenizer.eos_ids)
            for row, top in ((row, tops[row]) for row in np.flatnonzero(chosen)[:n].tolist())
        )

    return Allowed(
        constraint="" if constraint is None else _value(constraint),
        after=after,
        forced="" if at is None else at.forced,
        done=at is None or at.done,
        n_vocab=len(tops),
        n_allowed=int(is_allowed.sum()),
        kept=math.fsum(probabilities[is_allowed]),
        removed=math.fsum(probabilities[~is_allowed]),
        tokens=listed(is_allowed),
        banned=listed(~is_allowed),
    )


def _bits(mask: MaskRow, n_vocab: int) -> npt.NDArray[np.bool_]:
    """Whether each id may come next; ids beyond the mask may not. bool [n_vocab]"""
    found = np.unpackbits(mask.view(np.uint8), bitorder="little")[:n_vocab]
    return np.pad(found, (0, n_vocab - len(found))).astype(bool)


def _shares(logprobs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The probabilities made to sum to 1, also where each is too small for a number; all 0 if there are none."""
    largest = logprobs.max(initial=-math.inf)
    if largest == -math.inf:
        return np.zeros(len(logprobs))
    weights = np.exp(logprobs - largest)
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


def _named(constraint: Constraint) -> str:
    return f"{constraint.kind} {short(_value(constraint))}"


def _value(constraint: Constraint) -> str:
    return constraint.value if isinstance(constraint.value, str) else repr(list(constraint.value))
