"""The engine proper: plan, pack, run, commit. One thread calls it; no inboxes, no calls, no waiting.

Where the device works by itself, a step is planned and launched before the tokens of the one before have reached the
host: plans need counts only, and the device hands the tokens on. So two steps are under way at times: one on the
device, and one behind it in its queue.

Not here: steps under way (`flight.py`), what becomes of tokens (`commit.py`), the thread (`loop.py`), calls and replies
(`backend.py`), the user's door (`engine.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from nbsglang.calls import TokenLogprob
from nbsglang.engine.attend import Abandoned
from nbsglang.engine.batch import pack
from nbsglang.engine.commit import Commit, Output, Totals, without_frames
from nbsglang.engine.config import Config
from nbsglang.engine.flight import Flight, by_row, rows_of, some_of
from nbsglang.engine.host_copy import HostCopy
from nbsglang.engine.model import Fingerprint, Model
from nbsglang.engine.pool import KVPool
from nbsglang.engine.radix import RadixTree
from nbsglang.engine.request import Request
from nbsglang.engine.sampler import sample, score
from nbsglang.engine.scheduler import Limits, Scheduler
from nbsglang.engine.sizes import Pace
from nbsglang.engine.slots import SlotList
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import NbsglangError, OutOfMemory
from nbsglang.events import Body, Control, Failed, Queued, Step

_SNAPSHOT_EVERY = 1000  # events of the tree: a late reader of the log starts at the last snapshot


class Core:
    """Model, pool, tree and scheduler; `step` moves every running request on.

    With `ahead` a step is launched before the one before has landed; by default on devices that work by themselves.
    """

    def __init__(
        self,
        model: Model,
        tokenizer: Tokenizer,
        n_slots: int,
        limits: Limits,
        config: Config,
        emit: Callable[[Body], object],
        pace: Pace | None = None,
        ahead: bool | None = None,
    ) -> None:
        self.model = model
        self.pool = KVPool(model.shapes, n_slots, model.dtype, model.device)
        self.tree = RadixTree(self._emit_tree)
        self.scheduler = Scheduler(self.tree, SlotList(n_slots), limits, config.policy, emit, config.caching)
        self.totals = Totals()
        self.commit = Commit(self.scheduler, tokenizer, model.n_vocab, self.totals, emit)
        self._pace = pace
        self._emit = emit
        self._n_tree_events = 0
        self._fingerprint: Fingerprint | None = model.fingerprint()
        self._ahead = model.device.type == "cuda" if ahead is None else ahead
        self._flight: Flight | None = None
        self._early: list[Output] = []  # of requests that had something to say before their first step
        self._t_landed = 0.0
        self._drawn = torch.zeros(limits.max_batch, dtype=torch.int64, device=model.device)  # ids of the last launch

    # ------------------------------------------------------------------------------------- from outside

    @property
    def has_work(self) -> bool:
        """Some request waits or runs, or a step is under way."""
        return bool(self.scheduler.waiting or self.scheduler.running or self._flight or self._early)

    def submit(self, request: Request) -> None:
        """Queue a request, unless it was aborted on its way here; what its constraint forces at once is taken."""
        if request.ended:
            return
        self.commit.name_tokens(request.tokens)
        self._emit(Queued(request.id, request.call_id, request.n_prompt))
        self.totals.requests += 1
        request.t_queued = time.perf_counter()
        self.scheduler.add(request)
        try:
            output = self.commit.begin(request)
        except Exception as error:  # a constraint past its budget, say
            output = self.commit.fail(request, error)
        if output is not None:
            self._early.append(output)

    def abort(self, request: Request, reason: str = "cancelled") -> None:
        """Drop a request; what it computed stays in the cache. One that has ended is left alone."""
        self.commit.abort(request, reason)

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
        self._flight = None
        self._drawn = self._drawn[:0].clone()

    # ---------------------------------------------------------------------------------------- one step

    def step(self) -> list[Output]:
        """Launch the next step, then take the results of the last one that was launched before it.

        Without `ahead` a step lands at once.
        """
        outputs, self._early = self._early, []
        if self._flight is not None and not self._may_fly_ahead():
            self._land(outputs)
        began = time.perf_counter()
        planned = self.scheduler.plan()
        outputs += self._end_computed()
        flight = None
        if planned:
            n_planned = [request.n_planned for request in planned]
            flight = Flight(planned, n_planned, began, time.perf_counter() - began)
            if not self._launch(flight, outputs):
                flight = None
        if self._flight is not None:
            self._land(outputs)
        self._flight = flight
        if flight is not None and not self._ahead:
            self._land(outputs)
        return outputs

    def _may_fly_ahead(self) -> bool:
        """Whether the next step can be planned without the tokens of the one under way."""
        assert self._flight is not None
        if any(request.needs_text for request in self._flight.sampling):
            return False
        return not self.scheduler.is_tight  # a request that waits for its token cannot be preempted

    def _end_computed(self) -> list[Output]:
        """Requests with nothing to compute and nothing to wait for: prefix hints that the tree has in full."""
        landing = set(self._flight.ending) if self._flight is not None else ()
        done = [r for r in self.scheduler.running if r.max_new == 0 and not r.n_missing and r not in landing]
        return [self.commit.end(r) for r in done]

    def _launch(self, flight: Flight, outputs: list[Output]) -> bool:
        """Start a step on the device. False where it failed, or was left since nobody wants it."""
        try:
            logits = self._run(flight)
            start = time.perf_counter()
            self._advance(flight, logits, outputs)
            flight.commit_s = time.perf_counter() - start
        except Abandoned:  # its requests are about to be aborted
            for request in flight.planned:
                self.scheduler.unplan(request)
            return False
        except Exception as error:  # whatever the model raises must reach the calls of this step
            outputs += self._fail(flight.planned, error)
            return False
        return True

    def _run(self, flight: Flight) -> torch.Tensor:
        start = time.perf_counter()
        batch = pack(flight.planned, self.model.n_long)
        flight.pack_s = time.perf_counter() - start
        start = time.perf_counter()
        try:
            return self.model.run(
                batch, self.pool, lambda: not all(r.unwanted for r in flight.planned), drawn=self._drawn
            )
        except torch.OutOfMemoryError:
            if len(flight.planned) == 1:
                raise _too_much(flight.planned[0]) from None
        finally:
            flight.run_s = time.perf_counter() - start
        return self._run_halves(flight.planned)

    def _run_halves(self, planned: Sequence[Request]) -> torch.Tensor:
        """The pass when memory ran out: one half of the requests after the other."""
        torch.cuda.empty_cache()
        half = len(planned) // 2
        logits = []
        for part in (planned[:half], planned[half:]):
            try:
                batch = pack(part, self.model.n_long)
                logits.append(self.model.run(batch, self.pool, drawn=self._drawn).clone())
                continue
            except torch.OutOfMemoryError:
                if len(part) == 1:
                    raise _too_much(part[0]) from None
            logits.append(self._run_halves(part))  # not in the handler: the error holds the failed pass's tensors
        return torch.cat(logits)

    def _fail(self, requests: Sequence[Request], error: Exception) -> list[Output]:
        """Give up those requests that have not ended."""
        left = [request for request in requests if request.node is not None]
        for request in left:
            self.scheduler.unplan(request)
        clean = without_frames(error)
        self._emit(Failed("", str(clean)))
        return [self.commit.fail(request, clean) for request in left]

    # ----------------------------------------------------------------------------- launched and landed

    def _advance(self, flight: Flight, logits: torch.Tensor, outputs: list[Output]) -> None:
        """Count what was launched as computed, and choose and score tokens on the device.

        Whatever is queued there later finds it done.
        """
        rows: list[int] = []
        scored: list[tuple[int, int]] = []
        follow: list[int] = []
        at = 0
        for request in flight.planned:
            start = max(request.want_from, request.n_computed)
            self.scheduler.computed(request)
            n_wanted = max(request.n_computed - start, 0)
            at += n_wanted
            if request.n_draft and n_wanted:
                request.drop_drafts(request.n_missing)  # which the chunk cut off
            elif (n_scored := min(n_wanted, request.n_known - 1 - start)) > 0:  # rows before the last known token
                follow += request.row[start + 1 : start + 1 + n_scored].tolist()
                scored.append((at - n_wanted, at - n_wanted + n_scored))
                flight.scoring.append((request, n_scored))
            request.want_from = max(request.want_from, request.n_computed)
            if request.n_missing:
                continue
            if request.max_new:
                if self._can_go_on(request, outputs):
                    n_rows = 1 + request.n_draft
                    flight.sampling += [request] * n_rows
                    rows += range(at - n_rows, at)
            elif request.scores_only:
                flight.ending.append(request)
            else:
                outputs.append(self.commit.end(request))
        if scored:
            flight.scores = score(rows_of(logits, scored), follow)
        if rows:
            self._draw(flight, some_of(logits, np.array(rows)))
        if not scored and not rows:
            flight.mark = HostCopy(logits[:0])

    def _draw(self, flight: Flight, logits: torch.Tensor) -> None:
        drafting = any(request.n_draft for request in flight.sampling)
        flight.draws = sample(logits, by_row(flight.sampling) if drafting else flight.sampling)
        if not drafting:  # else the next step waits until this one has landed
            self._drawn[: len(flight.sampling)] = flight.draws.ids
        for place, request in enumerate(flight.sampling):
            request.drawn_at = place
            request.n_pending += 1

    def _can_go_on(self, request: Request, outputs: list[Output]) -> bool:
        """Whether the request's constraint has a next token; if not, the request alone ends with the error."""
        try:
            if request.matcher is not None:
                request.matcher.mask()
        except NbsglangError as error:
            outputs.append(self.commit.fail(request, error))
            return False
        return True

    def _land(self, outputs: list[Output]) -> None:
        """Wait for the step that was launched first, and take what it brought."""
        flight, self._flight = self._flight, None
        assert flight is not None
        start = time.perf_counter()
        try:
            scores = flight.scores.fetch() if flight.scores is not None else []
            alive = [not request.ended for request in flight.sampling]  # a row may be that of a text that failed
            sampled = flight.draws.fetch(alive) if flight.draws is not None else []
            if flight.mark is not None:
                flight.mark.wait()
            landed = time.perf_counter()
            self._take_scores(flight, scores, outputs)
            self.commit.take(flight.sampling, sampled, outputs)
        except Exception as error:  # that logits are no numbers shows here, and what the device reports late
            outputs += self._fail(flight.planned, error)
            return
        done = time.perf_counter()
        flight.run_s += landed - start
        flight.commit_s += done - landed
        self._log_step(flight)
        if self._pace is not None:
            seconds = done - max(flight.t_began, self._t_landed)
            self.scheduler.chunk_tokens = self._pace.observe(sum(flight.n_planned), seconds)
        self._t_landed = done

    def _take_scores(self, flight: Flight, scores: Sequence[TokenLogprob], outputs: list[Output]) -> None:
        at = 0
        for request, n in flight.scoring:
            request.scores += scores[at : at + n]
            at += n
        outputs += [self.commit.end(request) for request in flight.ending if not request.ended]

    # ------------------------------------------------------------------------------------------ events

    def _emit_tree(self, body: Body) -> None:
        self._emit(body)
        self._n_tree_events += 1

    def _log_step(self, flight: Flight) -> None:
        totals, scheduler = self.totals, self.scheduler
        n_rows = sum(flight.n_planned)
        totals.steps += 1
        totals.computed_tokens += n_rows
        totals.plan_s += flight.plan_s
        totals.pack_s += flight.pack_s
        totals.run_s += flight.run_s
        totals.commit_s += flight.commit_s
        n_decode = flight.n_planned.count(1)
        self._emit(
            Step(
                totals.steps,
                n_rows - n_decode,
                n_decode,
                len(scheduler.running),
                len(scheduler.waiting),
                scheduler.slots.n_free,
                self.tree.n_evictable,
                self.tree.n_locked,
                flight.plan_s,
                flight.pack_s,
                flight.run_s,
                flight.commit_s,
            )
        )
        if self._n_tree_events >= _SNAPSHOT_EVERY:
            self._n_tree_events = 0
            self._emit(self.tree.snapshot())


def _too_much(request: Request) -> OutOfMemory:
    numbers = f"{request.n_planned} tokens in one step"
    return OutOfMemory(f"out of memory with {numbers}; use a smaller chunk_tokens or kv_memory")
