"""How `select` decides between choices whose tokens have been scored.

A method is given the token logprobs of each choice and names one. Users may write their own by subclassing
`ChoicesSamplingMethod`; its call has the keywords of SGLang's methods, so such classes work in both.

Not here: scoring (the backend's `ScoreCall`), and when a select decides (`execute.py`).
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nbsglang.calls import ChoiceScore
from nbsglang.errors import UsageError

ScoredToken = tuple[float, int, str]  # logprob (natural log), token id, text
ScoredTokens = list[list[ScoredToken]]  # for each choice


@dataclass
class ChoicesDecision:
    """The choice that was taken, and what to tell about it in `get_meta_info`."""

    decision: str
    meta_info: dict[str, object] | None = None


class Decided(NamedTuple):
    """A decision with what is told about it, and for each choice the score that counts and its probability."""

    decision: str
    meta_info: dict[str, object]
    scores: list[float]
    probabilities: list[float]


class ChoicesSamplingMethod(ABC):
    """The base of all methods. Subclass it, and pass an instance as `choices_method`.

    The call runs on the driver's thread: it must be quick, and an error in it fails the stream.
    """

    @property
    def requires_unconditional_logprobs(self) -> bool:
        """Whether the choices must also be scored without the prompt."""
        return False

    @abstractmethod
    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: ScoredTokens,
        output_token_logprobs: ScoredTokens,
        unconditional_token_logprobs: ScoredTokens | None = None,
    ) -> ChoicesDecision:
        """Decide. `normalized_prompt_logprobs` has each choice's mean token logprob (its tokens are in
        `input_token_logprobs`); `output_token_logprobs` is empty for each choice, since nothing is generated."""


class TokenLengthNormalized(ChoicesSamplingMethod):
    """The highest mean token logprob wins; of equals the first."""

    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: ScoredTokens,
        output_token_logprobs: ScoredTokens,
        unconditional_token_logprobs: ScoredTokens | None = None,
    ) -> ChoicesDecision:
        return ChoicesDecision(choices[_best(normalized_prompt_logprobs)], {})


class GreedyTokenSelection(ChoicesSamplingMethod):
    """Token by token, the choices with the highest logprob stay; a choice that is over counts on with its mean."""

    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: ScoredTokens,
        output_token_logprobs: ScoredTokens,
        unconditional_token_logprobs: ScoredTokens | None = None,
    ) -> ChoicesDecision:
        length = max(len(tokens) for tokens in input_token_logprobs)
        matrix = [
            [token[0] for token in tokens] + [mean] * (length - len(tokens))
            for tokens, mean in zip(input_token_logprobs, normalized_prompt_logprobs, strict=True)
        ]
        alive = list(range(len(choices)))
        for column in range(length):
            best = max(matrix[i][column] for i in alive)
            alive = [i for i in alive if matrix[i][column] == best]
        return ChoicesDecision(choices[alive[0]], {"greedy_logprob_matrix": matrix})


class UnconditionalLikelihoodNormalized(ChoicesSamplingMethod):
    """The highest mean of (logprob after the prompt - logprob without the prompt) wins."""

    @property
    def requires_unconditional_logprobs(self) -> bool:
        return True

    def __call__(
        self,
        *,
        choices: list[str],
        normalized_prompt_logprobs: list[float],
        input_token_logprobs: ScoredTokens,
        output_token_logprobs: ScoredTokens,
        unconditional_token_logprobs: ScoredTokens | None = None,
    ) -> ChoicesDecision:
        if unconditional_token_logprobs is None:
            raise UsageError("unconditional_likelihood_normalized needs the logprobs without the prompt")
        scores = [
            _gain(given, alone) for given, alone in zip(input_token_logprobs, unconditional_token_logprobs, strict=True)
        ]
        return ChoicesDecision(choices[_best(scores)], {"normalized_unconditional_prompt_logprobs": scores})


token_length_normalized = TokenLengthNormalized()
greedy_token_selection = GreedyTokenSelection()
unconditional_likelihood_normalized = UnconditionalLikelihoodNormalized()


def decide(
    choices: Sequence[str],
    scores: Sequence[ChoiceScore],
    method: ChoicesSamplingMethod,
    temperature: float,
    seed: int | None,
) -> Decided:
    """The decision on scored choices; above temperature 0 one is drawn by the softmax of the method's scores.

    The scores are the mean token logprobs, or what the method reports as normalized_unconditional_prompt_logprobs.
    """
    given = [_tokens(score.tokens) for score in scores]
    means = [_mean([token[0] for token in tokens]) for tokens in given]
    alone = [_tokens(score.unconditional or ()) for score in scores] if method.requires_unconditional_logprobs else None
    made = method(
        choices=list(choices),
        normalized_prompt_logprobs=means,
        input_token_logprobs=given,
        output_token_logprobs=[[] for _ in choices],
        unconditional_token_logprobs=alone,
    )
    if made.decision not in choices:
        raise UsageError(f"{type(method).__name__} decided on {made.decision!r}, which is none of {list(choices)}")
    own = dict(made.meta_info or {})
    weights = own.get("normalized_unconditional_prompt_logprobs", means)
    counting: list[float] = weights if isinstance(weights, list) and len(weights) == len(choices) else means
    probabilities = softmax(counting, temperature or 1.0)
    decision = draw(choices, probabilities, seed) if temperature > 0 else made.decision
    meta: dict[str, object] = {
        "choices": list(choices),
        "normalized_prompt_logprobs": means,
        "total_logprobs": [sum(token[0] for token in tokens) for tokens in given],
        "probabilities": probabilities,
        "input_token_logprobs": given,
        "output_token_logprobs": [[] for _ in choices],
    }
    if alone is not None:
        meta["unconditional_token_logprobs"] = alone
    return Decided(decision, meta | own, counting, probabilities)


def softmax(values: Sequence[float], temperature: float = 1.0) -> list[float]:
    """Probabilities in proportion to exp(value / temperature); all equal if every value is -inf."""
    top = max(values)
    if top == -math.inf:
        return [1 / len(values)] * len(values)
    weights = [math.exp((value - top) / temperature) for value in values]
    total = sum(weights)
    return [weight / total for weight in weights]


def draw(choices: Sequence[str], probabilities: Sequence[float], seed: int | None) -> str:
    """One of the choices, always the same for the same seed."""
    point = random.Random(seed).random()
    for choice, probability in zip(choices, probabilities, strict=True):
        point -= probability
        if point < 0:
            return choice
    return choices[max(range(len(choices)), key=probabilities.__getitem__)]  # rounding left a remainder


def _tokens(tokens: Sequence[tuple[int, float, str]]) -> list[ScoredToken]:
    return [(logprob, token_id, text) for token_id, logprob, text in tokens]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values and -math.inf not in values else (-math.inf if values else 0.0)


def _best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _gain(given: Sequence[ScoredToken], alone: Sequence[ScoredToken]) -> float:
    if len(given) != len(alone):
        raise UsageError(f"{len(given)} tokens were scored after the prompt, but {len(alone)} without it")
    return _mean([a[0] - b[0] for a, b in zip(given, alone, strict=True)])
