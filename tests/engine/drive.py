"""Drive a Core step by step on a tiny model, checking every invariant, and compare with transformers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch

from nbsglang.calls import SamplingParams
from nbsglang.engine.commit import Output
from nbsglang.engine.config import Config
from nbsglang.engine.core import Core
from nbsglang.engine.model import Model
from nbsglang.engine.request import Request
from nbsglang.engine.scheduler import Limits
from nbsglang.engine.stops import StopMatcher
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.events import EventLog
from nbsglang.viz.fold import View
from tests.tiny import byte_tokenizer, tiny_model

GAP = 1e-5  # a choice is the oracle's own when its best two logits are closer than this
GREEDY = SamplingParams(temperature=0.0)


@cache
def model(kind: str) -> Model:
    """One model for all tests of a kind: it passed the gates."""
    return Model(tiny_model(kind), kind)


@cache
def span_model(kind: str) -> Model:
    """One whose contexts are read by spans, as on a GPU, in torch's form of them."""
    made = Model(tiny_model(kind), kind)
    made._has_spans = True
    return made


@cache
def words() -> Tokenizer:
    return Tokenizer(byte_tokenizer(), n_vocab=300)


def make_core(
    kind: str = "llama",
    n_slots: int = 200,
    max_batch: int = 8,
    chunk_tokens: int = 16,
    lookahead: int = 8,
    policy: str = "prefix",
    caching: bool = True,
    ahead: bool = False,
    spans: bool = False,
    tile: int = 1,
) -> tuple[Core, EventLog]:
    log = EventLog()
    limits = Limits(max_batch, chunk_tokens, lookahead, tile=tile)

    def emit(body: object) -> None:
        log.emit("e", body)

    used = span_model(kind) if spans else model(kind)
    return Core(used, words(), n_slots, limits, Config(policy=policy, caching=caching), emit, ahead=ahead), log


@dataclass
class Job:
    """A request to come: when it arrives, what it asks, and when it is given up."""

    prompt: tuple[int, ...]
    max_new: int = 4
    arrives: int = 0
    aborts: int | None = None
    params: SamplingParams = GREEDY
    score_from: int | None = None
    ends_at_eos: bool = False
    request: Request | None = field(default=None, init=False)

    def make(self, number: int) -> Request:
        ids = np.array(self.prompt, np.int32)
        last = len(ids) if self.max_new == 0 else len(ids) - 1
        self.request = Request(
            id=number,
            call_id=f"c{number}",
            row=ids.copy(),
            n_tokens=len(ids),
            want_from=last if self.score_from is None else self.score_from,
            max_new=self.max_new,
            sampling=self.params,
            seed=self.params.seed or number,
            eos_ids=frozenset(words().eos_ids) if self.ends_at_eos else frozenset(),
            stops=StopMatcher(self.params.stop, self.params.stop_regex) if self.params.stop else None,
            detokenizer=words().detokenizer(),
        )
        return self.request


def drive(
    core: Core, log: EventLog, jobs: list[Job], check: bool = True, max_steps: int = 3000, may_fail: bool = False
) -> list[Output]:
    """Run the jobs to their ends; after every step the pool, the tree and the fold of the log are checked."""
    ends: list[Output] = []
    first = core.totals.requests + 1  # ids are never used twice
    left = sorted(enumerate(jobs, first), key=lambda pair: pair[1].arrives)
    view, seq = View("e"), 0
    for step in range(max_steps):
        while left and left[0][1].arrives <= step:
            number, job = left.pop(0)
            core.submit(job.make(number))
        for job in jobs:
            if job.aborts is not None and job.request is not None and step == job.aborts:
                core.abort(job.request)
        if core.has_work:
            ends += [output for output in core.step() if output.ended]
        elif not left:
            break
        if check:
            core.scheduler.check()
            for event in log.since(seq):
                view.apply(event)
                seq = event.seq
            assert view.tree_as_tuples() == core.tree.snapshot().nodes
    assert not core.has_work, "the jobs did not end"
    errors = [output.error for output in ends if output.error is not None]
    assert may_fail or not errors, errors
    return ends


def logits_of(kind: str, ids: list[int]) -> torch.Tensor:
    """Transformers' own logits [tokens, vocabulary], by its eager attention: not every other form has softcaps."""
    with model(kind)._ours("eager"), torch.inference_mode():
        return model(kind).module(torch.tensor([ids]), use_cache=False).logits[0].float()


def assert_greedy(kind: str, request: Request, allowed: Callable[[int], bool] = lambda token: True) -> None:
    """Teacher-forced: each generated token is transformers' choice, unless its own best two are a tie."""
    ids = request.tokens.tolist()
    logits = logits_of(kind, ids)
    for at in range(request.n_prompt, len(ids)):
        row = logits[at - 1]
        lost = (row.max() - row[ids[at]]).item()
        assert lost <= GAP, f"token {at}: {ids[at]} instead of {int(row.argmax())}, {lost:.2g} below the best"
