"""select: the methods against numbers worked out by hand, drawing by temperature, users' own methods."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbsglang as sgl
from nbsglang.calls import ChoiceScore, ScoreCall, TokenLogprob
from nbsglang.errors import UsageError
from nbsglang.lang.choices import ChoicesDecision, ChoicesSamplingMethod, decide, softmax


def scores(*rows: list[float], alone: list[list[float]] | None = None) -> list[ChoiceScore]:
    def tokens(row: list[float]) -> tuple[TokenLogprob, ...]:
        return tuple(TokenLogprob(i, value) for i, value in enumerate(row))

    return [ChoiceScore(tokens(row), tokens(alone[i]) if alone else None) for i, row in enumerate(rows)]


def pick(method: ChoicesSamplingMethod, *rows: list[float], **more: Any) -> str:
    names = ["A", "B", "C", "D"][: len(rows)]
    return decide(names, scores(*rows, **more), method, 0.0, None).decision


def test_token_length_normalized_takes_the_best_mean() -> None:
    # means -0.5, -0.4, -0.6; by sum (-0.5, -0.8, -0.6) A would win
    assert pick(sgl.token_length_normalized, [-0.5], [-0.3, -0.5], [-0.6]) == "B"
    assert pick(sgl.token_length_normalized, [-0.5], [-0.5]) == "A"  # of equals the first


def test_greedy_token_selection_goes_token_by_token() -> None:
    # first token: A and C tie at -0.1; second: A's -2 against C's -1: C, though B has the best mean
    assert pick(sgl.greedy_token_selection, [-0.1, -2.0], [-0.2, -0.2], [-0.1, -1.0]) == "C"
    # A is over after one token and counts on with its mean -0.1 against B's -0.05
    assert pick(sgl.greedy_token_selection, [-0.1], [-0.1, -0.05]) == "B"
    assert pick(sgl.greedy_token_selection, [-0.1], [-0.1, -0.2]) == "A"
    assert pick(sgl.greedy_token_selection, [-0.1], [-0.1]) == "A"


def test_unconditional_likelihood_normalized_takes_the_best_gain() -> None:
    # gains: A (-1+3)/1 = 2; B mean(-0.5+0.6, -0.5+0.6) = 0.1
    rows = ([-1.0], [-0.5, -0.5])
    alone = [[-3.0], [-0.6, -0.6]]
    assert pick(sgl.unconditional_likelihood_normalized, *rows, alone=alone) == "A"
    assert pick(sgl.token_length_normalized, *rows, alone=alone) == "B"
    made = decide(["A", "B"], scores(*rows, alone=alone), sgl.unconditional_likelihood_normalized, 0.0, None)
    assert made.meta_info is not None
    assert made.meta_info["normalized_unconditional_prompt_logprobs"] == pytest.approx([2.0, 0.1])
    assert made.meta_info["probabilities"] == pytest.approx([1 / (1 + math.exp(-1.9)), 1 / (1 + math.exp(1.9))])
    with pytest.raises(UsageError, match="2 tokens"):
        pick(sgl.unconditional_likelihood_normalized, [-1.0, -1.0], [-1.0], alone=[[-3.0], [-0.6]])


def test_meta_info_has_every_choice() -> None:
    mock = sgl.MockBackend(scores={"yes": [-0.1, -0.3, -0.2], "no": [-1.0, -2.0]})

    @sgl.function
    def program(s):
        s += "Q? " + sgl.select("a", choices=["yes", "no"])

    meta = program.run(backend=mock).get_meta_info("a")
    assert meta["choices"] == ["yes", "no"]
    assert meta["normalized_prompt_logprobs"] == pytest.approx([-0.2, -1.5])
    assert meta["total_logprobs"] == pytest.approx([-0.6, -3.0])
    assert meta["probabilities"] == pytest.approx([1 / (1 + math.exp(-1.3)), 1 / (1 + math.exp(1.3))])
    assert meta["input_token_logprobs"][1] == [(-1.0, ord("n"), "n"), (-2.0, ord("o"), "o")]
    (call,) = mock.calls
    assert isinstance(call, ScoreCall)
    assert (call.choices, call.unconditional, call.name) == (("yes", "no"), False, "a")


def test_unconditional_scores_are_asked_for_only_where_needed() -> None:
    mock = sgl.MockBackend("no")

    @sgl.function
    def program(s):
        s += sgl.gen("a", choices=["yes", "no"], choices_method=sgl.unconditional_likelihood_normalized)
        s += sgl.select(["yes", "no"])
        s += sgl.gen("c", choices=("yes", "no"), max_tokens=3)

    state = program.run(backend=mock)
    assert [call.unconditional for call in mock.calls] == [True, False, False]  # type: ignore[union-attr]
    assert (state["a"], state["_0"], state["c"], state.text()) == ("no", "no", "no", "nonono")
    assert "unconditional_token_logprobs" in state.get_meta_info("a")


def test_drawing_follows_the_softmax_and_the_seed() -> None:
    rows = scores([math.log(0.7)], [math.log(0.2)], [math.log(0.1)])
    names = ["A", "B", "C"]

    def draws(temperature: float) -> Counter[str]:
        made = (decide(names, rows, sgl.token_length_normalized, temperature, seed) for seed in range(3000))
        return Counter(one.decision for one in made)

    at_one = draws(1.0)
    assert at_one == draws(1.0)
    for name, share in (("A", 0.7), ("B", 0.2), ("C", 0.1)):
        assert at_one[name] / 3000 == pytest.approx(share, abs=0.03)
    sharp = draws(0.5)  # 0.49 : 0.04 : 0.01
    assert sharp["A"] / 3000 == pytest.approx(0.49 / 0.54, abs=0.03)
    made = decide(names, rows, sgl.token_length_normalized, 0.5, 0)
    assert made.meta_info is not None
    assert made.meta_info["probabilities"] == pytest.approx([0.49 / 0.54, 0.04 / 0.54, 0.01 / 0.54])


def test_a_seed_makes_select_repeat_itself() -> None:
    flat = sgl.MockBackend(scores=dict.fromkeys("abcdefgh", -1.0))

    @sgl.function
    def program(s, seed=None):
        for _ in range(4):
            s += sgl.select(choices=list("abcdefgh"), temperature=1.0, seed=seed)
        return s.text()

    texts = [program.bind(seed=5).run(backend=flat).ret_value for _ in range(2)]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 1  # the same seed for each of the four

    @sgl.function
    def seeded(s):
        for _ in range(8):
            s += sgl.select(choices=list("abcdefgh"), temperature=1.0)
        return s.text()

    runs = [seeded.run(backend=flat, seed=seed).ret_value for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert len(set(runs[0])) > 1
    assert len({seeded.run(backend=flat).ret_value for _ in range(5)}) > 1


def test_a_method_of_the_users_own() -> None:
    class Worst(ChoicesSamplingMethod):
        @property
        def requires_unconditional_logprobs(self) -> bool:
            return True

        def __call__(self, *, choices, normalized_prompt_logprobs, input_token_logprobs, **rest):  # type: ignore[no-untyped-def, override]
            assert [len(tokens) for tokens in input_token_logprobs] == [3, 2]
            assert rest["output_token_logprobs"] == [[], []]
            assert [len(tokens) for tokens in rest["unconditional_token_logprobs"]] == [3, 2]
            worst = min(range(len(choices)), key=normalized_prompt_logprobs.__getitem__)
            return ChoicesDecision(choices[worst], {"mine": worst})

    @sgl.function
    def program(s):
        s += sgl.select("a", ["yes", "no"], choices_method=Worst())

    state = program.run(backend=sgl.MockBackend("yes"))
    assert state["a"] == "no"
    assert state.get_meta_info("a")["mine"] == 1
    assert state.get_meta_info("a")["choices"] == ["yes", "no"]


def test_wrong_choices() -> None:
    wrong: list[Any] = [None, [], "yes", ["a", ""], [1, 2], {"a"}]
    for choices in wrong:
        with pytest.raises(UsageError):
            sgl.select("x", choices)
    with pytest.raises(UsageError, match="two lists"):
        sgl.select(["a"], ["b"])
    with pytest.raises(UsageError, match="temperature"):
        sgl.select("x", ["a"], temperature=-1)


@given(st.lists(st.floats(-1e6, 0) | st.just(-math.inf), min_size=1, max_size=6), st.floats(0.01, 10))
def test_softmax_is_a_distribution(values: list[float], temperature: float) -> None:
    found = softmax(values, temperature)
    assert sum(found) == pytest.approx(1)
    assert all(0 <= p <= 1 for p in found)
    assert found[values.index(max(values))] == max(found)


def test_impossible_choices_do_not_break_a_decision() -> None:
    for method in (sgl.token_length_normalized, sgl.greedy_token_selection):
        assert pick(method, [-math.inf, -1.0], [-5.0, -5.0]) == "B"
        assert pick(method, [-math.inf], [-math.inf]) == "A"
