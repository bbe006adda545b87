"""The sampler against distributions written out by hand, and its order of operations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.calls import SamplingParams
from nbsglang.engine.request import Request
from nbsglang.engine.sampler import _invert, sample, score, uniform, uniforms
from nbsglang.errors import BackendError

PROMPT = [3, 3, 5]


def request(seed: int = 0, generated: tuple[int, ...] = (), place: int = 0, n_top=None, eos=(), **params) -> Request:
    made = Request(
        0, "c", np.array(PROMPT, np.int32), 3, 2, 50, SamplingParams(**params), seed,
        frozenset(eos), n_top=n_top, place=place,
    )  # fmt: skip
    for token in generated:
        made.append(token)
    return made


def counts(logits: torch.Tensor, n: int = 4000, **params) -> np.ndarray:
    requests = [request(seed, **params) for seed in range(n)]
    ids = [s.id for s in sample(logits.repeat(n, 1), requests).fetch()]
    return np.bincount(ids, minlength=logits.shape[-1]) / n


def test_frequencies_follow_the_softmax():
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5])
    found = counts(logits, temperature=0.7)
    expected = torch.softmax(logits / 0.7, -1).numpy()
    assert np.abs(found - expected).max() < 0.03


@settings(max_examples=60)
@given(
    logits=st.lists(st.floats(-4, 4, width=32), min_size=3, max_size=9),
    top_k=st.sampled_from([-1, 1, 2, 4]),
    top_p=st.sampled_from([1.0, 0.9, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.2, 1.0]),
)
def test_only_tokens_inside_all_three_limits_are_drawn(logits, top_k, top_p, min_p):
    row = torch.tensor(logits)
    probs = torch.softmax(row.double(), -1).numpy()
    order = sorted(range(len(probs)), key=lambda i: (-probs[i], i))
    kept = order[: top_k if top_k > 0 else len(order)]
    inside, total, mass = [], sum(probs[i] for i in kept), 0.0
    for i in kept:
        if not inside or mass < top_p * total - 1e-6:
            inside.append(i)
        mass += probs[i]
    floor = min_p * probs.max() * (1 - 1e-5)
    allowed = {i for i in inside if probs[i] >= floor}
    drawn = counts(row, 200, top_k=top_k, top_p=top_p, min_p=min_p, temperature=1.0)
    assert set(np.flatnonzero(drawn)) <= allowed


def test_greedy_takes_the_largest_also_beside_sampled_rows():
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(0))
    best = logits.argmax(-1).tolist()
    rows = [request(temperature=0.0), request(1, temperature=1.0), request(temperature=0.0)]
    found = [s.id for s in sample(logits.clone(), rows).fetch()]
    assert (found[0], found[2]) == (best[0], best[2])


def test_a_row_draws_the_same_alone_and_in_a_batch():
    logits = torch.randn(20, 300, generator=torch.Generator().manual_seed(0))
    rows = [request(seed, place=seed % 3, temperature=1.0) for seed in range(20)]
    together = [s.id for s in sample(logits.clone(), rows).fetch()]
    alone = [sample(logits[i : i + 1].clone(), [rows[i]]).fetch()[0].id for i in range(20)]
    assert together == alone


def test_penalties_bias_and_minimum():
    flat = torch.zeros(8)
    assert sample(flat.repeat(1, 1), [request(temperature=0.0, logit_bias=((6, 1.0),))]).fetch()[0].id == 6
    frequent = torch.tensor([[0.0, 0.0, 0.0, 0.0, 2.5, 2.0, 0.0, 0.0]])
    assert (
        sample(frequent.clone(), [request(generated=(4, 4), temperature=0.0, frequency_penalty=0.3)]).fetch()[0].id == 5
    )
    assert (
        sample(frequent.clone(), [request(generated=(4, 4), temperature=0.0, presence_penalty=0.3)]).fetch()[0].id == 4
    )
    repeated = torch.tensor([[0.0, 0.0, 1.9, 2.0, 0.0, -1.0, 0.0, 0.0]])
    assert (
        sample(repeated.clone(), [request(temperature=0.0, repetition_penalty=1.2)]).fetch()[0].id == 2
    )  # 3 is in the prompt
    ended = torch.tensor([[0.0, 5.0, 1.0, 4.0]])
    held = request(temperature=0.0, min_tokens=2, stop_token_ids=(3,), eos=(1,))
    assert sample(ended.clone(), [held]).fetch()[0].id == 2
    held.append(2)
    held.append(2)
    assert sample(ended.clone(), [held]).fetch()[0].id == 1


def test_logprobs_are_before_temperature_penalties_and_bias():
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    made = request(temperature=0.0, logit_bias=((0, 9.0),), n_top=2)
    found = sample(logits.clone(), [made]).fetch()[0]
    logprobs = torch.log_softmax(logits[0], -1)
    assert found.id == 0
    assert found.logprob.logprob == pytest.approx(logprobs[0].item())
    assert [t.id for t in found.top] == [2, 1]


def test_score_gives_the_log_softmax_of_given_tokens():
    logits = torch.randn(4, 30, generator=torch.Generator().manual_seed(2))
    found = score(logits, [1, 2, 3, 4]).fetch()
    wanted = torch.log_softmax(logits, -1)
    assert [t.logprob for t in found] == pytest.approx([wanted[i, i + 1].item() for i in range(4)], abs=1e-5)


def test_uniform_numbers_are_the_same_one_by_one_and_at_once():
    seeds, places, positions = [0, 5, -3, 1 << 70], [0, 1, 2, 3], [0, 17, 1 << 20, 4]
    alone = [uniform(*counters) for counters in zip(seeds, places, positions, strict=True)]
    assert uniforms(seeds, places, positions).tolist() == alone


def test_uniform_is_uniform_and_depends_on_each_counter():
    draws = np.array([uniform(s, p, n) for s in range(30) for p in range(10) for n in range(30)])
    assert len(set(draws.tolist())) == len(draws)
    histogram = np.histogram(draws, 10, (0, 1))[0] / len(draws)
    assert np.abs(histogram - 0.1).max() < 0.01
    neighbours = np.corrcoef(draws[:-1], draws[1:])[0, 1]
    assert abs(neighbours) < 0.03


def test_only_rows_that_are_alive_must_be_numbers():
    logits = torch.tensor([[0.0, 1.0], [float("nan"), 1.0]])
    draws = sample(logits, [request(temperature=0.0)] * 2)
    assert draws.fetch([True, False])[0].id == 1
    with pytest.raises(BackendError, match="not numbers"):
        draws.fetch()


def test_a_draw_never_falls_on_a_token_without_weight():
    """Weights at the ends of blocks, and draws at the ends of weights."""
    generator = torch.Generator().manual_seed(0)
    for n in (5, 256, 257, 1000):
        weights = torch.rand(64, n, generator=generator) * (torch.rand(64, n, generator=generator) < 0.05)
        weights[:, torch.randint(n, (1,), generator=generator)] = 1e-3
        for draw in (0.0, 1e-17, 0.5, 1 - 2**-53):
            index = _invert(weights, torch.full((64,), draw, dtype=torch.float64))
            assert (weights.gather(1, index[:, None]) > 0).all()
        exact = _invert(weights, torch.full((64,), 0.3, dtype=torch.float64))
        sums = weights.double().cumsum(-1)
        expected = torch.searchsorted(sums, 0.3 * sums[:, -1:], right=True)[:, 0]
        assert (exact == expected).float().mean() > 0.98  # float32 sums of blocks may round across an edge
