"""The engine proper: plan, pack, run, commit. One thread calls it; no inboxes, no calls, no waiting.

Where the device works by itself, a step is planned and launched before the tokens of the one before have reached the
host: plans need counts only, and the device hands the tokens on. So two steps are under way at times: one on the
device, and one behind it in its queue. Tokens are chosen when the forward pass has been launched. A choice that depends
on the text so far, as that of a constraint does, waits for the tokens of the step before; meanwhile the device is at
work on the pass.

Not here: steps under way (`flight.py`), their passes (`passes.py`), what becomes of tokens (`commit.py`), the thread
(`loop.py`), calls and replies (`backend.py`), the user's door (`engine.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from nbsglang.calls import TokenLogprob
from nbsglang.engine.attend import Abandoned
from nbsglang.engine.clock import StepClock
from nbsglang.engine.commit import Commit, Output, without_frames
from nbsglang.engine.config import Config
from nbsglang.engine.flight import Flight
from nbsglang.engine.model import Fingerprint, Model
from nbsglang.engine.names import TokenNames
from nbsglang.engine.passes import Passes
from nbsglang.engine.pool import KVPool
from nbsglang.engine.radix import RadixTree
from nbsglang.engine.request import Request
from nbsglang.engine.scheduler import Limits, Scheduler
from nbsglang.engine.sizes import Pace
from nbsglang.engine.slots import SlotList
from nbsglang.engine.step_log import StepLog
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.engine.totals import Totals
from nbsglang.events import Body, Control, Failed, Queued


class Core:
    """Model, pool, tree and scheduler; `step` moves every running request on.

    With `ahead` a step is launched before the one before has landed; by default on devices that work by themselves.
    `log_capacity` is how many events are kept of those that `emit` is given; 0: all.
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
        log_capacity: int = 0,
    ) -> None:
        self.model = model
        self.totals = Totals()
        self._names = TokenNames(tokenizer, model.n_vocab, emit, log_capacity)
        self._steps = StepLog(self.totals, self._names, emit)
        self.pool = KVPool(model.shapes, n_slots, model.dtype, model.device)
        self._passes = Passes(model, self.pool, limits.max_batch)
        self.tree = RadixTree(self._steps.tree)
        self.scheduler = Scheduler(self.tree, SlotList(n_slots), limits, config.policy, emit, config.caching)
        self.commit = Commit(self.scheduler, tokenizer, self._names, self.totals, emit)
        self._pace = pace
        self._emit = emit
        self._fingerprint: Fingerprint | None = model.fingerprint()
        self._ahead = model.device.type == "cuda" if ahead is None else ahead
        self._flight: Flight | None = None
        self._early: list[Output] = []  # of requests that had something to say before their first step

    # ------------------------------------------------------------------------------------- from outside

    @property
    def has_work(self) -> bool:
        """Some request waits or runs, or a step is under way."""
        return bool(self.scheduler.waiting or self.scheduler.running or self._flight or self._early)

    def submit(self, request: Request) -> None:
        """Queue a request, unless it was aborted on its way here; what its constraint forces at once is taken."""
        if request.ended:
            return
        self._names.name(request.tokens)
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
        self._passes.release()

    # ---------------------------------------------------------------------------------------- one step

    def step(self) -> list[Output]:
        """Launch the next step, and take the results of the one that was launched before it.

        The next one's tokens are chosen before that, or after it where they depend on these results. Without `ahead` a
        step lands at once.
        """
        outputs, self._early = self._early, []
        if self._flight is not None and not self._may_fly_ahead():
            self._land(outputs)
        flight = self._launch(outputs)
        if flight is not None and flight.needs_text:
            self._land(outputs)
        if flight is not None and not self._choose(flight, outputs):
            flight = None
        if self._flight is not None:
            self._land(outputs)
        self._flight = flight
        if flight is not None and not self._ahead:
            self._land(outputs)
        return outputs

    def _may_fly_ahead(self) -> bool:
        """Whether the next step can and should be planned without the tokens of the one under way."""
        assert self._flight is not None
        # A request that waits for its token cannot be preempted.
        return self._flight.lets_next and not self.scheduler.is_tight

    def _end_computed(self) -> list[Output]:
        """Requests with nothing to compute and nothing to wait for: prefix hints that the tree has in full."""
        landing = set(self._flight.ending) if self._flight is not None else ()
        done = [r for r in self.scheduler.running if r.max_new == 0 and not r.n_missing and r not in landing]
        return [self.commit.end(r) for r in done]

    def _launch(self, outputs: list[Output]) -> Flight | None:
        """Plan the next step and start its forward pass on the device.

        None where there is nothing to compute, where it failed, or was left since nobody wants it.
        """
        began = time.perf_counter()
        planned = self.scheduler.plan()
        outputs += self._end_computed()
        if not planned:
            return None
        n_planned = [request.n_planned for request in planned]
        n_prefilled = sum(request.n_prefilling for request in planned)
        clock = StepClock(self.model.device)
        flight = Flight(planned, n_planned, n_prefilled, time.perf_counter() - began, clock)
        try:
            logits = self._passes.run(flight)
            outputs += map(self.commit.end, flight.advance(self.scheduler, logits))
        except Abandoned:  # its requests are about to be aborted
            for request in planned:
                self.scheduler.unplan(request)
            return None
        except Exception as error:  # whatever the model raises must reach the calls of this step
            outputs += self._fail(planned, error)
            return None
        return flight

    def _choose(self, flight: Flight, outputs: list[Output]) -> bool:
        """Have the tokens of a step chosen on the device. False where that failed, and with it all of the step."""
        start = time.perf_counter()
        try:
            flight.choose(self._passes.drawn, lambda *of: outputs.append(self.commit.fail(*of)))
        except Exception as error:
            outputs += self._fail(flight.planned, error)
            return False
        flight.clock.stop()
        flight.commit_s += time.perf_counter() - start
        return True

    def _fail(self, requests: Sequence[Request], error: Exception) -> list[Output]:
        """Give up those requests that have not ended."""
        left = [request for request in requests if request.node is not None]
        for request in left:
            self.scheduler.unplan(request)
        clean = without_frames(error)
        self._emit(Failed("", str(clean)))
        return [self.commit.fail(request, clean) for request in left]

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
        self._steps.step(flight, self.scheduler)
        if self._pace is not None:
            self.scheduler.chunk_tokens = self._pace.observe(sum(flight.n_planned), flight.clock.seconds())

    def _take_scores(self, flight: Flight, scores: Sequence[TokenLogprob], outputs: list[Output]) -> None:
        at = 0
        for request, n in flight.scoring:
            request.scores += scores[at : at + n]
            at += n
        outputs += [self.commit.end(request) for request in flight.ending if not request.ended]
