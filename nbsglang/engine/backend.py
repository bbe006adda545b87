"""Calls to requests and back: prompts become ids, ends of requests become replies in the caller's inbox.

Encoding and compiling happen on the caller's thread, delivery on the engine's.

Not here: what the engine does with a request (`core.py`), the public object (`engine.py`).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from nbsglang.calls import (
    Call,
    ChoiceScore,
    Chunk,
    Completion,
    Constraint,
    Failure,
    GenCall,
    Inbox,
    Prompt,
    Reply,
    SamplingParams,
    ScoreCall,
    Text,
    TokenLogprob,
    Usage,
)
from nbsglang.engine.core import Output
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.prompt import Renderer
from nbsglang.engine.radix import common_prefix
from nbsglang.engine.request import Ints, Request
from nbsglang.engine.sampler import uniform
from nbsglang.engine.stops import StopMatcher
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import BackendClosed, Cancelled, PromptTooLong, UsageError
from nbsglang.events import Control

if TYPE_CHECKING:
    from nbsglang.engine.grammar.external import Compiler


@dataclass(slots=True)
class Entry:
    """A call in flight: its requests in order, and how many of them have not ended."""

    call: Call
    inbox: Inbox
    requests: list[Request]
    n_left: int
    t_start: float = field(default_factory=time.perf_counter)


class Desk:
    """Keeps the calls in flight; a prompt with its answer has at most `n_context` and `n_slots` tokens."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        renderer: Renderer,
        emit: Callable[[Control], object],
        n_context: int,
        n_slots: int,
        seed: int,
    ) -> None:
        self._tokenizer = tokenizer
        self._renderer = renderer
        self._emit = emit
        self._compiler: Compiler | None = None  # made at the first constraint: it reads the whole vocabulary
        self._n_context, self._n_slots = n_context, n_slots
        self._seed = seed
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._ids = itertools.count(1)
        self._closed: str | None = None  # why no call is taken any more

    # ------------------------------------------------------------------------------------- calls come in

    def open(self, call: Call, inbox: Inbox) -> list[Request]:
        """Make the requests of a call and remember it. Raises when the call cannot be served."""
        requests = self._score_requests(call) if isinstance(call, ScoreCall) else self._gen_requests(call)
        entry = Entry(call, inbox, requests, len(requests))
        with self._lock:
            if self._closed is not None:
                raise BackendClosed(self._closed)
            if call.call_id in self._entries:
                raise UsageError(f"call id {call.call_id!r} is in use")
            for request in requests:
                request.id = next(self._ids)  # arrival order, also between threads
            self._entries[call.call_id] = entry
        return requests

    def _gen_requests(self, call: GenCall) -> list[Request]:
        params = call.sampling
        check_sampling(params)
        ids = self._encode(call.prompt)
        max_new = min(params.max_tokens, self._room(ids))
        scored_from = call.logprobs.prompt_start if call.logprobs else None
        last = len(ids) if params.max_tokens == 0 else len(ids) - 1
        seed = params.seed if params.seed is not None else self._draw_seed()
        return [
            Request(
                id=0,
                call_id=call.call_id,
                row=np.resize(ids, len(ids) + min(max_new, 256)),
                n_tokens=len(ids),
                want_from=last if scored_from is None or place else min(last, max(scored_from - 1, 0)),
                max_new=max_new,
                sampling=params,
                seed=seed,
                eos_ids=frozenset(self._tokenizer.eos_ids),
                matcher=self._compile(call.constraint) if call.constraint else None,
                stops=StopMatcher(params.stop, params.stop_regex) if params.stop or params.stop_regex else None,
                detokenizer=self._tokenizer.detokenizer() if max_new else None,
                streams=call.stream,
                n_top=call.logprobs.top if call.logprobs else None,
                place=place,
            )
            for place in range(params.n)
        ]

    def _compile(self, constraint: Constraint) -> Matcher:
        from nbsglang.engine.grammar.external import Compiler  # loads llguidance: only for who uses it

        with self._lock:
            if self._compiler is None:
                words = self._tokenizer
                self._compiler = Compiler(words.bytes_table, words.eos_ids, words.special_ids)
            compiler = self._compiler
        return compiler.compile(constraint)

    def _score_requests(self, call: ScoreCall) -> list[Request]:
        """One request for each choice, then, if asked for, one for each choice without the prompt."""
        if not call.choices:
            raise UsageError("select needs at least one choice")
        if "" in call.choices:
            raise UsageError('a choice is the empty string ""; give every choice some text')
        prompt = self._encode(call.prompt, may_be_empty=True)
        full = [self._encode((*call.prompt, Text(choice))) for choice in call.choices]
        start = min(common_prefix(prompt, ids) for ids in full)
        start = min(start, *(len(ids) - 1 for ids in full))
        if start == 0:
            raise UsageError("select needs some text before its choices: the first token has no probability")
        requests = [self._score_request(call.call_id, ids, start) for ids in full]
        if call.unconditional:
            before = np.array(self._tokenizer.bos_ids or self._tokenizer.eos_ids[:1], np.int32)
            alone = [np.concatenate([before, ids[start:]]) for ids in full]
            requests += [self._score_request(call.call_id, ids, max(len(before), 1)) for ids in alone]
        return requests

    def _score_request(self, call_id: str, ids: Ints, start: int) -> Request:
        self._room(ids[:-1])
        return Request(0, call_id, ids, len(ids), start - 1, 0, SamplingParams(max_tokens=0), 0)

    def _encode(self, prompt: Prompt, may_be_empty: bool = False) -> Ints:
        encoded = self._renderer.encode(prompt)
        if encoded.anew is not None:
            self._emit(Control("prompt encoded anew", f"the chat template rewrites it from token {encoded.anew} on"))
        ids = np.array(encoded.ids, np.int32)
        if not len(ids) and not may_be_empty:
            raise UsageError("the prompt is empty and the model has no BOS token: give it some text")
        return ids

    def _room(self, ids: Ints) -> int:
        """How many tokens may follow."""
        longest = min(self._n_context, self._n_slots)
        if len(ids) >= longest:
            limit = "the model's context" if self._n_context <= self._n_slots else "the KV pool (kv_tokens)"
            raise PromptTooLong(f"the prompt has {len(ids)} tokens, but {limit} holds {longest} with the answer")
        return longest - len(ids)

    def _draw_seed(self) -> int:
        """A seed for a call that has none: the engine's seed and the number of calls before it decide."""
        with self._lock:
            self._seed += 1
            return int(uniform(self._seed, 0, 0) * (1 << 53))

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
                entry.inbox.put(Chunk(request.call_id, output.text, output.ids, request.place))
            if output.ended:
                entry.n_left -= 1
                if entry.n_left == 0:
                    self._reply(entry)
        return orphans

    def _reply(self, entry: Entry) -> None:
        self.forget(entry.call.call_id)
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


def check_sampling(params: SamplingParams) -> None:
    """Raise UsageError for parameters outside of their ranges."""
    wrong = {
        "max_tokens must not be negative": params.max_tokens < 0,
        "min_tokens must be between 0 and max_tokens": not 0 <= params.min_tokens <= params.max_tokens,
        "n must be at least 1": params.n < 1,
        "temperature must be 0 (greedy) or more": not params.temperature >= 0,
        "top_p must be above 0 and at most 1": not 0 < params.top_p <= 1,
        "top_k must be -1 (off) or at least 1": params.top_k == 0 or params.top_k < -1,
        "min_p must be between 0 and 1": not 0 <= params.min_p <= 1,
        "repetition_penalty must be above 0": not params.repetition_penalty > 0,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise UsageError(f"{message}: {params}")


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
        first_token_s=min(firsts) - entry.t_start if firsts else None,
        seconds=time.perf_counter() - entry.t_start,
    )


def _completion(request: Request, tokenizer: Tokenizer) -> Completion:
    ids = tuple(request.generated.tolist())
    tail = ""
    if request.stops is not None and request.stops.stopped:
        n_ids, n_chars = _covered(ids, len(request.text), tokenizer)
        ids, tail = ids[:n_ids], request.text[n_chars:]
    with_logprobs = request.n_top is not None
    return Completion(
        text=request.text,
        ids=ids,
        tail=tail,
        finish_reason=request.finish_reason or "stop",
        matched=request.matched,
        logprobs=_named(request.logprobs, tokenizer) if with_logprobs else None,
        top_logprobs=tuple(_named(top, tokenizer) for top in request.tops) if with_logprobs else None,
    )


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
