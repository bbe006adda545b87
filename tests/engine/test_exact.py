"""The engine gives the tokens of transformers under any arrival, chunk, fork, eviction, preemption and abort."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.calls import SamplingParams
from tests.engine.drive import GREEDY, Job, assert_greedy, drive, logits_of, make_core, model, words

KINDS = ["llama", "qwen3", "gemma2", "gemma3", "mixtral", "gpt2", "mistral", "gpt_oss"]
PIECES = [tuple((7 * i + j * j) % 256 for j in range(n)) for i, n in enumerate((1, 3, 9, 17, 30, 12, 75))]


@st.composite
def prompts(draw: st.DrawFn) -> tuple[int, ...]:
    """Made of few pieces, so that prompts share prefixes and part in the middle of edges."""
    pieces = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3))
    ids = tuple(i for piece in pieces for i in piece)
    return ids[: draw(st.integers(1, len(ids)))]


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    arrives = draw(st.integers(0, 12))
    aborts = draw(st.none() | st.none() | st.integers(0, 12))
    stop = draw(st.none() | st.none() | st.sampled_from(["e", "\x00", "ab"]))
    return Job(
        prompt=draw(prompts()),
        max_new=draw(st.integers(0, 12)),
        arrives=arrives,
        aborts=None if aborts is None else arrives + aborts,
        params=SamplingParams(temperature=0.0, stop=(stop,) if stop else ()),
        ends_at_eos=draw(st.booleans()),
    )


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(
    work=st.lists(jobs(), min_size=1, max_size=9),
    spare=st.sampled_from([0, 0, 3, 40, 300]),
    chunk=st.sampled_from([1, 2, 5, 16, 64, 100]),
    max_batch=st.sampled_from([1, 2, 5, 16]),
    lookahead=st.sampled_from([1, 4, 64]),
    policy=st.sampled_from(["prefix", "prefix", "fcfs", "random", "dfs_weight"]),
    caching=st.sampled_from([True, True, True, False]),
    ahead=st.booleans(),
)
def test_greedy_tokens_are_those_of_transformers(
    kind, work, spare, chunk, max_batch, lookahead, policy, caching, ahead
):
    longest = max(len(job.prompt) + job.max_new for job in work)
    core, log = make_core(kind, longest + spare, max_batch, chunk, lookahead, policy, caching, ahead)
    drive(core, log, work)
    for job in work:
        assert job.request is not None
        assert_greedy(kind, job.request)
        if job.aborts is None:
            assert_ended_for_a_reason(kind, job)
    core.flush()
    assert core.scheduler.slots.n_free == core.scheduler.slots.n_slots


def assert_ended_for_a_reason(kind: str, job: Job) -> None:
    """The text is as long as transformers' would be: what ended it is really there, and not before."""
    request = job.request
    n_new = request.n_tokens - request.n_prompt
    text = words().decode(request.generated.tolist())
    if request.finish_reason == "prefix":
        assert job.max_new == 0
    elif request.finish_reason == "length":
        assert n_new == job.max_new
    elif isinstance(request.matched, str):
        assert request.matched in text
        assert request.text == text[: text.index(request.matched)]
    else:
        assert int(logits_of(kind, request.tokens.tolist())[-1].argmax()) == request.matched
    if not (request.stops is not None and request.stops.stopped):
        assert not any(stop in text for stop in job.params.stop)
        assert request.text == text


@pytest.mark.parametrize("spans", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_logits_of_a_fork_tree_equal_transformers_closely(kind, spans):
    """Shared spans, own tails and windows, all in one batch: the scores of every branch's tokens."""
    core, log = make_core(kind, 1000, chunk_tokens=64, spans=spans)
    trunk = tuple(range(40, 110))
    drive(core, log, [Job(trunk, 0)])
    branches = [Job((*trunk, *(b, b + 1, b + 2) * (b % 4 + 1)), 0, score_from=len(trunk) - 1) for b in range(9)]
    drive(core, log, branches)
    for job in branches:
        logprobs = torch.log_softmax(logits_of(kind, list(job.prompt)), -1)
        wanted = [logprobs[at - 1, job.prompt[at]].item() for at in range(len(trunk), len(job.prompt))]
        assert [score.logprob for score in job.request.scores] == pytest.approx(wanted, abs=1e-4)
        assert job.request.n_cached == len(trunk) - 1


@pytest.mark.parametrize("kind", KINDS)
def test_logits_of_long_chunks_equal_transformers_closely(kind):
    """Chunks long enough to be attention of their own: after nothing, after their own past, after a shared one."""
    core, log = make_core(kind, 2000, chunk_tokens=90)
    trunk = tuple(int(i) for i in np.random.default_rng(0).integers(0, 256, 270))
    work = [Job(trunk, 0, score_from=0), Job((*trunk[:100], *trunk[::-1][:120]), 0, score_from=100)]
    drive(core, log, work)
    drive(core, log, [Job((*trunk, *trunk[:80]), 2), Job((*trunk, *trunk[20:100]), 2)])
    for job in work:
        logprobs = torch.log_softmax(logits_of(kind, list(job.prompt)), -1)
        wanted = [logprobs[at - 1, job.prompt[at]].item() for at in range(job.score_from + 1, len(job.prompt))]
        assert [score.logprob for score in job.request.scores] == pytest.approx(wanted, abs=1e-4)


def test_a_pass_that_nobody_wants_is_left_between_two_layers():
    """The step ends at once, nothing of it is kept, and it can be done again."""
    core, _ = make_core("llama", 300, chunk_tokens=64)
    job = Job(tuple(range(100)), 4)
    core.submit(job.make(1))
    core.step()
    layers = model("llama").module.model.layers
    reached = []

    def give_up(module, args, output):
        reached.append(module)
        job.request.unwanted = True

    hooks = [layer.register_forward_hook(give_up) for layer in layers]
    try:
        assert core.step() == []
    finally:
        for hook in hooks:
            hook.remove()
    assert reached == [layers[0]]
    assert job.request.n_computed == 64
    core.scheduler.check()
    job.request.unwanted = False
    while core.has_work:
        core.step()
    assert_greedy("llama", job.request)
    assert job.request.n_tokens == 104


def test_preemption_and_eviction_really_happen():
    """Guards the test above: with so small a pool it must exercise both, and all must end well."""
    core, log = make_core(n_slots=60, max_batch=5, lookahead=1)
    work = [Job(tuple(range(i, i + 20)), 24, params=GREEDY) for i in range(0, 200, 40)]
    drive(core, log, work)
    kinds = [type(event.body).__name__ for event in log.since()]
    assert kinds.count("Preempted") > 0
    assert kinds.count("NodeEvicted") > 0
    for job in work:
        assert_greedy("llama", job.request)
        assert job.request.n_tokens == 44


def test_steps_planned_ahead_give_the_same_texts():
    """Also of requests that need their last token, and beside them; what a text's end leaves behind is given back."""

    def work() -> list[Job]:
        kinds = [
            SamplingParams(temperature=1.0, seed=3),
            SamplingParams(temperature=0.8, seed=4, top_p=0.9, top_k=20, stop=("e", "a")),
            SamplingParams(temperature=0.0, repetition_penalty=1.3),
            SamplingParams(
                temperature=1.0, seed=6, frequency_penalty=0.5, min_tokens=4, stop_token_ids=tuple(range(60))
            ),
            SamplingParams(temperature=1.0, seed=7, min_tokens=3),
        ]
        prompts = [PIECES[4] + PIECES[i] for i in range(5)]
        jobs = [Job(prompts[i % 5], 14, i % 7, None, kinds[i % 5], None, i % 2 == 0) for i in range(25)]
        jobs += [Job(PIECES[4] + PIECES[6], 6, 3, score_from=10), Job(PIECES[4] + PIECES[5], 0, 4)]
        return jobs

    found = []
    for ahead in (False, True):
        core, log = make_core(n_slots=1500, max_batch=16, chunk_tokens=20, ahead=ahead)
        jobs = work()
        drive(core, log, jobs)
        core.flush()
        assert core.scheduler.slots.n_free == core.scheduler.slots.n_slots
        requests = [job.request for job in jobs]
        assert len({r.finish_reason for r in requests}) >= 3
        found.append([(r.generated.tolist(), r.text, r.finish_reason, r.matched) for r in requests])
        scores = next(r.scores for r in requests if r.scores)
        found[-1].append([score.id for score in scores])
    assert found[0] == found[1]


def test_a_text_whose_logits_are_no_numbers_fails_alone_a_step_later(monkeypatch):
    """Its row is under way once more when that is seen; who is beside it there goes on."""
    core, _ = make_core(n_slots=400, ahead=True)
    bad, good = Job(PIECES[3], 8).make(1), Job(PIECES[4], 4).make(2)
    run, n_runs = core.model.run, 0

    def spoiled(batch, *args, **options):
        nonlocal n_runs
        n_runs += 1
        logits = run(batch, *args, **options)
        if n_runs >= 3 and len(logits):
            logits[0] = float("nan")
        return logits

    monkeypatch.setattr(core.model, "run", spoiled)
    core.submit(bad)
    ended = []
    for step in range(30):
        if step == 3:
            core.submit(good)
        ended += [output for output in core.step() if output.ended] if core.has_work else []
        if bad.ended:
            monkeypatch.setattr(core.model, "run", run)
    assert [(output.request, output.error is None) for output in ended] == [(bad, False), (good, True)]
    core.scheduler.check()


def test_a_step_is_launched_before_the_last_one_has_landed():
    """By counts: while a plain text is decoded there is always a step in the queue, and no row too many at its end."""
    core, _ = make_core(n_slots=300, ahead=True)
    request = Job(PIECES[2], 6).make(1)
    core.submit(request)
    seen = []
    while core.has_work:
        core.step()
        seen.append((request.n_tokens - request.n_prompt, request.n_computed - request.n_prompt))
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 5)]


def test_the_test_can_fail():
    """A wrong slot in a row is caught by the comparison."""
    core, _ = make_core(n_slots=100)
    job = Job(tuple(range(30)), 8)
    core.submit(job.make(1))
    core.step()
    core.step()
    job.request.slots[3:9] = 0
    while core.has_work:
        core.step()
    with pytest.raises(AssertionError, match="below the best"):
        assert_greedy("llama", job.request)


@pytest.mark.parametrize("kind", ["falcon", "bloom", "qwen3_next", "stablelm"])
def test_models_that_would_be_wrong_are_refused_by_name(kind):
    from nbsglang.engine.model import Model
    from nbsglang.errors import ModelRefused
    from tests.tiny import tiny_model

    with pytest.raises(ModelRefused, match=kind):
        Model(tiny_model(kind), kind)


def test_a_model_is_as_before_when_it_was_refused_or_served():
    from tests.tiny import tiny_model

    module = tiny_model("llama")
    before = module.config._attn_implementation
    from nbsglang.engine.model import Model

    Model(module, "llama").release()
    assert module.config._attn_implementation == before
    assert not module._forward_hooks
    assert not module._forward_pre_hooks


def test_window_layers_keep_their_window():
    assert model("mistral").config.sliding_window == 8
