"""What becomes of the tokens of a step: text, stops, constraints, ends.

Not here: the step (`core.py`), the choice of tokens (`sampler.py`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nbsglang.engine.draws import Sampled
from nbsglang.engine.request import Ints, Request
from nbsglang.engine.scheduler import Scheduler
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import BackendError, NbsglangError
from nbsglang.events import Body, Finished, Tokens, TokenTexts


class Output(NamedTuple):
    """What a step has for a request: new text of a stream, and whether it ended, with an error or well."""

    request: Request
    text: str = ""
    ended: bool = False
    error: Exception | None = None


@dataclass(slots=True)
class Totals:
    """Counters since the engine began, and seconds spent in the four parts of its steps."""

    steps: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    plan_s: float = 0.0
    pack_s: float = 0.0
    run_s: float = 0.0
    commit_s: float = 0.0


class Commit:
    """Appends tokens to requests and ends those that are done."""

    def __init__(
        self, scheduler: Scheduler, tokenizer: Tokenizer, n_vocab: int, totals: Totals, emit: Callable[[Body], object]
    ) -> None:
        self._scheduler = scheduler
        self._tokenizer = tokenizer
        self._totals = totals
        self._emit = emit
        self._named = np.zeros(max(n_vocab, tokenizer.n_vocab), bool)

    def name_tokens(self, tokens: Ints) -> None:
        """Log the text of each id once."""
        new = tokens[~self._named[tokens]]
        if len(new):
            self._named[new] = True
            ids = tuple(sorted(set(new.tolist())))
            self._emit(TokenTexts(ids, tuple(self._tokenizer.token_text(i) for i in ids)))

    def take(self, requests: Sequence[Request], sampled: Sequence[Sampled], outputs: list[Output]) -> None:
        """Take a token for each request that has not ended meanwhile.

        Outputs are added one by one, so that none is lost when a later request fails.
        """
        alive = [(r, token) for r, token in zip(requests, sampled, strict=True) if not r.t_finished]
        if not alive:
            return
        now = time.perf_counter()
        self.name_tokens(np.array([token.id for _, token in alive], np.int32))
        self._emit(Tokens(tuple(r.id for r, _ in alive), tuple((token.id,) for _, token in alive)))
        self._totals.generated_tokens += len(alive)
        for request, token in alive:
            if request.t_first is None:
                request.t_first = now
            request.n_pending -= 1
            try:
                output = self._take(request, token)
            except Exception as error:  # a stop pattern past its budget, say: the neighbours are not to blame
                output = self.fail(request, error)
            if output is not None:
                outputs.append(output)

    def _take(self, request: Request, sampled: Sampled) -> Output | None:
        token = sampled.id
        if token in request.end_ids:
            return self.end(request, "stop", token)
        request.append(token)
        if request.is_watched:
            return self._watch(request, sampled)
        return self.end(request, "length") if request.n_tokens - request.n_prompt >= request.max_new else None

    def _watch(self, request: Request, sampled: Sampled) -> Output | None:
        """Log probabilities, text, stops and constraint of the token that was appended last."""
        if sampled.logprob is not None:
            request.logprobs.append(sampled.logprob)
            request.tops.append(sampled.top)
        n_new = request.n_tokens - request.n_prompt
        text = self._shown(request)
        if request.matcher is not None:
            accepted = request.matcher.accept(sampled.id)
            assert accepted, f"the constraint's mask allowed token {sampled.id}, which it does not accept"
        if request.stops is not None:
            text, stopped = request.stops.push(text, check=n_new > request.sampling.min_tokens)
            if stopped:
                return self.end(request, "stop", request.stops.matched, text)
        if request.matcher is not None and request.matcher.ended:
            return self.end(request, "constraint", None, text)
        if n_new >= request.max_new:
            return self.end(request, "length", None, text)
        request.text += text
        return Output(request, text) if request.streams else None

    def _shown(self, request: Request) -> str:
        """The text of the tokens that have not been through the detokenizer."""
        start, request.n_shown = request.n_shown, request.n_tokens - request.n_prompt
        if request.detokenizer is None:
            return ""
        return request.detokenizer.push(*request.generated[start:].tolist())

    def end(
        self, request: Request, reason: str | None = None, matched: str | int | None = None, text: str = ""
    ) -> Output:
        """The request is done: complete its text, return its memory."""
        request.finish_reason = reason or "prefix"  # type: ignore[assignment]
        request.matched = matched
        if request.detokenizer is not None and not (request.stops is not None and request.stops.stopped):
            rest = self._shown(request) + request.detokenizer.flush()
            if request.stops is not None:
                rest = request.stops.push(rest, check=False).text + request.stops.flush()
            text += rest
        request.text += text
        self._scheduler.finish(request)
        self._log_end(request, request.finish_reason or "")
        return Output(request, text, ended=True)

    def abort(self, request: Request, reason: str = "cancelled") -> None:
        """Drop a request; what it computed stays in the cache. One that has ended is left alone."""
        if request.ended:
            return
        if request.t_queued:
            self._scheduler.finish(request)
        self._log_end(request, reason)

    def fail(self, request: Request, error: Exception) -> Output:
        """Give a request up."""
        self.abort(request, "error")
        return Output(request, ended=True, error=without_frames(error))

    def _log_end(self, request: Request, reason: str) -> None:
        request.t_finished = time.perf_counter()
        n_generated = request.n_tokens - request.n_prompt
        self._totals.prompt_tokens += request.n_prompt
        self._totals.cached_tokens += request.n_cached
        body = Finished(request.id, request.call_id, reason, request.n_prompt, request.n_cached, n_generated)
        self._emit(body)


def without_frames(error: Exception) -> Exception:
    """The error rebuilt with its traceback as text: frames would keep tensors alive wherever it is kept."""
    if isinstance(error, NbsglangError):
        return type(error)(*error.args)
    return BackendError(f"{type(error).__name__}: {error}\n\n{''.join(traceback.format_exception(error))}")
