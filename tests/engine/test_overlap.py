"""Texts that need their own past, while the device is ahead: as if each step had landed before the next is planned."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nbsglang.calls import Constraint, SamplingParams
from nbsglang.engine.core import Core
from nbsglang.engine.grammar.constraints import Constraints
from nbsglang.engine.request import Request
from nbsglang.engine.stops import StopMatcher
from nbsglang.errors import BackendError, ConstraintError
from tests.engine.drive import Job, drive, make_core, words

PROMPT = tuple(range(60, 100))
FORM = Constraint("regex", r'\{"name": "[a-d]{1,4}", "kind": "(cat|dog)", "age": [1-9]\}')
CONSTRAINTS = [
    FORM,
    Constraint("regex", "[ab]{3,9}(cat|dog)[xyz]{0,20}"),
    Constraint("regex", "only this"),
    Constraint("regex", r"[\w\s]{1,12}"),
    Constraint("regex", "(ab|abc)d*"),
    Constraint("choices", ("yes", "yesterday", "no", "nowhere else")),
    Constraint("grammar", 'start: "(" start ")" | /[0-9]{1,3}/'),  # llguidance's
]
PARAMS = [
    {},
    {},
    {"temperature": 1.0},
    {"temperature": 0.8, "top_p": 0.9, "top_k": 30},
    {"repetition_penalty": 1.5},
    {"temperature": 1.0, "frequency_penalty": 0.6, "presence_penalty": 0.2},
    {"temperature": 1.0, "logit_bias": ((97, 3.0), (100, -2.0))},
    {"temperature": 1.0, "min_tokens": 5},
    {"min_tokens": 6, "stop_token_ids": (97, 98, 120)},
    {"temperature": 1.0, "stop": ("a", "dog")},
    {"temperature": 1.0, "stop": ("ca",), "min_tokens": 3},
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products so small are slower on two."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@cache
def constraints() -> Constraints:
    return Constraints(words().bytes_table, words().eos_ids, words().special_ids)


@dataclass
class Bound(Job):
    """A job under a constraint, or under none."""

    constraint: Constraint | None = FORM
    jump: str = "off"
    n_top: int | None = None
    place: int = 0
    faults: dict[str, tuple[int, Exception]] | None = None

    def make(self, number: int) -> Request:
        ids = np.array(self.prompt, np.int32)
        matcher = constraints().compile(self.constraint) if self.constraint is not None else None
        self.request = Request(
            number, f"c{number}", ids.copy(), len(ids), len(ids) - 1, self.max_new, self.params,
            self.params.seed or number, frozenset(words().eos_ids),
            matcher if self.faults is None else Faulty(matcher, self.faults),
            StopMatcher(self.params.stop) if self.params.stop else None, words().detokenizer(), number % 2 == 0,
            self.n_top, self.place, "off" if matcher is None or self.n_top is not None else self.jump,
        )  # fmt: skip
        return self.request


class Faulty:
    """A matcher whose methods raise: `faults` has at which call of a method, and what."""

    def __init__(self, inner, faults: dict[str, tuple[int, Exception]]) -> None:
        self._inner, self._faults, self._n_calls = inner, faults, Counter[str]()

    def __getattr__(self, name: str):
        if name in self._faults:
            self._n_calls[name] += 1
            if self._n_calls[name] == self._faults[name][0]:
                raise self._faults[name][1]
        return getattr(self._inner, name)


class Watch:
    """Counts the steps whose pass was launched before, and whose tokens were chosen after, the last one landed."""

    def __init__(self, core: Core) -> None:
        self.n_overlapped = self.n_dropped = 0
        self._last: list[str] = []
        for owner, name in ((core._passes, "run"), (core.commit, "take"), (core, "_choose")):
            setattr(owner, name, self._watched(name, getattr(owner, name)))

    def _watched(self, name: str, method):
        def call(*args):
            self._last = [*self._last[-2:], name]
            found = method(*args)
            if self._last == ["run", "take", "_choose"]:
                self.n_overlapped += 1
                self.n_dropped += sum(len(rows) for _, rows in args[0].wanting) - len(args[0].sampling)
            return found

        return call


def outcome(request: Request) -> tuple:
    return request.generated.tolist(), request.text, request.finish_reason, request.matched


def play(jobs: list[Job], ahead: bool, n_slots: int = 900, check: bool = True, **options):
    core, log = make_core(n_slots=n_slots, ahead=ahead, **options)
    watch = Watch(core)
    drive(core, log, jobs, check)
    core.flush()
    assert core.scheduler.slots.n_free == core.scheduler.slots.n_slots
    return core, watch


@st.composite
def jobs(draw: st.DrawFn) -> dict:
    """The arguments of a job."""
    seed = draw(st.integers(1, 5))
    params = SamplingParams(**{"temperature": 0.0, "seed": seed, **draw(st.sampled_from(PARAMS))})
    arrives = draw(st.integers(0, 10))
    aborts = draw(st.none() | st.none() | st.none() | st.integers(0, 15))
    return {
        "prompt": PROMPT[: draw(st.integers(1, 24))] + tuple(draw(st.lists(st.integers(0, 255), max_size=3))),
        "max_new": draw(st.integers(1, 40) | st.just(40)),
        "arrives": arrives,
        "aborts": None if aborts is None else arrives + aborts,
        "params": params,
        "constraint": draw(st.none() | st.sampled_from(CONSTRAINTS)),
        "jump": draw(st.sampled_from(["off", "canonical", "exact"])),
        "n_top": draw(st.none() | st.none() | st.none() | st.integers(0, 3)),
        "place": draw(st.integers(0, 2)),
    }


def certain_jobs() -> list[dict]:
    """Work in which tokens are forced, drafts confirmed and rows dropped, whatever hypothesis draws beside it."""
    dice = random.Random(1)
    return [
        {
            "prompt": PROMPT[: dice.randint(1, 24)], "max_new": 40, "arrives": n // 2, "aborts": None,
            "params": SamplingParams(**{"temperature": 0.0, "seed": n, **PARAMS[n % len(PARAMS)]}),
            "constraint": CONSTRAINTS[n % len(CONSTRAINTS)], "jump": ("canonical", "exact")[n % 2],
            "n_top": None, "place": n % 3,
        }
        for n in range(24)
    ]  # fmt: skip


def test_texts_are_those_of_steps_that_land_first():
    """Any arrivals, stops, ends, jumps, preemptions, forks of prompts and aborts; and that path is really taken."""
    seen: Counter[str] = Counter()

    @settings(max_examples=30)
    @given(
        work=st.lists(jobs(), min_size=3, max_size=8),
        spare=st.sampled_from([10, 0, 3, 40, 400]),
        chunk=st.sampled_from([16, 1, 2, 5, 64]),
        max_batch=st.sampled_from([16, 3, 1]),
        lookahead=st.sampled_from([1, 4, 64]),
        policy=st.sampled_from(["prefix", "fcfs", "dfs_weight"]),
        caching=st.sampled_from([True, True, False]),
        spans=st.booleans(),
    )
    @example(certain_jobs(), 400, 16, 16, 64, "prefix", True, False)
    def check(work, spare, chunk, max_batch, lookahead, policy, caching, spans):
        n_slots = max(len(job["prompt"]) + job["max_new"] for job in work) + spare
        options = {
            "n_slots": n_slots, "max_batch": max_batch, "chunk_tokens": chunk, "lookahead": lookahead,
            "policy": policy, "caching": caching, "spans": spans,
        }  # fmt: skip
        plain, ahead = ([Bound(**job) for job in work] for _ in range(2))
        play(plain, False, check=False, **options)
        _, watch = play(ahead, True, **options)
        for one, other in zip(plain, ahead, strict=True):
            assert_alike(one.request, other.request, one.aborts is not None)
        seen.update(
            overlapped=watch.n_overlapped,
            dropped=watch.n_dropped,
            jumped=sum(len(job.request.jumped) for job in ahead if job.jump == "canonical"),
            confirmed=sum(len(job.request.jumped) for job in ahead if job.jump == "exact"),
        )

    check()
    assert seen["overlapped"] > 200, seen
    assert min(seen["dropped"], seen["jumped"], seen["confirmed"]) > 30, seen


def mixed(jump: str, n: int = 10) -> list[Job]:
    """Texts of all kinds, one after the other."""
    work: list[Job] = []
    for i in range(n):
        params = SamplingParams(**{"temperature": 0.0, "seed": i + 1, **PARAMS[i % len(PARAMS)]})
        constraint = None if i % 5 == 4 else CONSTRAINTS[i % 4]
        work.append(Bound(PROMPT[: 9 + 2 * i], 60, i % 5, None, params, constraint=constraint, jump=jump))
    return work


@pytest.mark.parametrize("jump", ["off", "canonical", "exact"])
def test_texts_survive_preemption_and_eviction(jump):
    """A pool that holds few of them: texts are those of a large one, and memory is taken from who waits for nothing."""
    plain, ahead = mixed(jump), mixed(jump)
    play(plain, False, check=False, max_batch=16)
    core, watch = play(ahead, True, n_slots=95, max_batch=16, lookahead=1)
    assert core.scheduler.n_preempted > 0
    assert watch.n_overlapped > 20
    for one, other in zip(plain, ahead, strict=True):
        assert_alike(one.request, other.request, False)


def assert_alike(one: Request, other: Request, is_aborted: bool) -> None:
    """The same outcome; of aborted texts, the shorter one begins the longer."""
    if is_aborted:
        n = min(one.n_new, other.n_new)
        assert one.generated[:n].tolist() == other.generated[:n].tolist()
        return
    assert outcome(one) == outcome(other)
    for mine, theirs in zip([one.logprobs, *one.tops], [other.logprobs, *other.tops], strict=True):
        assert [p.id for p in mine] == [p.id for p in theirs]
        assert [p.logprob for p in mine] == pytest.approx([p.logprob for p in theirs], abs=1e-4)


def test_the_device_has_the_next_pass_while_the_host_is_at_the_text():
    """By counts: each pass but the first overlaps, and one is lost when the text is at its end."""
    plain, ahead = Bound(PROMPT[:20], 90), Bound(PROMPT[:20], 90)
    (first, none), (second, watch) = play([plain], False, chunk_tokens=64), play([ahead], True, chunk_tokens=64)
    n_new = plain.request.n_new
    assert (first.totals.steps, none.n_overlapped) == (n_new, 0)
    assert (second.totals.steps, watch.n_overlapped, watch.n_dropped) == (n_new + 1, n_new, 1)
    assert second.totals.computed_tokens == first.totals.computed_tokens + 1
    assert first.totals.prefilled_tokens == second.totals.prefilled_tokens == 20


@pytest.mark.parametrize("jump", ["canonical", "exact"])
def test_a_text_that_has_just_jumped_is_waited_for(jump):
    """The pass under way would be lost if it jumps again; only the jump after a choice without one is not foreseen."""
    plain, ahead = Bound(PROMPT[:20], 90, jump=jump), Bound(PROMPT[:20], 90, jump=jump)
    (first, _), (second, watch) = play([plain], False, chunk_tokens=64), play([ahead], True, chunk_tokens=64)
    assert outcome(plain.request) == outcome(ahead.request)
    assert (watch.n_overlapped, watch.n_dropped) == (1, 1)
    assert second.totals.steps == first.totals.steps + 1
    assert second.totals.prefilled_tokens == 20
    n_again = {"canonical": 0, "exact": 1}[jump]  # drafts have the pass before them computed anew
    assert second.totals.computed_tokens == first.totals.computed_tokens + n_again


ERRORS = [RuntimeError("a bug in a matcher"), ConstraintError("past a budget")]


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("jump", ["off", "canonical", "exact"])
@pytest.mark.parametrize("method", ["accept", "mask", "forced", "fork"])
def test_a_matcher_that_raises_fails_its_own_text_alone(method, jump, ahead):
    good, beside = [Bound(PROMPT[: 9 + i], 60, jump=jump) for i in range(2)], Bound(PROMPT[:15], 30, constraint=None)
    bad = [Bound(PROMPT[: 12 + i], 60, jump=jump, faults={method: (3, error)}) for i, error in enumerate(ERRORS)]
    core, log = make_core(n_slots=600, max_batch=16, ahead=ahead)
    ends = drive(core, log, [*good, beside, *bad], may_fail=True)
    failed = {output.request for output in ends if output.error is not None}
    is_called = method in ("accept", "mask") or (jump != "off" and method == "forced")
    if method == "fork":  # for the spelling of what is forced, and for drafts
        is_called = jump != "off"
    assert failed == ({job.request for job in bad} if is_called else set())
    for output in ends:
        assert output.error is None or str(ERRORS[output.request is bad[1].request]) in str(output.error)
    alone = [Bound(PROMPT[: 9 + i], 60, jump=jump) for i in range(2)] + [Bound(PROMPT[:15], 30, constraint=None)]
    for job in alone:
        play([job], False, check=False)
    assert [outcome(job.request) for job in (*good, beside)] == [outcome(job.request) for job in alone]
    core.flush()
    assert core.scheduler.slots.n_free == core.scheduler.slots.n_slots


@pytest.mark.parametrize("jump", ["off", "canonical", "exact"])
def test_logits_that_are_no_numbers_fail_the_texts_of_their_step_alone(jump, monkeypatch):
    """Its row is under way once more when that is seen, and wants no token then."""
    core, _ = make_core(n_slots=600, ahead=True)
    bad, good = Bound(PROMPT[:9], 60, jump=jump).make(1), Bound(PROMPT[:20], 60, jump=jump).make(2)
    run, n_runs, ended = core._passes.run, 0, []

    def spoiled(flight):
        nonlocal n_runs
        logits = run(flight)
        n_runs += 1
        if n_runs >= 3 and flight.planned[0] is bad:
            logits[0] = float("nan")
        return logits

    monkeypatch.setattr(core._passes, "run", spoiled)
    core.submit(bad)
    for step in range(300):
        if step == 3:
            core.submit(good)
        ended += [output for output in core.step() if output.ended] if core.has_work else []
    assert [(output.request, type(output.error)) for output in ended] == [(bad, BackendError), (good, type(None))]
    alone = Bound(PROMPT[:20], 60, jump=jump)
    play([alone], False, check=False)
    assert outcome(good) == outcome(alone.request)
    core.scheduler.check()


@pytest.mark.parametrize("jump", ["off", "canonical", "exact"])
def test_an_abort_between_two_steps_drops_what_is_under_way(jump):
    """Also rows of drafts, whose neighbours have tokens that the device could not hand on."""
    beside = [Bound(PROMPT[:14], 40, jump=jump), Bound(PROMPT[:11], 30, constraint=None)]
    whole = Bound(PROMPT[:9], 60, jump=jump)
    play([whole, *beside], False, check=False)
    for at in range(1, 12):
        job = Bound(PROMPT[:9], 60, aborts=at, jump=jump)
        others = [Bound(PROMPT[:14], 40, jump=jump), Bound(PROMPT[:11], 30, constraint=None)]
        play([job, *others], True)
        assert_alike(job.request, whole.request, True)
        assert [outcome(o.request) for o in others] == [outcome(o.request) for o in beside]
