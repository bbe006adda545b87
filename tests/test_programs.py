"""Programs on the real engine, in one process: exact, cached, repeatable, interruptible, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator

import greenlet
import pytest
import torch

import nbsglang as sgl
from nbsglang.engine.engine import Engine
from nbsglang.errors import BackendClosed, Cancelled, JoinError, ProgramError, TimedOut, UsageError
from nbsglang.events import Admitted, EventLog
from tests.tiny import byte_tokenizer, tiny_model

CONTEXT = "The library is a promise made between strangers, across time. " * 2


@pytest.fixture(scope="module")
def module() -> torch.nn.Module:
    return tiny_model("llama")


@pytest.fixture
def engine(module: torch.nn.Module) -> Iterator[Engine]:
    with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=3000, chunk_tokens=32, log=EventLog()) as engine:
        yield engine
        assert_nothing_left(engine)


def assert_nothing_left(engine: Engine) -> None:
    """No call, request, lock, slot, thread of a run or greenlet is left."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        stats = engine.stats()
        names = [t.name for t in threading.enumerate() if t.name.startswith("nbsglang")]
        quiet = not stats["running"] and not stats["waiting"] and len(names) == 1
        if quiet and not engine._desk.n_calls:
            break
        time.sleep(0.01)
    assert stats["running"] == stats["waiting"] == stats["kv_locked"] == 0
    assert stats["kv_free"] + stats["kv_cached"] == stats["kv_tokens"]
    assert engine._desk.n_calls == 0
    assert len(names) == 1, names
    gc.collect()
    suspended = [g for g in gc.get_objects() if type(g) is greenlet.greenlet and g.gr_frame and not g.dead]
    assert not [g for g in suspended if g is not greenlet.getcurrent()]


@sgl.function
def judge(s, context, aspects):
    s += sgl.system("Be terse.")
    s += sgl.user(context)
    branches = s.fork(len(aspects))
    for branch, aspect in zip(branches, aspects, strict=True):
        branch += sgl.user(f"Judge its {aspect}.")
        branch += sgl.assistant(sgl.gen("verdict", max_tokens=12, ignore_eos=True))
    branches.join()
    s += sgl.user("".join(s["verdict"]))
    s += sgl.assistant(sgl.gen("summary", max_tokens=10, ignore_eos=True))


ASPECTS = ["form", "tone", "pace"]


def test_a_fork_join_program_gives_transformers_greedy_text(engine: Engine, module: torch.nn.Module) -> None:
    state = judge.run(CONTEXT, ASPECTS, backend=engine, temperature=0)
    tokenizer = byte_tokenizer()

    def continued(messages: list[dict[str, str]], n: int) -> str:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.no_grad():
            out = module.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, eos_token_id=None)
        return bytes(i for i in out[0, ids.shape[1] :].tolist() if i < 256).decode(errors="replace")

    head = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": CONTEXT}]
    for aspect, verdict in zip(ASPECTS, state["verdict"], strict=True):
        assert verdict == continued([*head, {"role": "user", "content": f"Judge its {aspect}."}], 12)


def test_the_shared_prefix_of_a_fork_is_computed_once(engine: Engine) -> None:
    state = judge.run(CONTEXT, ASPECTS, backend=engine, temperature=0)
    admitted = [e.body for e in engine.log.since() if isinstance(e.body, Admitted)]
    assert sum(a.n_hit < len(CONTEXT) for a in admitted) == 1, "one request computes it, all others hit it"
    assert state.stats["cached_tokens"] > 3 * len(CONTEXT)
    assert state.stats["hit_rate"] == pytest.approx(state.stats["cached_tokens"] / state.stats["prompt_tokens"])
    again = judge.run(CONTEXT, ASPECTS, backend=engine, temperature=0)
    assert again.text() == state.text()
    assert again.stats["computed_tokens"] < 0.2 * again.stats["prompt_tokens"]


def test_generated_tokens_are_never_encoded_again(engine: Engine) -> None:
    """The second gen's prompt hits all of the first one's tokens, bytes that are no text included."""

    @sgl.function
    def two(s):
        s += CONTEXT
        s += sgl.gen("a", max_tokens=20, temperature=1.3, seed=4, ignore_eos=True)
        s += sgl.gen("b", max_tokens=5, temperature=0)

    state = two.run(backend=engine)
    assert "\ufffd" in state["a"], "this seed is meant to make bytes that are no UTF-8"
    hits = [e.body.n_hit for e in engine.log.since() if isinstance(e.body, Admitted)]
    assert hits == [0, len(CONTEXT) + 19]


def test_run_stream_async_and_batch_give_one_text(engine: Engine) -> None:
    @sgl.function
    def ask(s, question):
        s += sgl.user(question)
        s += sgl.assistant(sgl.gen("answer", max_tokens=16, temperature=1.0, ignore_eos=True))

    alone = ask.run("What?", backend=engine, seed=9)["answer"]
    streamed = ask.run("What?", backend=engine, seed=9, stream=True)
    pieces = list(streamed.text_iter("answer"))
    awaited = asyncio.run(ask.arun("What?", backend=engine, seed=9))["answer"]

    @sgl.function
    def seeded(s, question, seed):
        s += sgl.user(question)
        s += sgl.assistant(sgl.gen("answer", max_tokens=16, temperature=1.0, ignore_eos=True, seed=seed))

    one = seeded.run("What?", 5, backend=engine)["answer"]
    batch = seeded.run_batch([("What?", 5 if i == 7 else 90 + i) for i in range(16)], backend=engine)
    assert "".join(pieces) == awaited == alone
    assert batch[7]["answer"] == one
    assert len({state["answer"] for state in batch}) == 16


METHODS = [sgl.token_length_normalized, sgl.greedy_token_selection, sgl.unconditional_likelihood_normalized]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_select_decides_as_transformers_logits_do(engine: Engine, module: torch.nn.Module, method) -> None:
    choices = [" yes", " no", " maybe not"]

    @sgl.function
    def choose(s):
        s += CONTEXT
        s += sgl.select("x", choices=choices, choices_method=method)

    state = choose.run(backend=engine)

    def scores(prompt: bytes) -> list[list[float]]:
        found = []
        for choice in choices:
            ids = [*prompt, *choice.encode()] if prompt else [256, *choice.encode()]
            start = len(ids) - len(choice)
            with torch.no_grad():
                logprobs = torch.log_softmax(module(torch.tensor([ids])).logits[0].float(), -1)
            found.append([logprobs[at - 1, ids[at]].item() for at in range(start, len(ids))])
        return found

    mine = scores(CONTEXT.encode())
    means = [sum(row) / len(row) for row in mine]
    if method is sgl.token_length_normalized:
        assert state["x"] == choices[means.index(max(means))]
    assert state["x"] in choices
    meta = state.get_meta_info("x")
    assert meta["normalized_prompt_logprobs"] == pytest.approx(means, abs=1e-3)
    assert sum(meta["probabilities"]) == pytest.approx(1)


def test_typed_values_come_back_as_their_type(engine: Engine) -> None:
    @sgl.function
    def typed(s):
        s += "Count: "
        s += sgl.gen("i", type=int, max_tokens=30)
        s += sgl.gen("f", type=float, max_tokens=40)
        s += sgl.gen("b", type=bool, max_tokens=10)
        s += sgl.gen("r", regex="[a-c]{2,4}", max_tokens=10)

    for seed in range(3):
        state = typed.run(backend=engine, seed=seed)
        assert [type(state[name]) for name in "ifb"] == [int, float, bool]
        assert set(state["r"]) <= set("abc")


def interrupted(work: Callable[[], object], after: float = 0.25) -> float:
    """Seconds from the signal to the KeyboardInterrupt out of `work`."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.perf_counter() - sent[0]
    finally:
        timer.join()


def test_an_interrupt_in_a_prefill_ends_run_and_keeps_engine_and_cache(engine: Engine, monkeypatch) -> None:
    @sgl.function
    def long(s):
        s += "x" * 400
        branches = s.fork(4)
        for i, branch in enumerate(branches):
            branch += f"{i}"
            branch += sgl.gen("y", max_tokens=5)
        branches.join()

    kept = judge.run(CONTEXT, ASPECTS, backend=engine, temperature=0)
    real = engine._model.run

    def slow(*args, **options):
        time.sleep(0.1)  # 400 tokens in chunks of 32: 1.3 s of prefill
        return real(*args, **options)

    monkeypatch.setattr(engine._model, "run", slow)
    assert interrupted(lambda: long.run(backend=engine)) < 0.5
    assert_nothing_left(engine)
    monkeypatch.setattr(engine._model, "run", real)
    again = judge.run(CONTEXT, ASPECTS, backend=engine, temperature=0)
    assert again.text() == kept.text()
    assert again.stats["hit_rate"] > 0.8, "the cache is kept"


def test_nothing_is_left_after_an_error_a_cancel_and_a_timeout(engine: Engine) -> None:
    @sgl.function
    def endless(s, n=400):
        s += CONTEXT
        s += sgl.gen("a", max_tokens=n, ignore_eos=True)

    @sgl.function
    def fails(s):
        branches = s.fork(3)
        for i, branch in enumerate(branches):
            branch += CONTEXT + str(i)
            branch += sgl.gen("a", max_tokens=300, ignore_eos=True)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails.run(backend=engine)
    assert_nothing_left(engine)
    with pytest.raises(TimedOut):
        endless.run(backend=engine, timeout=0.1)
    assert_nothing_left(engine)
    state = endless.run(backend=engine, stream=True)
    state.cancel()
    with pytest.raises(Cancelled):
        state["a"]
    assert_nothing_left(engine)


def test_an_engine_closed_under_a_running_program(module: torch.nn.Module) -> None:
    @sgl.function
    def endless(s):
        s += CONTEXT
        s += sgl.gen("a", max_tokens=2000, ignore_eos=True)
        s += sgl.gen("b", max_tokens=5)

    engine = Engine(module, tokenizer=byte_tokenizer(), kv_tokens=3000, log=EventLog())
    closer = threading.Timer(0.1, engine.close)
    closer.start()
    with pytest.raises(ProgramError, match="closed") as info:
        endless.run(backend=engine)
    assert isinstance(info.value.__cause__, BackendClosed)
    closer.join()
    with pytest.raises(ProgramError, match="closed"):
        endless.run(backend=engine)


def test_bad_input_names_the_programs_line(engine: Engine) -> None:
    @sgl.function
    def bad(s, what):
        s += "Hello " * (800 if what == "long" else 1)
        if what == "regex":
            s += sgl.gen("x", regex="(")
        elif what == "choices":
            s += sgl.select("x", choices=[])
        else:
            s += sgl.gen("x", max_tokens=3)

    for what, error in (("long", ProgramError), ("regex", (ProgramError, UsageError)), ("choices", UsageError)):
        with pytest.raises(error) as info:
            bad.run(what, backend=engine)
        if info.type is ProgramError:
            assert "test_programs.py:" in str(info.value)
    assert bad.run("fine", backend=engine)["x"]


def test_one_bad_branch_leaves_the_others_whole(engine: Engine) -> None:
    @sgl.function
    def mixed(s, strict):
        s += CONTEXT
        branches = s.fork(3)
        for i, branch in enumerate(branches):
            branch += "Hello " * (800 if i == 1 else 1)
            branch += sgl.gen("x", max_tokens=3, ignore_eos=True)
        branches.join(strict=strict)
        return [value is not None for value in s["x"]]

    assert mixed.run(False, backend=engine).ret_value == [True, False, True]
    with pytest.raises(JoinError) as info:
        mixed.run(True, backend=engine)
    assert [error is not None for error in info.value.errors] == [False, True, False]


def test_one_bad_item_of_a_batch(engine: Engine) -> None:
    @sgl.function
    def item(s, text):
        s += text
        if text == "bad":
            raise ValueError("bad item")
        s += sgl.gen("x", max_tokens=3, ignore_eos=True)

    items = [("one",), ("bad",), ("three",)]
    with pytest.raises(ValueError, match="bad item"):
        item.run_batch(items, backend=engine)
    states = item.run_batch(items, backend=engine, on_error="return")
    assert [state.error() is None for state in states] == [True, False, True]
    assert states[2]["x"]


def test_a_reader_on_another_thread(engine: Engine) -> None:
    found: list[str] = []

    @sgl.function
    def read(s):
        s += CONTEXT
        s += sgl.gen("x", max_tokens=20, ignore_eos=True)
        thread = threading.Thread(target=lambda: found.append(s["x"]))
        thread.start()
        thread.join()

    state = read.run(backend=engine)
    assert found == [state["x"]]
