"""The benchmarks on a tiny random model: every contestant does the same work, and the counts are plausible.

Not here: times.
"""

from __future__ import annotations

import pytest

import nbsglang as sgl
from benchmarks.batched import Batched
from benchmarks.by_hand import ByHand
from benchmarks.cpu import compare, run
from benchmarks.guided import Guided, Unavailable
from benchmarks.loop import Loop
from benchmarks.measure import Measured, Plan, measure
from benchmarks.optimum import Needed, hit_rate, n_gens, n_tokens, needed, optimum
from benchmarks.ours import Ours
from benchmarks.overhead import overhead
from benchmarks.report import environment, table
from benchmarks.workloads import NAMES, Outcome, Sizes, Writer, build, part, token_counts
from tests.tiny import byte_tokenizer, tiny_model

TINY = Sizes(60, 3, 48, 10, 12, 2, 20, 40, 3, 8, 6, 3, 24, 4)
PLAN = Plan(runs=1)


@pytest.fixture(scope="module")
def tokenizer():
    return byte_tokenizer()


@pytest.fixture(scope="module")
def contestants(tokenizer):
    module = tiny_model("llama")
    others = [kind(module, tokenizer) for kind in (Loop, Batched, ByHand)]
    with sgl.Engine(module, tokenizer=tokenizer, kv_tokens=4000, log=sgl.EventLog()) as engine:
        yield [Ours(engine), *others]


@pytest.mark.parametrize("name", NAMES)
def test_contestants_do_the_same_work(name, contestants, tokenizer):
    work = build(name, tokenizer, TINY)
    measured = {c.name: measure(c, name, work, build(name, tokenizer, TINY, seed=1), PLAN) for c in contestants}
    counts = {m.outcome.n_generated for m in measured.values()}
    assert counts == {work.n_generated}
    assert len({len(m.outcome.texts) for m in measured.values()}) == 1
    assert all(m.seconds > 0 for m in measured.values())
    for equal in compare(name, work, contestants, measured).values():
        n, of, total = equal.split()
        assert of == "of"
        assert n == total != "0"


@pytest.mark.parametrize("name", NAMES)
def test_hit_rate_is_near_its_optimum_and_never_above(name, contestants, tokenizer):
    ours, work = contestants[0], build(name, tokenizer, TINY)
    ours.reset()
    outcome = getattr(ours, work.kind)(work)
    prompts = needed(work, outcome, tokenizer)
    rate, best = hit_rate(ours.counters, prompts, n_gens(work)), optimum(prompts)
    assert rate <= best + 1e-9
    assert rate >= best - 0.05
    assert 0 <= best < 1


def test_optimum_counts_what_must_be_computed():
    prompts = [Needed((1, 2, 3, 4), 3)] * 3  # the last token's logits are needed each time
    assert n_tokens(prompts) == 12
    assert optimum(prompts) == 6 / 12
    assert optimum([Needed((1, 2, 3), 2), Needed((1, 2, 4), 2), Needed((5, 2, 3), 2)]) == 2 / 9
    assert optimum([Needed((1, 2, 3), 1), Needed((1, 2, 3), 1)]) == 1 / 6  # scored from the second token on


def test_texts_have_the_tokens_that_were_asked_for(tokenizer):
    write = Writer(tokenizer)
    for n in (1, 2, 3, 50, 333):
        assert len(tokenizer(write.text(n)).input_ids) == n
    counts = token_counts(build("judge", tokenizer, TINY), tokenizer)
    assert counts == {"instruction": [20], "essays": [40], "aspects": [8], "merge": [6]}
    assert build("plain", tokenizer, TINY, seed=0) == build("plain", tokenizer, TINY, seed=0)
    assert build("plain", tokenizer, TINY, seed=0) != build("plain", tokenizer, TINY, seed=1)


def test_a_part_is_multiplied(contestants, tokenizer):
    work = build("few_shot", tokenizer, TINY)
    assert len(part(work, 5).questions) == 2
    done = measure(contestants[1], "few_shot", work, work, Plan(1, shares={("few_shot", "loop"): 5}))
    assert done.share == 5
    assert len(done.outcome.texts) == 2
    with pytest.raises(ValueError, match="not cut"):
        part(build("plain", tokenizer, TINY), 2)


def test_a_contestant_that_does_less_is_caught(tokenizer):
    class Lazy:
        name = "lazy"

        def reset(self):
            pass

        def plain(self, work):
            return Outcome((), 0)

    work = build("plain", tokenizer, TINY)
    with pytest.raises(ValueError, match="lazy made 0 tokens"):
        measure(Lazy(), "plain", work, work, PLAN)


def test_the_share_of_the_scheduler_is_plausible_and_leaves_the_engine_as_it_was(contestants, tokenizer):
    ours = contestants[0]
    shares = overhead(ours, build("plain", tokenizer, TINY))
    assert 0 < shares.tree_and_scheduler < 1
    assert 0 < shares.model < 1
    assert not {"computed", "finish"} & vars(ours.engine._loop._core.scheduler).keys()


def test_a_whole_workload_with_its_report(contestants, tokenizer, capsys):
    result = run("plain", contestants, tokenizer, TINY, PLAN)
    assert set(result["contestants"]) == {"ours", "loop", "batch", "by_hand"}
    assert result["equal"]["loop"] == "3 of 3"
    assert "tree and scheduler" in capsys.readouterr().out
    text = table({"plain": result})
    assert "(1.00x)" in text
    assert {"versions", "commit", "machine", "command", "engine"} <= environment().keys()


@pytest.mark.smollm2
def test_guidance_takes_part_or_says_why(smollm2_folder):
    from nbsglang.engine.load import load

    loaded = load(smollm2_folder)
    try:
        guided = Guided(loaded.module, loaded.tokenizer)
    except Unavailable as why:
        pytest.skip(str(why))
    loop = Loop(loaded.module, loaded.tokenizer)
    sizes = Sizes(30, 2, 20, 2, 10, 1, 10, 20, 2, 10, 8, 2, 20, 4)
    for name in ("plain", "judge", "few_shot"):
        work = build(name, loaded.tokenizer, sizes)
        theirs, expected = (measure(c, name, work, work, PLAN).outcome for c in (guided, loop))
        assert theirs.n_generated == work.n_generated
        assert len(theirs.texts) == len(expected.texts)


def test_measured_takes_the_median(tokenizer):
    class Once:
        name = "once"

        def reset(self):
            pass

        def plain(self, work):
            return Outcome(work.prompts, work.n_generated)

    work = build("plain", tokenizer, TINY)
    done = measure(Once(), "plain", work, work, Plan(runs=3))
    assert isinstance(done, Measured)
    assert len(done.runs) == 3
    assert sorted(done.runs)[1] == done.seconds
