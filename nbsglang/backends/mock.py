"""A backend that answers from a script, for tests and for trying programs without a model.

One token is one character, its id the character's code point; so texts, ids, `max_tokens` and usage agree exactly.
Prompts are rendered as ChatML. Nothing is cached.

Not here: any language model, and any imitation of one.
"""

from __future__ import annotations

import heapq
import itertools
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nbsglang.calls import (
    Call,
    Capabilities,
    ChoiceScore,
    Chunk,
    Completion,
    Constraint,
    Failure,
    FinishReason,
    GenCall,
    Generated,
    Inbox,
    Prompt,
    Reply,
    RoleBegin,
    RoleEnd,
    SamplingParams,
    ScoreCall,
    Text,
    TokenLogprob,
    Usage,
)
from nbsglang.current import forget_backend
from nbsglang.errors import BackendClosed, BackendError, Cancelled, Unsupported, UsageError

Answer = str | Exception
Script = Answer | Sequence[Answer] | Mapping[str, Answer] | Callable[[Call], Answer]
Scores = Mapping[str, float | Sequence[float]] | Callable[[ScoreCall], Mapping[str, float | Sequence[float]]]

_LIKED, _OTHER, _ALONE = -0.1, -2.0, -1.0  # logprob of each token of the scripted choice, of the others, without prompt
_CAN_ALL = Capabilities(
    ids=True,
    logprobs=True,
    scores=True,
    prefix_hint=True,
    constraints=frozenset({"regex", "choices", "schema", "grammar"}),
    seed=True,
    n=True,
    heal=True,  # nothing merges with a token that is one character
)


class _Due(NamedTuple):
    """Something to put in an inbox at a time."""

    at: float
    number: int
    call_id: str
    inbox: Inbox
    item: Chunk | Reply | Failure


class MockBackend:
    """Answers each call from `script`; `calls` has the last 1,000 submitted, `cancelled` the ids of those cancelled.

    script      a string (or an exception to fail with): the answer to every call.
                A list: one answer after the other, in order of submission (a call with n=2 takes two).
                A dict: by the gen's name, else by a regex that is found in the rendered prompt.
                A callable: gets the call and returns the answer.
                None: "mock" to gens, the first choice to selects.
    scores      for selects: choice -> token logprobs (or one number for each character); a dict or a callable.
                Without it the scripted answer must be one of the choices, and is the likely one.
    delay       seconds from submit to reply; chunks of a streaming call are spread over them.
    chunk       characters of a streamed chunk.

    A scripted text that does not fit the call's constraint fails the call. A prefix hint is answered, but takes
    nothing from the script.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        scores: Scores | None = None,
        delay: float = 0.0,
        chunk: int = 4,
        capabilities: Capabilities = _CAN_ALL,
        render: Callable[[Prompt], str] | None = None,
    ) -> None:
        if chunk < 1 or delay < 0:
            raise UsageError(f"chunk must be at least 1 and delay at least 0, not {chunk} and {delay}")
        self._script = script
        self._scripted = iter(script) if isinstance(script, Sequence) and not isinstance(script, str) else None
        self._scores = scores
        self._delay = delay
        self._chunk = chunk
        self._capabilities = capabilities
        self._render = render or _chatml
        self._numbers = itertools.count()
        self._wake = threading.Condition()  # guards what follows; a script may ask for `calls` while it is held
        self._calls: deque[Call] = deque(maxlen=1000)
        self._cancelled: list[str] = []
        self._due: list[_Due] = []
        self._pending: dict[str, Inbox] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._counts = dict.fromkeys(("calls", "prompt_tokens", "generated_tokens"), 0)

    @property
    def capabilities(self) -> Capabilities:
        """What it can do: all but images, unless told otherwise."""
        return self._capabilities

    @property
    def calls(self) -> list[Call]:
        """The calls submitted, oldest first: the last 1,000 of them."""
        with self._wake:
            return list(self._calls)

    @property
    def cancelled(self) -> list[str]:
        """The ids of the calls that were cancelled, in order."""
        with self._wake:
            return list(self._cancelled)

    def render(self, prompt: Prompt) -> str:
        """The prompt as ChatML; what is outside of roles is plain text."""
        return self._render(prompt)

    @property
    def renderer(self) -> Callable[[Prompt], str]:
        """What `render` calls."""
        return self._render

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Answer at once, or after the delay."""
        if isinstance(call, ScoreCall) and not self._capabilities.scores:
            raise Unsupported("this mock cannot score choices")
        with self._wake:
            if self._closed:
                raise BackendClosed("the mock backend is closed")
            self._calls.append(call)
            items = self._answers(call)
            if self._delay == 0:
                for item in items:
                    inbox.put(item)
            else:
                self._schedule(call, inbox, items)

    def cancel(self, call_id: str) -> None:
        """Take the call back, if it waits."""
        with self._wake:
            inbox = self._pending.pop(call_id, None)
            if inbox is not None:
                self._cancelled.append(call_id)
                inbox.put(Failure(call_id, Cancelled("the call was cancelled")))
                self._wake.notify()

    def flush(self) -> None:
        """Nothing is cached."""

    def stats(self) -> Mapping[str, float]:
        """How many calls were answered, and their tokens."""
        with self._wake:
            return dict(self._counts)

    def close(self) -> None:
        """End the waiting calls."""
        with self._wake:
            self._closed = True
            for call_id, inbox in self._pending.items():
                inbox.put(Failure(call_id, BackendClosed("the mock backend was closed during the call")))
            self._pending.clear()
            self._wake.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        forget_backend(self)

    # ------------------------------------------------------------------------------------- the delay

    def _schedule(self, call: Call, inbox: Inbox, items: list[Chunk | Reply | Failure]) -> None:
        now = time.monotonic()
        self._pending[call.call_id] = inbox
        for n, item in enumerate(items, 1):
            at = now + self._delay * n / len(items)
            heapq.heappush(self._due, _Due(at, next(self._numbers), call.call_id, inbox, item))
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="nbsglang-mock", daemon=True)
            self._thread.start()
        self._wake.notify()

    def _deliver(self) -> None:
        """Put what is due; ends when nothing waits any more."""
        with self._wake:
            while self._pending:
                due = self._due[0]
                late = time.monotonic() - due.at
                if due.call_id in self._pending and late < 0:
                    self._wake.wait(-late)
                    continue
                heapq.heappop(self._due)
                if due.call_id in self._pending:
                    if not isinstance(due.item, Chunk):
                        del self._pending[due.call_id]
                    due.inbox.put(due.item)
            self._due.clear()
            self._thread = None

    # ----------------------------------------------------------------------------------- the answers

    def _answers(self, call: Call) -> list[Chunk | Reply | Failure]:
        try:
            reply = self._score(call) if isinstance(call, ScoreCall) else self._generate(call)
        except Exception as error:  # a script's own errors too
            return [Failure(call.call_id, error.with_traceback(None))]
        self._counts["calls"] += 1
        self._counts["prompt_tokens"] += reply.usage.prompt_tokens
        self._counts["generated_tokens"] += reply.usage.generated_tokens
        chunks = self._chunks(call, reply) if isinstance(call, GenCall) and call.stream else ()
        return [*chunks, reply]

    def _generate(self, call: GenCall) -> Reply:
        if call.sampling.max_tokens == 0:
            empty = (Completion("", finish_reason="prefix"),) * call.sampling.n
            return Reply(call.call_id, empty, usage=self._usage(call, 0))
        done = tuple(_completion(call, self._scripted_text(call, "mock")) for _ in range(call.sampling.n))
        return Reply(call.call_id, done, usage=self._usage(call, sum(len(one.text) for one in done)))

    def _score(self, call: ScoreCall) -> Reply:
        table = self._scores(call) if callable(self._scores) else self._scores
        if table is None:
            liked = self._scripted_text(call, call.choices[0])
            if liked not in call.choices:
                raise BackendError(f"the script answers {liked!r}, which is none of the choices {call.choices}")
            table = {choice: _LIKED if choice == liked else _OTHER for choice in call.choices}
        scores = tuple(_choice_score(choice, table[choice], call.unconditional) for choice in call.choices)
        return Reply(call.call_id, scores=scores, usage=self._usage(call, 0))

    def _scripted_text(self, call: Call, default: str) -> str:
        script = self._script
        answer: Any
        if script is None:
            answer = default
        elif self._scripted is not None:
            answer = next(self._scripted, BackendError("the script is over"))
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
        text = self.render(call.prompt)
        for pattern, answer in script.items():
            if re.search(pattern, text):
                return answer
        return BackendError(f"the script has nothing for {call.name!r}, and no pattern of it is in the prompt")

    def _usage(self, call: Call, n_generated: int) -> Usage:
        n_prompt = len(self.render(call.prompt))
        return Usage(
            prompt_tokens=n_prompt,
            computed_tokens=n_prompt,
            generated_tokens=n_generated,
            first_token_s=self._delay if n_generated else None,
            seconds=self._delay,
        )

    def _chunks(self, call: GenCall, reply: Reply) -> Iterator[Chunk]:
        for index, done in enumerate(reply.completions):
            for at in range(0, len(done.text), self._chunk):
                piece = done.text[at : at + self._chunk]
                yield Chunk(call.call_id, piece, index)


def _chatml(prompt: Prompt) -> str:
    pieces = []
    for segment in prompt:
        if isinstance(segment, (Text, Generated)):
            pieces.append(segment.text)
        elif isinstance(segment, RoleBegin):
            pieces.append(f"<|im_start|>{segment.name}\n")
        elif isinstance(segment, RoleEnd):
            pieces.append("<|im_end|>\n")
        else:
            raise Unsupported("the mock backend takes no images")
    return "".join(pieces)


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
