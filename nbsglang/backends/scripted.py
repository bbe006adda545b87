"""The replies of a script: what a call gets of it, within the call's limits and constraint.

Not here: when a reply comes (`mock.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nbsglang.calls import (
    Call,
    ChoiceScore,
    Completion,
    Constraint,
    FinishReason,
    GenCall,
    Prompt,
    Reply,
    SamplingParams,
    ScoreCall,
    TokenLogprob,
    Usage,
)
from nbsglang.errors import BackendError

Answer = str | Exception
Script = Answer | Sequence[Answer] | Mapping[str, Answer] | Callable[[Call], Answer]
Scores = Mapping[str, float | Sequence[float]] | Callable[[ScoreCall], Mapping[str, float | Sequence[float]]]

_LIKED, _OTHER, _ALONE = -0.1, -2.0, -1.0  # logprob of each token of the scripted choice, of the others, without prompt


class Scripted:
    """Makes the replies of a script; `script` and `scores` are those of `MockBackend`, `delay_s` is what replies tell.

    Where a script is a list or has a state of its own, calls must come one at a time.
    """

    def __init__(
        self, script: Script | None, scores: Scores | None, render: Callable[[Prompt], str], delay_s: float
    ) -> None:
        self._script = script
        self._in_turn = iter(script) if isinstance(script, Sequence) and not isinstance(script, str) else None
        self._scores = scores
        self._render = render
        self._delay_s = delay_s

    def reply(self, call: Call) -> Reply:
        """The reply to a call. Raises what the script has or raises, BackendError where it does not fit the call."""
        return self._score(call) if isinstance(call, ScoreCall) else self._generate(call)

    def _generate(self, call: GenCall) -> Reply:
        if call.sampling.max_tokens == 0:
            empty = (Completion("", finish_reason="prefix"),) * call.sampling.n
            return Reply(call.call_id, empty, usage=self._usage(call, 0))
        done = tuple(_completion(call, self._text(call, "mock")) for _ in range(call.sampling.n))
        return Reply(call.call_id, done, usage=self._usage(call, sum(len(one.text) for one in done)))

    def _score(self, call: ScoreCall) -> Reply:
        table = self._scores(call) if callable(self._scores) else self._scores
        if table is None:
            liked = self._text(call, call.choices[0])
            if liked not in call.choices:
                raise BackendError(f"the script answers {liked!r}, which is none of the choices {call.choices}")
            table = {choice: _LIKED if choice == liked else _OTHER for choice in call.choices}
        scores = tuple(_choice_score(choice, table[choice], call.unconditional) for choice in call.choices)
        return Reply(call.call_id, scores=scores, usage=self._usage(call, 0))

    def _text(self, call: Call, default: str) -> str:
        script = self._script
        answer: Any
        if script is None:
            answer = default
        elif self._in_turn is not None:
            answer = next(self._in_turn, BackendError("the script is over"))
        elif isinstance(script, Mapping):
            answer = self._looked_up(call, script)
        else:
            answer = script(call) if callable(script) else script
        if isinstance(answer, BaseException):
            raise answer
        if not isinstance(answer, str):
            raise BackendError(f"the script must give text or an exception, not {answer!r}")
        return answer

    def _looked_up(self, call: Call, script: Mapping[str, Answer]) -> Answer:
        if call.name in script:
            return script[call.name]
        text = self._render(call.prompt)
        for pattern, answer in script.items():
            if re.search(pattern, text):
                return answer
        return BackendError(f"the script has nothing for {call.name!r}, and no pattern of it is in the prompt")

    def _usage(self, call: Call, n_generated: int) -> Usage:
        n_prompt = len(self._render(call.prompt))
        return Usage(
            prompt_tokens=n_prompt,
            computed_tokens=n_prompt,
            generated_tokens=n_generated,
            first_token_s=self._delay_s if n_generated else None,
            seconds=self._delay_s,
        )


def _completion(call: GenCall, text: str) -> Completion:
    if call.constraint is not None:
        _check(call.constraint, text)
    end, reason, matched = _end(text, call.sampling)
    text = text[:end]
    logprobs = tops = None
    if call.logprobs is not None:
        logprobs = tuple(TokenLogprob(ord(char), -1.0, char) for char in text)
        tops = tuple((token,) for token in logprobs) if call.logprobs.top else None
    return Completion(text, tuple(map(ord, text)), "", reason, matched, logprobs, tops)


def _end(text: str, sampling: SamplingParams) -> tuple[int, FinishReason, str | int | None]:
    """Where the text ends, why, and by what."""
    ends: list[tuple[int, str | int]] = []
    low = sampling.min_tokens
    for stop in sampling.stop:
        ends += [(at, stop)] if (at := text.find(stop, low)) >= 0 else []
    for pattern in sampling.stop_regex:
        ends += [(found.start(), found.group())] if (found := re.compile(pattern).search(text, low)) else []
    for token_id in sampling.stop_token_ids:
        ends += [(at, token_id)] if (at := text.find(chr(token_id), low)) >= 0 else []
    end, matched = min(ends, key=lambda pair: pair[0], default=(len(text), None))
    if end > sampling.max_tokens:
        return sampling.max_tokens, "length", None
    return end, "stop", matched


def _check(constraint: Constraint, text: str) -> None:
    fits = True
    if constraint.kind == "regex":
        fits = re.fullmatch(str(constraint.value), text) is not None
    elif constraint.kind == "choices":
        fits = text in constraint.value
    elif constraint.kind == "schema":
        try:
            json.loads(text)
        except ValueError:
            fits = False
    if not fits:
        raise BackendError(f"the scripted text {text!r} does not match the {constraint.kind} {constraint.value!r}")


def _choice_score(choice: str, logprobs: float | Sequence[float], unconditional: bool) -> ChoiceScore:
    if isinstance(logprobs, (int, float)):
        logprobs = [logprobs] * len(choice)
    tokens = tuple(TokenLogprob(ord(char), value, char) for char, value in zip(choice, logprobs, strict=False))
    alone = tuple(token._replace(logprob=_ALONE) for token in tokens)
    return ChoiceScore(tokens, alone if unconditional else None)
