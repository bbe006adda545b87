"""What becomes of the tokens of a step: text, stops, constraints, ends.

Not here: the step (`core.py`), the choice of tokens (`sampler.py`), what is told of them (`token_log.py`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nbsglang.engine.draws import Sampled
from nbsglang.engine.jump import Jumper
from nbsglang.engine.names import TokenNames
from nbsglang.engine.request import Request
from nbsglang.engine.scheduler import Scheduler
from nbsglang.engine.token_log import TokenLog
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.engine.totals import Totals
from nbsglang.errors import BackendError, NbsglangError
from nbsglang.events import Body

_TRIES = 64  # drafts at once, the most


class Output(NamedTuple):
    """What a step has for a request: new text of a stream, and whether it ended, with an error or well."""

    request: Request
    text: str = ""
    ended: bool = False
    error: Exception | None = None


class Commit:
    """Appends tokens to requests and ends those that are done."""

    def __init__(
        self,
        scheduler: Scheduler,
        tokenizer: Tokenizer,
        names: TokenNames,
        totals: Totals,
        emit: Callable[[Body], object],
    ) -> None:
        self._scheduler = scheduler
        self._tokenizer = tokenizer
        self._jumper = Jumper(tokenizer)
        self._log = TokenLog(names, totals, emit)

    def take(self, requests: Sequence[Request], sampled: Sequence[Sampled], outputs: list[Output]) -> None:
        """Take a token for each row of a request that has not ended meanwhile.

        Outputs are added one by one, so that none is lost when a later request fails.
        """
        rows = [(request, token) for request, token in zip(requests, sampled, strict=True) if not request.t_finished]
        now = time.perf_counter()
        drafting = {request.id for request, _ in rows if request.n_draft}
        self._log.drawn([row for row in rows if row[0].id not in drafting])
        for request, token in rows:
            request.n_pending -= 1
            if request.t_finished or request.n_stale:
                request.n_stale = max(request.n_stale - 1, 0)
                continue
            if request.t_first is None:
                request.t_first = now
            if request.id in drafting and not request.n_draft:  # the row after drafts that were all right
                self._log.drawn([(request, token)])
            try:
                output = self._take(request, token)
            except Exception as error:  # a stop pattern past its budget, say: the neighbours are not to blame
                output = self.fail(request, error)
            if output is not None:
                outputs.append(output)

    def _take(self, request: Request, sampled: Sampled) -> Output | None:
        token = sampled.id
        if request.n_draft:
            if token == request.row[request.n_tokens - request.n_draft]:
                return self._confirm(request, sampled)
            self._reject(request, sampled)
        if token in request.end_ids:
            return self.end(request, "stop", token)
        request.append(token)
        if request.is_watched:
            return self._watch(request, sampled)
        return self.end(request, "length") if request.n_new >= request.max_new else None

    def _confirm(self, request: Request, sampled: Sampled) -> Output | None:
        """The model chose the first of the drafts itself."""
        request.n_draft -= 1
        if not request.n_draft:
            request.n_tries = min(2 * request.n_tries, _TRIES)
        request.jumped.add(request.n_new - 1)
        self._log.jumped(request, [sampled.id])
        return self._watch(request, sampled, jumps=False)  # the next row has a token yet

    def _reject(self, request: Request, sampled: Sampled) -> None:
        """The model chose another token than the first draft: the rows of the others are worth nothing."""
        n = request.n_draft
        request.n_tries = max(request.n_tries // 2, 1)  # a model that spells otherwise does so again
        self._log.drawn([(request, sampled)])
        self._scheduler.retract(request, n)
        request.drop_drafts()
        request.n_stale = n

    def _watch(self, request: Request, sampled: Sampled, jumps: bool = True) -> Output | None:
        """Log probabilities, text, stops and constraint of a token that is new, and what they force."""
        if sampled.logprob is not None:
            request.logprobs.append(sampled.logprob)
            request.tops.append(sampled.top)
        if request.matcher is not None:
            accepted = request.matcher.accept(sampled.id)
            assert accepted, f"the constraint's mask allowed token {sampled.id}, which it does not accept"
            request.removed.append(sampled.removed)
        text, ended = self._judge(request)
        if ended is None and jumps:
            text, ended = self._jump(request, text)
        if ended is not None:
            return ended
        request.text += text
        return Output(request, text) if request.streams else None

    def begin(self, request: Request) -> Output | None:
        """Take what the constraint of a new request forces at once; that may be all."""
        if not request.max_new:
            return None
        if request.over:
            self._log.healed(request)
        text, ended = self._jump(request, "")
        if ended is not None:
            return ended
        request.text += text
        return Output(request, text) if request.streams and text else None

    def _jump(self, request: Request, text: str) -> tuple[str, Output | None]:
        """Append the forced tokens, each judged like any other, or as drafts.

        Returns `text` with theirs, and the end if one came.
        """
        if request.jump == "off":
            return text, None
        tokens = self._jumper.tokens(request)
        request.leaps = bool(tokens)
        if request.jump == "exact":
            self._draft(request, tokens)
            return text, None
        assert request.matcher is not None
        taken, ended = [], None
        for token in tokens:
            request.append(token)
            request.jumped.add(request.n_new - 1)
            taken.append(token)
            accepted = request.matcher.accept(token)
            assert accepted, f"the constraint forces token {token}, which it does not accept"
            request.removed.append(None)
            more, ended = self._judge(request, text)
            if ended is not None:
                break
            text += more
        if taken:
            request.want_from = request.n_tokens - 1
            self._log.jumped(request, taken)
        return text, ended

    def _draft(self, request: Request, tokens: Sequence[int]) -> None:
        """Append drafts; the row of the token before them is to be computed together with theirs."""
        room = request.max_new - request.n_new - 1  # the model adds one
        drafts = tokens[: max(min(room, request.n_tries), 0)]
        if drafts and request.n_computed == request.n_tokens:  # it is under way, alone
            self._scheduler.retract(request, 1)
        for token in drafts:
            request.append(token)
            request.n_draft += 1

    def _judge(self, request: Request, before: str = "") -> tuple[str, Output | None]:
        """The text of the newest token, or the end that it brings, with the text `before` it."""
        text = self._shown(request)
        if request.n_over:
            request.heal(len(self._tokenizer.token_bytes(request.generated.item(request.n_new - 1))))
        if request.stops is not None:
            check = request.n_new - request.n_within > request.sampling.min_tokens
            text, stopped = request.stops.push(text, check=check)
            if stopped:
                return "", self.end(request, "stop", request.stops.matched, before + text)
        if request.matcher is not None and request.matcher.ended:
            return "", self.end(request, "constraint", None, before + text)
        if request.n_new >= request.max_new:
            return "", self.end(request, "length", None, before + text)
        return text, None

    def _shown(self, request: Request) -> str:
        """The text of the tokens that have not been through the detokenizer."""
        start, request.n_shown = request.n_shown, request.n_new
        if request.detokenizer is None:
            return ""
        return request.detokenizer.push(*request.generated[start : request.n_new].tolist())

    def end(
        self, request: Request, reason: str | None = None, matched: str | int | None = None, text: str = ""
    ) -> Output:
        """The request is done: complete its text, return its memory."""
        request.drop_drafts()
        request.finish_reason = reason or "prefix"  # type: ignore[assignment]
        request.matched = matched
        if request.detokenizer is not None and not (request.stops is not None and request.stops.stopped):
            rest = self._shown(request) + request.detokenizer.flush()
            if request.stops is not None:
                rest = request.stops.push(rest, check=False).text + request.stops.flush()
            text += rest
        request.text += text
        self._scheduler.finish(request)
        self._over(request, request.finish_reason or "")
        return Output(request, text, ended=True)

    def abort(self, request: Request, reason: str = "cancelled") -> None:
        """Drop a request; what it computed stays in the cache. One that has ended is left alone."""
        if request.ended:
            return
        request.drop_drafts()
        if request.t_queued:
            self._scheduler.finish(request)
        self._over(request, reason)

    def fail(self, request: Request, error: Exception) -> Output:
        """Give a request up."""
        self.abort(request, "error")
        return Output(request, ended=True, error=without_frames(error))

    def _over(self, request: Request, reason: str) -> None:
        request.t_finished = time.perf_counter()
        self._log.ended(request, reason)


def without_frames(error: Exception) -> Exception:
    """The error rebuilt with its traceback as text: frames would keep tensors alive wherever it is kept."""
    if isinstance(error, NbsglangError):
        return type(error)(*error.args)
    return BackendError(f"{type(error).__name__}: {error}\n\n{''.join(traceback.format_exception(error))}")
