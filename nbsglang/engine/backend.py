"""The calls in flight: which requests belong to which, and replies for the callers' inboxes.

Not here: how a call becomes requests (`intake.py`), what the engine does with them (`core.py`).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from nbsglang.calls import (
    Call,
    ChoiceScore,
    Chunk,
    Completion,
    Failure,
    Inbox,
    Reply,
    ScoreCall,
    Token,
    TokenLogprob,
    Usage,
)
from nbsglang.engine.commit import Output
from nbsglang.engine.request import Request
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import BackendClosed, Cancelled, UsageError


@dataclass(slots=True)
class Entry:
    """A call in flight: its requests in order, and how many of them have not ended."""

    call: Call
    inbox: Inbox
    requests: list[Request]
    n_left: int
    t_start: float = field(default_factory=time.perf_counter)


class Desk:
    """Keeps the calls in flight. Every method is safe from any thread."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._ids = itertools.count(1)
        self._closed: str | None = None  # why no call is taken any more

    # ------------------------------------------------------------------------------------- calls come in

    def open(self, call: Call, inbox: Inbox, requests: list[Request]) -> None:
        """Remember a call and number its requests. Raises BackendClosed, or UsageError for an id that is in use."""
        entry = Entry(call, inbox, requests, len(requests))
        with self._lock:
            if self._closed is not None:
                raise BackendClosed(self._closed)
            if call.call_id in self._entries:
                raise UsageError(f"call id {call.call_id!r} is in use")
            for request in requests:
                request.id = next(self._ids)  # arrival order, also between threads
            self._entries[call.call_id] = entry

    # ---------------------------------------------------------------------------------- answers go out

    def requests(self, call_id: str) -> list[Request]:
        """The requests of a call in flight that may still run."""
        with self._lock:
            entry = self._entries.get(call_id)
        return list(entry.requests) if entry else []

    def forget(self, call_id: str) -> None:
        """Drop a call that never began."""
        with self._lock:
            self._entries.pop(call_id, None)

    def deliver(self, outputs: Sequence[Output]) -> list[Request]:
        """Pass a step's outputs on. Returns the requests that need not go on, as another of their call failed."""
        orphans: list[Request] = []
        for output in outputs:
            request = output.request
            with self._lock:
                entry = self._entries.get(request.call_id)
            if entry is None:
                continue
            if output.error is not None:
                orphans += [r for r in entry.requests if r is not request]
                self.fail(request.call_id, output.error)
                continue
            if request.streams and output.text:
                entry.inbox.put(Chunk(request.call_id, output.text, index=request.place))
            if output.ended:
                entry.n_left -= 1
                if entry.n_left == 0:
                    self._reply(entry)
        return orphans

    def _reply(self, entry: Entry) -> None:
        with self._lock:  # only one of a reply and a failure, whoever comes first
            if self._entries.pop(entry.call.call_id, None) is None:
                return
        usage = _usage(entry)
        if isinstance(entry.call, ScoreCall):
            scores = _choice_scores(entry.requests, entry.call, self._tokenizer)
            entry.inbox.put(Reply(entry.call.call_id, scores=scores, usage=usage))
            return
        first, logprobs = entry.requests[0], None
        if entry.call.logprobs is not None and entry.call.logprobs.prompt_start is not None:
            named = _named(first.scores, self._tokenizer)
            logprobs = (None, *named) if entry.call.logprobs.prompt_start == 0 else named
        completions = tuple(_completion(r, self._tokenizer) for r in entry.requests)
        entry.inbox.put(Reply(entry.call.call_id, completions, usage=usage, prompt_logprobs=logprobs))

    def fail(self, call_id: str, error: Exception) -> None:
        """End a call with an error; unknown calls are ignored."""
        with self._lock:
            entry = self._entries.pop(call_id, None)
        if entry is not None:
            for request in entry.requests:
                request.unwanted = True
            entry.inbox.put(Failure(call_id, error))

    def close(self, why: str) -> None:
        """Take no more calls and fail those in flight."""
        with self._lock:
            self._closed = self._closed or why
            left = list(self._entries)
        for call_id in left:
            self.fail(call_id, BackendClosed(why))

    def cancelled(self, call_id: str) -> None:
        """End a call that its caller cancelled."""
        self.fail(call_id, Cancelled("the call was cancelled"))

    @property
    def n_calls(self) -> int:
        """Calls in flight."""
        return len(self._entries)


def _usage(entry: Entry) -> Usage:
    requests = entry.requests
    firsts = [r.t_first for r in requests if r.t_first is not None]
    n_prompt = sum(r.n_prompt for r in requests)
    n_cached = sum(r.n_cached for r in requests)
    return Usage(
        prompt_tokens=n_prompt,
        cached_tokens=n_cached,
        computed_tokens=n_prompt - n_cached,
        generated_tokens=sum(r.n_tokens - r.n_prompt for r in requests),
        jumped_tokens=sum(len(r.jumped) for r in requests),
        first_token_s=min(firsts) - entry.t_start if firsts else None,
        seconds=time.perf_counter() - entry.t_start,
    )


def _completion(request: Request, tokenizer: Tokenizer) -> Completion:
    ids = tuple(request.generated.tolist())
    over, tail = request.over, ""
    if request.stops is not None and request.stops.stopped:
        n_ids, n_chars = _covered(ids, len(over + request.text), tokenizer)
        ids, tail = ids[:n_ids], (over + request.text)[n_chars:]
    if request.n_over or len(tail) > len(request.text):  # the text ends before a token that goes beyond the prompt
        ids, over, tail = (), "", request.text
    with_logprobs = request.n_top is not None
    return Completion(
        text=request.text,
        ids=_marked(ids, request),
        tail=tail,
        finish_reason=request.finish_reason or "stop",
        matched=request.matched,
        logprobs=_named(request.logprobs, tokenizer) if with_logprobs else None,
        top_logprobs=tuple(_named(top, tokenizer) for top in request.tops) if with_logprobs else None,
        over=over,
        removed=tuple([*request.removed, *[None] * len(ids)][: len(ids)]) if request.removed else None,
    )


def _marked(ids: tuple[int, ...], request: Request) -> tuple[int, ...]:
    """The ids with what the request's constraint had to say of each."""
    if not request.removed and not request.jumped:
        return ids
    removed = [*request.removed, *[None] * len(ids)]  # an end token that stays was not noted
    return tuple(Token(token, removed[n], n in request.jumped) for n, token in enumerate(ids))


def _covered(ids: Sequence[int], n_chars: int, tokenizer: Tokenizer) -> tuple[int, int]:
    """How many leading ids lie within the first `n_chars` of their text, and how many characters they make."""
    detokenizer = tokenizer.detokenizer()
    best = (0, 0)
    at = 0
    for n, token in enumerate(ids, 1):
        at += len(detokenizer.push(token))
        if at > n_chars:
            break
        if not detokenizer.pending:
            best = (n, at)
    return best


def _named(logprobs: Sequence[TokenLogprob], tokenizer: Tokenizer) -> tuple[TokenLogprob, ...]:
    return tuple(p._replace(text=tokenizer.token_text(p.id)) for p in logprobs)


def _choice_scores(requests: Sequence[Request], call: ScoreCall, tokenizer: Tokenizer) -> tuple[ChoiceScore, ...]:
    n = len(call.choices)
    with_prompt = [_named(r.scores, tokenizer) for r in requests[:n]]
    if not call.unconditional:
        return tuple(ChoiceScore(tokens) for tokens in with_prompt)
    alone = [_named(r.scores, tokenizer) for r in requests[n:]]
    return tuple(ChoiceScore(a, b) for a, b in zip(with_prompt, alone, strict=True))
