"""The Engine as its user holds it: answers, streams, errors, interrupts, closing."""

from __future__ import annotations

import asyncio
import gc
import queue
import threading
import time
import weakref

import numpy as np
import pytest
import torch

from nbsglang.calls import GenCall, Generated, LogprobSpec, Reply, SamplingParams, ScoreCall, Text
from nbsglang.engine.engine import Engine
from nbsglang.errors import BackendClosed, BackendError, Cancelled, PromptTooLong, UsageError
from nbsglang.events import Control, EventLog
from nbsglang.viz.fold import fold
from tests.tiny import byte_tokenizer, tiny_model

PROMPT = "The quick brown fox jumps over the lazy dog. "


@pytest.fixture
def engine():
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500, log=EventLog()) as engine:
        yield engine
        idle(engine)


def idle(engine: Engine) -> None:
    """Nothing is held when nothing runs."""
    for _ in range(100):
        stats = engine.stats()
        if not stats["running"] and not stats["waiting"]:
            break
        time.sleep(0.01)
    assert stats["running"] == stats["waiting"] == stats["kv_locked"] == 0
    assert stats["kv_free"] + stats["kv_cached"] == stats["kv_tokens"]
    assert engine._desk.n_calls == 0


def test_the_same_seed_gives_the_same_text_alone_and_among_others(engine):
    options = {"max_tokens": 20, "temperature": 1.0, "ignore_eos": True}
    alone = engine.generate(PROMPT, seed=7, **options)
    engine.flush_cache()
    inbox = queue.SimpleQueue()
    for i in range(16):
        seed = 7 if i == 9 else 100 + i
        params = SamplingParams(seed=seed, **options)
        engine.submit(GenCall(f"c{i}", (Text(PROMPT[i % 3 :] if i != 9 else PROMPT),), params), inbox)
    replies = {reply.call_id: reply for reply in (inbox.get(timeout=20) for _ in range(16))}
    assert replies["c9"].completions[0].text == alone.text
    assert len({reply.completions[0].text for reply in replies.values()}) > 10


def test_streamed_async_and_batched_runs_give_the_same_text(engine):
    options = {"max_tokens": 24, "temperature": 0.9, "seed": 5}
    one = engine.generate(PROMPT, **options)
    streamed = "".join(engine.stream(PROMPT, **options))
    batched = engine.generate([PROMPT, PROMPT[3:], PROMPT], **options)

    async def both():
        text = "".join([piece async for piece in engine.astream(PROMPT, **options)])
        return text, await engine.agenerate(PROMPT, **options)

    astreamed, awaited = asyncio.run(both())
    assert {one.text, streamed, batched[0].text, batched[2].text, astreamed, awaited.text} == {one.text}


def test_n_samples_differ_and_share_the_prompt(engine):
    outputs = engine.generate(PROMPT, n=5, max_tokens=10, seed=1)
    assert len({output.text for output in outputs}) == 5
    usage = outputs[0].usage
    assert usage.cached_tokens == 4 * (len(PROMPT) - 1)
    again = engine.generate(PROMPT, n=5, max_tokens=10, seed=1)
    assert [o.text for o in again] == [o.text for o in outputs]


def test_unseeded_runs_differ_but_an_engine_repeats_itself():
    texts = []
    for _ in range(2):
        with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=200, seed=3) as engine:
            texts.append([engine.generate(PROMPT, max_tokens=10).text for _ in range(3)])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 3


def test_logprobs_are_the_models_own(engine):
    out = engine.generate(PROMPT, max_tokens=6, temperature=0.7, seed=2, return_logprob=True, top_logprobs_num=3)
    ids = [*PROMPT.encode(), *out.ids]
    module = tiny_model("llama")
    with torch.no_grad():
        logprobs = torch.log_softmax(module(torch.tensor([ids])).logits[0].float(), -1)
    for at, (token, tops) in enumerate(zip(out.logprobs, out.top_logprobs, strict=True), len(PROMPT)):
        assert token.logprob == pytest.approx(logprobs[at - 1, ids[at]].item(), abs=1e-4)
        assert [t.logprob for t in tops] == pytest.approx(logprobs[at - 1].topk(3).values.tolist(), abs=1e-4)


def test_prompt_logprobs_start_where_asked(engine):
    inbox = queue.SimpleQueue()
    spec = LogprobSpec(prompt_start=3)
    engine.generate(PROMPT, max_tokens=1)  # a cached prompt must not spare the scores
    engine.submit(GenCall("c", (Text(PROMPT),), SamplingParams(max_tokens=2), logprobs=spec), inbox)
    reply = inbox.get(timeout=20)
    with torch.no_grad():
        logprobs = torch.log_softmax(tiny_model("llama")(torch.tensor([list(PROMPT.encode())])).logits[0].float(), -1)
    wanted = [logprobs[at - 1, PROMPT.encode()[at]].item() for at in range(3, len(PROMPT))]
    assert [p.logprob for p in reply.prompt_logprobs] == pytest.approx(wanted, abs=1e-4)


def test_choices_are_scored_from_one_boundary(engine):
    inbox = queue.SimpleQueue()
    choices = (" cat", " dog", " doge")
    engine.submit(ScoreCall("c", (Text(PROMPT),), choices, unconditional=True), inbox)
    reply = inbox.get(timeout=20)
    module = tiny_model("llama")
    for choice, score in zip(choices, reply.scores, strict=True):
        ids = [*PROMPT.encode(), *choice.encode()]
        with torch.no_grad():
            logprobs = torch.log_softmax(module(torch.tensor([ids])).logits[0].float(), -1)
        wanted = [logprobs[at - 1, ids[at]].item() for at in range(len(PROMPT), len(ids))]
        assert [t.logprob for t in score.tokens] == pytest.approx(wanted, abs=1e-4)
        assert [t.id for t in score.tokens] == list(choice.encode())
        assert [t.id for t in score.unconditional][-3:] == list(choice.encode())[-3:]
    assert reply.usage.cached_tokens >= 2 * (len(PROMPT) - 1), "the prompt is computed once"


def test_a_stop_string_ends_the_text_and_never_shows(engine):
    whole = engine.generate(PROMPT, max_tokens=40, temperature=0, ignore_eos=True)
    text = whole.text
    stop = text[10:13]
    at = text.index(stop)
    out = engine.generate(PROMPT, max_tokens=40, temperature=0, ignore_eos=True, stop=stop)
    assert (out.text, out.finish_reason) == (text[:at], "stop")
    pieces = list(engine.stream(PROMPT, max_tokens=40, temperature=0, ignore_eos=True, stop=stop))
    assert "".join(pieces) == text[:at]
    later = engine.generate(PROMPT, max_tokens=40, temperature=0, ignore_eos=True, stop=stop, min_tokens=20)
    assert len(later.ids) >= 20 or stop in later.text


def test_generated_ids_continue_a_prompt_as_they_are(engine):
    first = engine.generate(PROMPT, max_tokens=10, temperature=0, ignore_eos=True)
    inbox = queue.SimpleQueue()
    prompt = (Text(PROMPT), Generated(first.text, first.ids))
    engine.submit(GenCall("c", prompt, SamplingParams(max_tokens=5, temperature=0)), inbox)
    reply = inbox.get(timeout=20)
    assert reply.usage.cached_tokens == len(PROMPT) + 9  # all but the last, whose logits are needed


def test_max_tokens_is_cut_at_the_end_of_the_pool(engine):
    out = engine.generate(PROMPT, max_tokens=10_000, temperature=0, ignore_eos=True)
    assert len(out.ids) == 500 - len(PROMPT)
    assert out.finish_reason == "length"


@pytest.mark.parametrize(
    ("prompt", "options", "error", "words"),
    [
        ("", {}, UsageError, "empty"),
        (PROMPT * 20, {}, PromptTooLong, "500"),
        (PROMPT, {"temperature": -1}, UsageError, "temperature"),
        (PROMPT, {"top_p": 0}, UsageError, "top_p"),
        (PROMPT, {"n": 0}, UsageError, "n must"),
        (PROMPT, {"max_tokenz": 3}, UsageError, "max_tokenz"),
        (PROMPT, {"stop_regex": "(("}, UsageError, r"\(\("),
        (PROMPT, {"regex": "(("}, UsageError, "unterminated"),
        (PROMPT, {"choices": []}, UsageError, "choice"),
        (PROMPT, {"regex": "a", "choices": ["b"]}, UsageError, "one constraint"),
        ([], {}, UsageError, "prompt"),
    ],
)
def test_bad_input_is_a_clear_error_and_leaves_nothing(engine, prompt, options, error, words):
    with pytest.raises(error, match=words):
        engine.generate(prompt, **options)
    assert engine.generate(PROMPT, max_tokens=2).ids


def test_one_bad_call_of_a_list_cancels_the_others(engine):
    with pytest.raises(PromptTooLong):
        engine.generate([PROMPT, PROMPT * 20], max_tokens=200)


@pytest.mark.parametrize("kind", ["regex", "choices"])
def test_constraints_hold(engine, kind):
    options = {"regex": {"regex": r"[0-9]{3}-[ab]+x"}, "choices": {"choices": ["yes", "no", "maybe"]}}[kind]
    for seed in range(4):
        out = engine.generate(PROMPT, max_tokens=60, seed=seed, **options)
        if kind == "choices":
            assert out.text in options["choices"]
            assert out.finish_reason in {"constraint", "stop"}
        else:
            head = out.text[:4]
            assert head[:3].isdigit()
            assert head[3:] == "-"


def test_an_error_in_the_model_reaches_the_calls_of_the_step_and_no_other(engine, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("boom")

    good = engine.generate(PROMPT, max_tokens=5, temperature=0)
    with monkeypatch.context() as patch:
        patch.setattr(engine._model, "run", fail)
        with pytest.raises(BackendError, match="boom") as info:
            engine.generate(PROMPT, max_tokens=5, temperature=0)
    frames = [f.filename for f in info.traceback if "core.py" in str(f.path)] if info.tb else []
    assert not frames, "no frame of the engine is kept"
    assert engine.generate(PROMPT, max_tokens=5, temperature=0).text == good.text


def test_nan_logits_are_an_error():
    module = tiny_model("llama")
    with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=100) as engine:
        with torch.no_grad():
            module.lm_head.weight.fill_(float("nan"))
        with pytest.raises(BackendError, match="NaN"):
            engine.generate(PROMPT[:20], max_tokens=2)


def test_cancel_ends_a_call_and_returns_its_memory(engine):
    inbox = queue.SimpleQueue()
    engine.submit(GenCall("c", (Text(PROMPT),), SamplingParams(max_tokens=400, ignore_eos=True)), inbox)
    time.sleep(0.05)
    engine.cancel("c")
    item = inbox.get(timeout=5)
    assert isinstance(item.error, Cancelled)
    engine.cancel("c")  # twice, or unknown, is fine
    idle(engine)
    assert engine.generate(PROMPT, max_tokens=2).usage.cached_tokens > 0, "the cache is kept"


def test_leaving_a_stream_cancels_it(engine):
    for piece in engine.stream(PROMPT, max_tokens=400, ignore_eos=True):
        assert isinstance(piece, str)
        break
    gc.collect()
    idle(engine)


def test_two_engines_work_at_once():
    with (
        Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=200) as a,
        Engine(tiny_model("gemma2"), tokenizer=byte_tokenizer(), kv_tokens=200) as b,
    ):
        expected = [e.generate(PROMPT, max_tokens=12, temperature=0).text for e in (a, b)]
        found: dict[int, str] = {}

        def ask(i: int, engine: Engine) -> None:
            found[i] = engine.generate(PROMPT, max_tokens=12, temperature=0).text

        threads = [threading.Thread(target=ask, args=(i, (a, b)[i % 2])) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[i] for i in range(6)] == expected * 3


def test_two_engines_around_one_module():
    module = tiny_model("llama")
    with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=200) as a:
        one = a.generate(PROMPT, max_tokens=12, temperature=0).text
        with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=200) as b:
            assert b.generate(PROMPT, max_tokens=12, temperature=0).text == one
        assert a.generate(PROMPT, max_tokens=12, temperature=0).text == one


def test_two_engines_around_one_module_at_once():
    module = tiny_model("llama")
    with (
        Engine(module, tokenizer=byte_tokenizer(), kv_tokens=400) as a,
        Engine(module, tokenizer=byte_tokenizer(), kv_tokens=400) as b,
    ):
        texts: list[str] = []

        def ask(engine: Engine) -> None:
            texts.append(engine.generate(PROMPT, max_tokens=40, temperature=0, ignore_eos=True).text)

        threads = [threading.Thread(target=ask, args=(engine,), daemon=True) for engine in (a, b) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert len(texts) == 6
        assert len(set(texts)) == 1


def engine_threads() -> int:
    return sum(thread.name.startswith("nbsglang") for thread in threading.enumerate())


def test_close_fails_running_calls_and_leaves_nothing():
    before = engine_threads()
    engine = Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500)
    inbox = queue.SimpleQueue()
    engine.submit(GenCall("c", (Text(PROMPT),), SamplingParams(max_tokens=400, ignore_eos=True)), inbox)
    time.sleep(0.02)
    engine.close()
    assert isinstance(inbox.get(timeout=5).error, BackendClosed)
    with pytest.raises(BackendClosed):
        engine.generate(PROMPT)
    with pytest.raises(BackendClosed):
        engine.stats()
    engine.close()
    assert engine_threads() == before


def test_an_engine_that_is_dropped_closes_itself():
    before = engine_threads()
    engine = Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500)
    engine.generate(PROMPT, max_tokens=3)
    pool = weakref.ref(engine._loop._core.pool.k[0])
    del engine
    gc.collect()
    for _ in range(100):
        if engine_threads() == before:
            break
        time.sleep(0.02)
    assert engine_threads() == before
    gc.collect()
    assert pool() is None, "the KV pool is still alive"


def test_opening_and_closing_ten_times_does_not_grow():
    import psutil

    module = tiny_model("llama")
    process = psutil.Process()
    sizes = []
    for _ in range(10):
        with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=100_000) as engine:
            pool = engine._loop._core.pool
            for tensor in [*pool.k, *pool.v]:
                tensor.fill_(1.0)  # really take the memory: 77 MB
            engine.generate(PROMPT, max_tokens=2)
            del pool, tensor
        sizes.append(process.memory_info().rss)
    assert sizes[-1] - sizes[1] < 40e6


def test_ids_may_come_as_an_array(engine):
    ids = list(PROMPT.encode())
    texts = {engine.generate(p, max_tokens=5, temperature=0).text for p in (ids, tuple(ids), np.array(ids))}
    assert len(texts) == 1


def test_a_prefix_hint_only_computes(engine):
    inbox = queue.SimpleQueue()
    for call_id in ("one", "two"):
        engine.submit(GenCall(call_id, (Text(PROMPT),), SamplingParams(max_tokens=0)), inbox)
        reply = inbox.get(timeout=10)
        assert isinstance(reply, Reply)
        assert reply.completions[0].text == ""
        assert reply.completions[0].finish_reason == "prefix"
    assert reply.usage.cached_tokens == len(PROMPT)


@pytest.mark.parametrize(
    "options",
    [
        {"logit_bias": {300: 1.0}},
        {"logit_bias": {-1: 1.0}},
        {"stop_token_ids": [10**6], "min_tokens": 2},
        {"return_logprob": True, "top_logprobs_num": -1},
        {"stop_token_ids": ["a"], "min_tokens": 1},
        {"logit_bias": {97: float("-inf")}},
        {"seed": "x"},
        {"top_k": 1 << 70},
        {"stop": 5},
        {"stop": [b"a"]},
        {"frequency_penalty": float("nan")},
        {"temperature": None},
        {"n": 2.5},
        {"choices": "yes"},
    ],
)
def test_options_that_make_no_sense_are_refused_and_harm_no_neighbour(engine, options):
    inbox = queue.SimpleQueue()
    engine.submit(GenCall("good", (Text(PROMPT),), SamplingParams(max_tokens=60, ignore_eos=True)), inbox)
    with pytest.raises(UsageError):
        engine.generate(PROMPT, max_tokens=5, **options)
    with pytest.raises(UsageError, match="1000000"):
        engine.generate([10**6], max_tokens=5)
    assert len(inbox.get(timeout=20).completions[0].ids) == 60


def test_an_engine_in_a_cycle_is_collected_while_its_log_is_written():
    """Its finalizer must not wait for a lock that the collecting thread holds."""
    log = EventLog()
    for _ in range(3):
        engine = Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=200, log=log)
        engine.generate(PROMPT[:20], max_tokens=2)
        cycle = [engine]
        cycle.append(cycle)
        del engine, cycle
        for _ in range(2000):
            log.emit("x", Control("filler", "x" * 10))
        gc.collect()
    assert log.seq > 6000


def test_an_engine_that_is_built_again_has_a_tree_of_its_own_in_the_log():
    log = EventLog()
    for _ in range(2):
        with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=200, log=log) as engine:
            engine.generate(PROMPT, max_tokens=3, temperature=0)
            view = fold(log.since(), engine.source)
            assert view.complete
            assert view.tree_as_tuples() == engine.tree().nodes


def test_a_call_has_one_end_whatever_comes_first(engine):
    """Cancelled at the very moment of its reply: one Reply or one Failure, never both."""
    for i in range(150):
        inbox = queue.SimpleQueue()
        engine.submit(GenCall(f"c{i}", (Text(PROMPT[i % 7 :]),), SamplingParams(max_tokens=1 + i % 3)), inbox)
        time.sleep((i % 10) * 0.001)
        engine.cancel(f"c{i}")
        inbox.get(timeout=5)
        engine.stats()  # the step that was running is over
        assert inbox.empty()


def test_a_fault_in_one_requests_own_part_harms_no_neighbour(engine, monkeypatch):
    from nbsglang.engine.stops import StopMatcher

    def fail(self, text, check=True):
        raise RuntimeError("boom")

    monkeypatch.setattr(StopMatcher, "push", fail)
    inbox = queue.SimpleQueue()
    engine.submit(GenCall("good", (Text(PROMPT),), SamplingParams(max_tokens=30, ignore_eos=True)), inbox)
    with pytest.raises(BackendError, match="boom"):
        engine.generate(PROMPT, max_tokens=5, stop="never")
    assert len(inbox.get(timeout=20).completions[0].ids) == 30


def test_text_that_is_not_unicode_is_refused(engine):
    with pytest.raises(UsageError, match="surrogate"):
        engine.generate("x\ud83d")


def test_a_cold_temperature_is_greedy(engine):
    greedy = engine.generate(PROMPT, max_tokens=10, temperature=0).ids
    assert engine.generate(PROMPT, max_tokens=10, temperature=1e-38).ids == greedy


def test_eos_ends_a_constraint_and_is_no_part_of_it_also_when_it_is_ignored(engine):
    for seed in range(6):
        out = engine.generate(PROMPT, regex="a*", max_tokens=10, seed=seed, ignore_eos=True)
        assert set(out.text) <= {"a"}
        assert set(out.ids) <= {97}


def test_a_prefix_hint_may_fill_the_pool():
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=len(PROMPT)) as engine:
        assert engine.generate(PROMPT, max_tokens=0).finish_reason == "prefix"
        with pytest.raises(PromptTooLong):
            engine.generate(PROMPT, max_tokens=1)
