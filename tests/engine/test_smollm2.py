"""The default model: exact against transformers, constrained, and interrupted in the middle of a prefill."""

from __future__ import annotations

import json
import re
import signal
import threading
import time

import pytest
import torch

from nbsglang.engine.engine import Engine
from nbsglang.events import EventLog

pytestmark = [pytest.mark.smollm2, pytest.mark.all_threads]

SUBJECTS = ["rain", "Paris", "a clock", "the number 7", "bread", "mountains", "a library", "whales", "copper", "tea"]
QUESTIONS = ["Tell me one fact about {}.", "Write a line of verse about {}."]


@pytest.fixture(scope="module")
def engine(smollm2_folder):
    with Engine("smollm2", kv_tokens=6000, log=EventLog()) as engine:
        yield engine


def chat(engine: Engine, text: str) -> str:
    messages = [{"role": "user", "content": text}]
    return engine.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def test_twenty_prompts_of_64_tokens_are_transformers_greedy_tokens(engine):
    prompts = [chat(engine, question.format(subject)) for subject in SUBJECTS for question in QUESTIONS]
    outputs = engine.generate(prompts, max_tokens=64, temperature=0, ignore_eos=True)
    module = engine._model.module
    assert next(module.parameters()).dtype == torch.float32
    for prompt, output in zip(prompts, outputs, strict=True):
        ids = engine.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        assert len(output.ids) == 64
        with torch.inference_mode():
            logits = module(torch.tensor([[*ids, *output.ids]]), use_cache=False).logits[0, len(ids) - 1 : -1]
        chosen = logits.gather(1, torch.tensor(output.ids)[:, None])[:, 0]
        assert (logits.amax(-1) - chosen).max() <= 1e-5 * logits.abs().max()


def test_it_answers(engine):
    out = engine.generate(chat(engine, "What is the capital of France?"), max_tokens=20, temperature=0)
    assert out.text == "The capital of France is Paris."
    assert out.finish_reason == "stop"


def test_a_batch_repeats_each_text_of_a_single_run(engine):
    prompts = [chat(engine, f"Say something about {subject}.") for subject in SUBJECTS]
    options = {"max_tokens": 24, "temperature": 0.9}
    alone = engine.generate(prompts[4], seed=11, **options).text
    together = engine.generate(prompts, seed=11, **options)
    assert together[4].text == alone


def test_constraints_from_regex_choices_schema_and_grammar(engine):
    prompt = chat(engine, "Give me a date in 2024 as YYYY-MM-DD.")
    regex = r"2024-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    assert re.fullmatch(regex, engine.generate(prompt, regex=regex, max_tokens=20, seed=1).text)
    assert engine.generate(prompt, choices=["alpha", "beta"], max_tokens=20, seed=1).text in {"alpha", "beta"}
    years = {"year": {"type": "integer", "minimum": 1900, "maximum": 2100}}
    schema = {"type": "object", "properties": years, "required": ["year"], "additionalProperties": False}
    found = json.loads(engine.generate(prompt, json_schema=schema, max_tokens=60, temperature=0).text)
    assert isinstance(found["year"], int)
    out = engine.generate(prompt, grammar='start: ("ab" | "cd")+ "!"', max_tokens=30, seed=1)
    assert re.match(r"(ab|cd)+", out.text)


def test_an_interrupt_in_the_middle_of_a_prefill_ends_at_once_and_keeps_the_cache(engine):
    warm = chat(engine, "What is the capital of France?")
    engine.generate(warm, max_tokens=2)
    times = []
    for i in range(3):
        long = f"{i}. " + "Once upon a time there was a fox. " * 400  # about 3600 tokens, some seconds of prefill
        threading.Timer(0.7, signal.raise_signal, [signal.SIGINT]).start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            engine.generate(long, max_tokens=5)
        times.append(time.perf_counter() - start - 0.7)
        assert engine.generate(warm, max_tokens=2).usage.cached_tokens > 20, "the cache is kept"
        assert engine.stats()["kv_locked"] == 0
    assert sorted(times)[1] < 0.5, times
    assert max(times) < 1.5, times
