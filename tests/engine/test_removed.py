"""The probability that a mask takes away: against distributions written out, and along the texts of an engine."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

import nbsglang as sgl
from nbsglang.calls import Constraint, SamplingParams
from nbsglang.engine.engine import Engine
from nbsglang.engine.grammar.constraints import Constraints
from nbsglang.engine.request import Request
from nbsglang.engine.sampler import sample
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.engine.tops import MAX_TOPS
from nbsglang.events import EventLog, Logprobs, Masked, Tokens, TokenTexts, TopLogprobs
from tests.engine.grammar.oracle import allowed
from tests.tiny import EOS, VOCAB_SIZE, byte_tokenizer, tiny_model

PROMPT = "Give me a word: "


@cache
def constraints() -> Constraints:
    words = Tokenizer(byte_tokenizer(), n_vocab=VOCAB_SIZE, eos_ids=[EOS])
    return Constraints(words.bytes_table, words.eos_ids, words.special_ids)


def request(pattern: str | None, **params) -> Request:
    matcher = constraints().compile(Constraint("regex", pattern)) if pattern else None
    return Request(0, "c", np.array([97, 98], np.int32), 2, 1, 9, SamplingParams(**params), 3, matcher=matcher)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("free", [False, True])
def test_it_is_what_the_models_own_distribution_gives_to_the_others(dtype, free):
    patterns = ["[a-m]x?", "(?s:.)*", "a|b", None if free else "[^a]+", ".{3}"]
    logits = 3 * torch.randn(len(patterns), VOCAB_SIZE, generator=torch.Generator().manual_seed(1)).to(dtype)
    logits[2, [97, 98]] = -30.0  # next to nothing is left
    requests = [
        request(patterns[0], repetition_penalty=2.0, logit_bias=((99, 5.0),)),
        request(patterns[1], temperature=0.3, top_k=2),
        *(request(pattern, min_tokens=1) for pattern in patterns[2:]),
    ]
    probs = torch.softmax(logits.double(), -1)
    found = [row.removed for row in sample(logits.clone(), requests).fetch()]
    for row, made in enumerate(requests):
        if made.matcher is None:
            assert found[row] is None
            continue
        kept = probs[row, sorted(allowed(made.matcher))].sum().item()
        assert found[row] == pytest.approx(1 - kept, abs=3e-6)
        assert 0 <= found[row] <= 1
    assert found[2] > 0.999999


@pytest.mark.parametrize("jump", ["canonical", "exact", "off"])
def test_each_token_of_a_text_has_its_own(jump):
    log = EventLog()
    pattern = "ab[c-f]{2}(xyz|uvw)[0-9]?"
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500, jump=jump, log=log) as engine:
        outs = engine.generate(PROMPT, n=3, regex=pattern, temperature=1.0, seed=4, max_tokens=20)
        assert engine.generate(PROMPT, max_tokens=4).removed is None
        cut = engine.generate(PROMPT, regex=pattern, stop="y", temperature=0, max_tokens=20)
        assert cut.removed is not None
        assert len(cut.removed) == len(cut.ids)
    module = tiny_model("llama")
    for out in outs:
        assert len(out.removed) == len(out.ids)
        assert [token.removed for token in out.ids] == list(out.removed)
        jumped = [n for n, token in enumerate(out.ids) if token.jumped]
        assert jumped == ([] if jump == "off" else [0, 1, 5, 6])  # "ab", and two after the x or the u
        assert out.usage.jumped_tokens == 3 * len(jumped)
        ids = [*PROMPT.encode(), *out.ids]
        with torch.inference_mode():
            probs = torch.softmax(module(torch.tensor([ids])).logits[0].double(), -1)
        matcher = constraints().compile(Constraint("regex", pattern))
        for at, (token, removed) in enumerate(zip(out.ids, out.removed, strict=True)):
            kept = probs[len(PROMPT) - 1 + at, sorted(allowed(matcher))].sum().item()
            if removed is None:
                assert jump == "canonical"
                assert len(allowed(matcher)) == 1
            else:
                assert removed == pytest.approx(1 - kept, abs=1e-5)
            assert matcher.accept(token)
        assert out.removed.count(None) == (4 if jump == "canonical" else 0)  # "ab", and two after the x or the u
    pairs = [(event.body, after.body) for event, after in zip(log.since(0), log.since(1), strict=False)]
    masked = [(body, after) for body, after in pairs if isinstance(body, Masked)]
    assert masked
    for body, after in masked:
        assert isinstance(after, Tokens)
        assert set(body.requests) <= set(after.requests)
        assert all(0 <= removed <= 1 and math.isfinite(removed) for removed in body.removed)
    if jump != "exact":  # what the model confirms of drafts is logged as jumps are
        n_drawn = sum(removed is not None for out in outs for removed in out.removed)
        assert sum(len(body.requests) for body, _ in masked) >= n_drawn


def test_the_log_has_the_log_probabilities_that_were_asked_for_before_their_tokens():
    log = EventLog()
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500, log=log) as engine:
        engine.generate(PROMPT, max_tokens=4)
        assert not [event for event in log.since(0) if isinstance(event.body, Logprobs)]
        out = engine.generate(PROMPT, max_tokens=4, return_logprob=True)
    bodies = [event.body for event in log.since(0)]
    places = [at for at, body in enumerate(bodies) if isinstance(body, Logprobs)]
    assert all(isinstance(bodies[at + 1], Tokens) and bodies[at].requests == bodies[at + 1].requests for at in places)
    assert [bodies[at].logprobs[0] for at in places] == [token.logprob for token in out.logprobs]
    assert [bodies[at + 1].ids[0][0] for at in places] == list(out.ids)


def test_the_log_has_the_likeliest_tokens_and_the_constraints_word_on_each():
    log, pattern = EventLog(), "[a-m]{3}x?"
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500, log=log) as engine:
        out = engine.generate(PROMPT, regex=pattern, temperature=0, max_tokens=9, top_logprobs_num=40)
        engine.generate(PROMPT, max_tokens=2, top_logprobs_num=3)
        engine.generate(PROMPT, max_tokens=2, return_logprob=True)
    bodies = [event.body for event in log.since(0)]
    told = [(body, after) for body, after in pairwise(bodies) if isinstance(body, TopLogprobs)]
    assert all(isinstance(after, Tokens) and after.requests == body.requests for body, after in told)
    named = {token for body in bodies if isinstance(body, TokenTexts) for token in body.ids}
    assert named >= {token for body, _ in told for token in body.ids[0]}
    matcher = constraints().compile(Constraint("regex", pattern))
    n_allowed = 0
    for (body, _), tops, token in zip(told, out.top_logprobs, out.ids, strict=False):
        assert body.ids[0] == tuple(top.id for top in tops[:MAX_TOPS])
        assert body.logprobs[0] == tuple(top.logprob for top in tops[:MAX_TOPS])
        assert body.allowed[0] == tuple(top.id in allowed(matcher) for top in tops[:MAX_TOPS])
        n_allowed += sum(body.allowed[0])
        assert matcher.accept(token)
    assert 0 < n_allowed < len(out.ids) * MAX_TOPS
    free = told[len(out.ids) :]
    assert [body.allowed for body, _ in free] == [((True, True, True),)] * 2


def test_a_program_reads_it():
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(), kv_tokens=500, log=EventLog()) as engine:

        @sgl.function
        def program(s):
            s += PROMPT + sgl.gen("grade", regex="A|Bb", temperature=0, max_tokens=5) + sgl.gen("free", max_tokens=2)

        state = program.run(backend=engine)
        cell = f"{PROMPT!r}\ngrade = gen(regex='Ab|Bb', temperature=0, max_tokens=5)\nfree = gen(max_tokens=2)"
        run = sgl.program(cell).run(backend=engine)
        removed = state.get_meta_info("grade")["removed"]
        assert 0.5 < removed[0] <= 1
        assert "removed" not in state.get_meta_info("free")
    assert [token.jumped for token in run.tokens] == [False, True, False, False]
    assert [token.removed is None for token in run.tokens] == [False, True, True, True]
    assert bytes(run.tokens[:2]).decode() == run["grade"]
