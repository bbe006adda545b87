"""The engine proper: plan, pack, run, commit. One thread calls it; no inboxes, no calls, no waiting.

Not here: its thread (`loop.py`), calls and replies (`backend.py`), the user's door (`engine.py`).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from nbsglang.engine.attend import Abandoned
from nbsglang.engine.batch import pack
from nbsglang.engine.config import Config
from nbsglang.engine.model import Fingerprint, Model
from nbsglang.engine.pool import KVPool
from nbsglang.engine.radix import RadixTree
from nbsglang.engine.request import Request
from nbsglang.engine.sampler import Sampled, sample, score
from nbsglang.engine.scheduler import Limits, Scheduler
from nbsglang.engine.sizes import Pace
from nbsglang.engine.slots import SlotList
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import BackendError, NbsglangError, OutOfMemory
from nbsglang.events import Body, Control, Failed, Finished, Queued, Step, Tokens, TokenTexts

_SNAPSHOT_EVERY = 1000  # events of the tree: a late reader of the log starts at the last snapshot


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


class Core:
    """Model, pool, tree and scheduler; `step` moves every running request on."""

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        n_slots: int,
        limits: Limits,
        config: Config,
        emit: Callable[[Body], object],
        pace: Pace | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.pool = KVPool(model.shapes, n_slots, model.dtype, model.device)
        self.tree = RadixTree(self._emit_tree)
        self.scheduler = Scheduler(self.tree, SlotList(n_slots), limits, config.policy, emit, config.caching)
        self.totals = Totals()
        self._pace = pace
        self._emit = emit
        self._n_tree_events = 0
        self._named = np.zeros(max(model.n_vocab, tokenizer.n_vocab), bool)
        self._fingerprint: Fingerprint | None = model.fingerprint()

    # ------------------------------------------------------------------------------------- from outside

    @property
    def has_work(self) -> bool:
        """Some request waits or runs."""
        return bool(self.scheduler.waiting or self.scheduler.running)

    def submit(self, request: Request) -> None:
        """Queue a request, unless it was aborted on its way here."""
        if request.ended:
            return
        self._name_tokens(request.tokens)
        self._emit(Queued(request.id, request.call_id, request.n_prompt))
        self.totals.requests += 1
        request.t_queued = time.perf_counter()
        self.scheduler.add(request)

    def abort(self, request: Request, reason: str = "cancelled") -> None:
        """Drop a request; what it computed stays in the cache. One that has ended is left alone."""
        if request.ended:
            return
        if request.t_queued:
            self.scheduler.finish(request)
        self._log_end(request, reason)

    def flush(self, why: str = "") -> int:
        """Empty the cache but for what running requests hold. Returns the number of freed tokens."""
        n = self.scheduler.flush()
        self._emit(Control("flush", why))
        return n

    def wake(self) -> None:
        """Called before work after idleness: changed weights or adapters make the cache worthless."""
        try:
            fingerprint: Fingerprint | None = self.model.fingerprint()
        except Exception:  # weights in some foreign state: better no cache than a wrong one
            fingerprint = None
        if fingerprint is None or fingerprint != self._fingerprint:
            self.model.renew()
            self._fingerprint = self.model.fingerprint() if fingerprint is not None else None
            self.flush("weights or adapters changed")

    def release(self) -> None:
        """Drop the pool's tensors and what waits; the core is of no use afterwards."""
        self.pool.k.clear()
        self.pool.v.clear()
        self.scheduler.running.clear()
        self.scheduler.waiting.clear()

    # ---------------------------------------------------------------------------------------- one step

    def step(self) -> list[Output]:
        """Plan, pack, run and commit one forward pass."""
        times = [time.perf_counter()]
        planned = self.scheduler.plan()
        outputs = self._end_computed()
        times.append(time.perf_counter())
        n_planned = [r.n_planned for r in planned]
        if planned:
            try:
                logits = self._run(planned, times)
                times.append(time.perf_counter())
                self._commit(planned, logits, outputs)
            except Abandoned:  # its requests are about to be aborted
                for request in planned:
                    self.scheduler.unplan(request)
                return outputs
            except Exception as error:  # whatever the model raises must reach the calls of this step
                return outputs + self._fail(planned, error)
            times.append(time.perf_counter())
            self._log_step(n_planned, times)
            self.model.between_steps()
            if self._pace is not None:
                self.scheduler.chunk_tokens = self._pace.observe(sum(n_planned), times[-1] - times[0])
        return outputs

    def _end_computed(self) -> list[Output]:
        """Requests with nothing to compute: prefix hints that the tree has in full."""
        done = [r for r in self.scheduler.running if r.n_missing == 0 and not r.n_planned]
        return [self._end(r) for r in done]

    def _run(self, planned: Sequence[Request], times: list[float]) -> torch.Tensor:
        """The forward pass; when memory runs out, in halves, one after the other."""
        batch = pack(planned, flat=self.model.flat)
        times.append(time.perf_counter())
        try:
            return self.model.run(batch, self.pool, lambda: not all(r.unwanted for r in planned))
        except torch.OutOfMemoryError as error:
            if len(planned) == 1:
                numbers = f"{planned[0].n_planned} tokens in one step"
                raise OutOfMemory(f"out of memory with {numbers}; use a smaller chunk_tokens or kv_memory") from error
        torch.cuda.empty_cache()
        half = len(planned) // 2  # earlier requests first: later ones may read what these write
        return torch.cat([self._run(part, []) for part in (planned[:half], planned[half:])])

    def _fail(self, planned: Sequence[Request], error: Exception) -> list[Output]:
        """Give up the requests of a step that failed, those that it did not end before."""
        left = [request for request in planned if request.node is not None]
        for request in left:
            self.scheduler.unplan(request)
        clean = _without_frames(error)
        self._emit(Failed("", str(clean)))
        return [self._fail_one(request, clean) for request in left]

    def _fail_one(self, request: Request, error: Exception) -> Output:
        self.abort(request, "error")
        return Output(request, ended=True, error=_without_frames(error))

    # ------------------------------------------------------------------------------------------ commit

    def _commit(self, planned: Sequence[Request], logits: torch.Tensor, outputs: list[Output]) -> None:
        """Take over what was computed: cache it, score given tokens, sample new ones, end what is done.

        Outputs are added one by one, so that none is lost when a later request fails.
        """
        sampling: list[Request] = []
        rows: list[int] = []
        at = 0
        for request in planned:
            start = max(request.want_from, request.n_computed)
            self.scheduler.computed(request)
            n_wanted = max(request.n_computed - start, 0)
            n_scored = min(n_wanted, request.n_tokens - 1 - start)  # rows before the last known token
            if n_scored > 0:
                follow = request.row[start + 1 : start + 1 + n_scored].tolist()
                request.scores += score(logits[at : at + n_scored], follow)
            at += n_wanted
            request.want_from = max(request.want_from, request.n_computed)
            if request.n_missing == 0 and request.max_new == 0:
                outputs.append(self._end(request))
            elif request.n_missing == 0 and self._can_go_on(request, outputs):
                sampling.append(request)
                rows.append(at - 1)
        if sampling:
            chosen = logits if len(rows) == len(logits) else logits[rows]
            self._take_tokens(sampling, sample(chosen, sampling), outputs)

    def _can_go_on(self, request: Request, outputs: list[Output]) -> bool:
        """Whether the request's constraint has a next token; if not, the request alone ends with the error."""
        try:
            if request.matcher is not None:
                request.matcher.mask()
        except NbsglangError as error:
            outputs.append(self._fail_one(request, error))
            return False
        return True

    def _take_tokens(self, requests: Sequence[Request], sampled: Sequence[Sampled], outputs: list[Output]) -> None:
        now = time.perf_counter()
        self._name_tokens(np.array([s.id for s in sampled], np.int32))
        self._emit(Tokens(tuple(r.id for r in requests), tuple((s.id,) for s in sampled)))
        self.totals.generated_tokens += len(sampled)
        for request, token in zip(requests, sampled, strict=True):
            if request.t_first is None:
                request.t_first = now
            try:
                output = self._take_token(request, token)
            except Exception as error:  # a stop pattern past its budget, say: the neighbours are not to blame
                output = self._fail_one(request, error)
            if output is not None:
                outputs.append(output)

    def _take_token(self, request: Request, sampled: Sampled) -> Output | None:
        """Append one token: text, stops, constraint, length."""
        params, token = request.sampling, sampled.id
        n_new = request.n_tokens - request.n_prompt + 1
        ends = not params.ignore_eos or request.matcher is not None  # a constraint allows EOS at its end only
        if (token in request.eos_ids and ends) or token in params.stop_token_ids:
            return self._end(request, "stop", token)
        request.append(token)
        if sampled.logprob is not None:
            request.logprobs.append(sampled.logprob)
            request.tops.append(sampled.top)
        text = request.detokenizer.push(token) if request.detokenizer is not None else ""
        if request.matcher is not None:
            accepted = request.matcher.accept(token)
            assert accepted, f"the constraint's mask allowed token {token}, which it does not accept"
        if request.stops is not None:
            text, stopped = request.stops.push(text, check=n_new > params.min_tokens)
            if stopped:
                return self._end(request, "stop", request.stops.matched, text)
        if request.matcher is not None and request.matcher.ended:
            return self._end(request, "constraint", None, text)
        if n_new >= request.max_new:
            return self._end(request, "length", None, text)
        request.text += text
        return Output(request, text) if request.streams else None

    def _end(
        self, request: Request, reason: str | None = None, matched: str | int | None = None, text: str = ""
    ) -> Output:
        """The request is done: complete its text, return its memory."""
        request.finish_reason = reason or "prefix"  # type: ignore[assignment]
        request.matched = matched
        if request.detokenizer is not None and not (request.stops is not None and request.stops.stopped):
            rest = request.detokenizer.flush()
            if request.stops is not None:
                rest = request.stops.push(rest, check=False).text + request.stops.flush()
            text += rest
        request.text += text
        self.scheduler.finish(request)
        self._log_end(request, request.finish_reason or "")
        return Output(request, text, ended=True)

    # ------------------------------------------------------------------------------------------ events

    def _emit_tree(self, body: Body) -> None:
        self._emit(body)
        self._n_tree_events += 1

    def _name_tokens(self, tokens: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
        """Log the text of each id once."""
        new = np.unique(tokens[~self._named[tokens]]) if len(tokens) else tokens
        if len(new):
            self._named[new] = True
            ids = tuple(new.tolist())
            self._emit(TokenTexts(ids, tuple(self.tokenizer.token_text(i) for i in ids)))

    def _log_end(self, request: Request, reason: str) -> None:
        request.t_finished = time.perf_counter()
        n_generated = request.n_tokens - request.n_prompt
        self.totals.prompt_tokens += request.n_prompt
        self.totals.cached_tokens += request.n_cached
        body = Finished(request.id, request.call_id, reason, request.n_prompt, request.n_cached, n_generated)
        self._emit(body)

    def _log_step(self, n_planned: list[int], times: list[float]) -> None:
        plan, pack_, run, commit = (b - a for a, b in pairwise(times))
        totals, scheduler = self.totals, self.scheduler
        totals.steps += 1
        totals.computed_tokens += sum(n_planned)
        totals.plan_s += plan
        totals.pack_s += pack_
        totals.run_s += run
        totals.commit_s += commit
        n_decode = sum(n == 1 for n in n_planned)
        self._emit(
            Step(
                totals.steps,
                sum(n_planned) - n_decode,
                n_decode,
                len(scheduler.running),
                len(scheduler.waiting),
                scheduler.slots.n_free,
                self.tree.n_evictable,
                self.tree.n_locked,
                plan,
                pack_,
                run,
                commit,
            )
        )
        if self._n_tree_events >= _SNAPSHOT_EVERY:
            self._n_tree_events = 0
            self._emit(self.tree.snapshot())


def _without_frames(error: Exception) -> Exception:
    """The error rebuilt with its traceback as text: frames would keep tensors alive wherever it is kept."""
    if isinstance(error, NbsglangError):
        return type(error)(*error.args)
    return BackendError(f"{type(error).__name__}: {error}\n\n{''.join(traceback.format_exception(error))}")
