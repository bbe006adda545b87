"""Running programs in the decorator form: text, variables, roles, options, arguments, batches, nesting."""

from __future__ import annotations

import copy
import enum
import inspect
import re
import sys
import time
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

import nbsglang as sgl
from nbsglang import current
from nbsglang.calls import Call, Capabilities, GenCall, Generated, RoleBegin, RoleEnd, ScoreCall, Text
from nbsglang.errors import ConstraintError, ProgramError, Unsupported, UsageError
from nbsglang.events import CallBegan, CallEnded, EventLog, StreamBegan, StreamEnded, StreamText, VariableSet
from nbsglang.lang.config import GlobalConfig
from nbsglang.lang.execute import derived_seed, split_reasoning
from nbsglang.lang.types import Regex


@sgl.function
def chat(s, question):
    s += sgl.system("Be terse.")
    s += sgl.user("Q: " + question)
    with s.assistant():
        s += "A: " + sgl.gen("answer", stop=".", max_tokens=20)
    return s["answer"].upper()


def one(expr: Any, script: Any = "text", **options: Any) -> Any:
    """Run a program that appends `expr` after a prompt; its state."""

    @sgl.function
    def program(s):
        s += "P: "
        s += expr

    return program.run(backend=script if hasattr(script, "submit") else sgl.MockBackend(script), **options)


def test_roles_text_messages_and_the_prompt_that_the_backend_sees() -> None:
    mock = sgl.MockBackend("Paris. And so on")
    state = chat.run("capital?", backend=mock)
    assert state.ret_value == "PARIS"
    assert state.messages() == [
        {"role": "system", "content": "Be terse."},
        {"role": "user", "content": "Q: capital?"},
        {"role": "assistant", "content": "A: Paris"},
    ]
    assert state.text() == (
        "<|im_start|>system\nBe terse.<|im_end|>\n<|im_start|>user\nQ: capital?<|im_end|>\n"
        "<|im_start|>assistant\nA: Paris<|im_end|>\n"
    )
    (call,) = mock.calls
    assert isinstance(call, GenCall)
    assert call.prompt == (
        RoleBegin("system"), Text("Be terse."), RoleEnd("system"),
        RoleBegin("user"), Text("Q: capital?"), RoleEnd("user"),
        RoleBegin("assistant"), Text("A: "),
    )  # fmt: skip
    assert call.sampling.stop == (".",)
    assert call.sampling.max_tokens == 20
    assert call.sampling.temperature == 1.0
    assert call.name == "answer"
    assert not call.stream


def test_generated_text_keeps_its_ids_and_literals_that_meet_are_one() -> None:
    @sgl.function
    def program(s):
        s += "a"
        s += "b" + sgl.gen("x")
        s += "c"
        s += ["d", sgl.gen("y"), "e"]
        s += sgl.select("z", choices=["f", "g"])
        s += "h"

    state = program.run(backend=sgl.MockBackend({"x": "X", "y": "YY", "z": "f"}))
    assert state._stream.prompt == (
        Text("ab"), Generated("X", (88,)), Text("cd"), Generated("YY", (89, 89)), Text("efh"),
    )  # fmt: skip
    assert state.text() == "abXcdYYefh"
    assert state.messages() == []


def test_names_are_stable_and_may_be_used_again() -> None:
    @sgl.function
    def program(s):
        s += sgl.gen()
        s += sgl.gen("x")
        first = s["x"]
        s += sgl.gen() + sgl.gen("x")
        return first, s["x"], s["_0"], s["_1"], "x" in s, "_2" in s

    state = program.run(backend=sgl.MockBackend(["a", "b", "c", "d"]))
    assert state.ret_value == ("b", "d", "a", "c", True, False)


def test_an_unknown_variable_says_which_there_are() -> None:
    state = one(sgl.gen("x"))
    with pytest.raises(UsageError, match=r"no variable 'y'.*'x'"):
        state["y"]
    with pytest.raises(KeyError):
        state.get_var("y")


def test_set_var_and_var_scope() -> None:
    @sgl.function
    def program(s):
        s["mine"] = 5
        with s.var_scope("scope"):
            s += "one "
            s += sgl.gen("x")
            with s.var_scope("inner"):
                s += " two"
        return s["mine"], s["scope"], s["inner"]

    assert program.run(backend=sgl.MockBackend("X")).ret_value == (5, "one X two", " two")


def test_what_cannot_be_appended_is_an_error_at_its_line() -> None:
    for wrong in (None, 5, object(), {"a": 1}, ["a", None]):
        with pytest.raises(UsageError, match="cannot be appended"):
            one(wrong)
    with pytest.raises(UsageError, match="not text"):
        f"{sgl.gen('x')}"
    with pytest.raises(UsageError, match="truth value"):
        bool(sgl.gen("x"))


def test_roles_that_do_not_fit_are_errors_with_the_line() -> None:
    @sgl.function
    def nested(s):
        s += sgl.user_begin()
        s += sgl.system("x")

    with pytest.raises(ProgramError, match=rf"{__file__}:\d+ in nested.*'system' begins inside the role 'user'"):
        nested.run(backend=sgl.MockBackend())
    with pytest.raises(ProgramError, match="open role is None"):
        one(sgl.user_end())


def test_begin_and_end_forms_and_states_own_roles() -> None:
    @sgl.function
    def program(s):
        s += sgl.system_begin() + "a" + sgl.system_end()
        s.user("b")
        s += sgl.assistant_begin()
        s += sgl.gen("x")
        s += sgl.assistant_end()
        s += sgl.user()
        with s.system():
            s += "d"

    roles = [(m["role"], m["content"]) for m in program.run(backend=sgl.MockBackend("c")).messages()]
    assert roles == [("system", "a"), ("user", "b"), ("assistant", "c"), ("user", ""), ("system", "d")]


def test_a_role_is_closed_when_its_block_raises() -> None:
    @sgl.function
    def program(s):
        try:
            with s.user():
                s += "half"
                raise ValueError
        except ValueError:
            pass
        s += sgl.assistant("whole")

    assert [m["content"] for m in program.run(backend=sgl.MockBackend()).messages()] == ["half", "whole"]


def test_defaults_of_run_reach_the_call_and_gen_wins() -> None:
    mock = sgl.MockBackend("x")
    options = {
        "max_new_tokens": 7, "n": 1, "stop": ["a", "b"], "stop_token_ids": [1], "stop_regex": "z+", "temperature": 0.5,
        "top_p": 0.9, "top_k": 3, "min_p": 0.1, "frequency_penalty": 0.2, "presence_penalty": 0.3, "ignore_eos": True,
        "return_logprob": True, "top_logprobs_num": 2, "logprob_start_len": 0,
    }  # fmt: skip
    one(sgl.gen("x") + sgl.gen("y", max_tokens=9, temperature=0, stop="q", return_logprob=False), mock, **options)
    first, second = mock.calls
    assert isinstance(first, GenCall)
    assert isinstance(second, GenCall)
    assert first.sampling.stop == ("a", "b")
    assert (first.sampling.max_tokens, first.sampling.temperature, first.sampling.top_k) == (7, 0.5, 3)
    assert first.sampling.stop_token_ids == (1,)
    assert first.sampling.stop_regex == ("z+",)
    assert first.logprobs is not None
    assert (first.logprobs.top, first.logprobs.prompt_start) == (2, 0)
    assert (second.sampling.max_tokens, second.sampling.temperature, second.sampling.stop) == (9, 0, ("q",))
    assert second.sampling.top_p == 0.9
    assert second.logprobs is None


def test_the_options_have_the_published_defaults() -> None:
    mock = sgl.MockBackend("x")
    one(sgl.gen("x"), mock)
    sampling = mock.calls[0].sampling  # type: ignore[union-attr]
    assert (sampling.max_tokens, sampling.n, sampling.stop, sampling.temperature) == (128, 1, (), 1.0)
    assert (sampling.top_p, sampling.top_k, sampling.min_p, sampling.ignore_eos, sampling.seed) == (
        1.0,
        -1,
        0.0,
        False,
        None,
    )
    names = list(inspect.signature(sgl.gen).parameters)
    assert names[:23] == [
        "name", "max_tokens", "min_tokens", "n", "stop", "stop_token_ids", "stop_regex", "temperature", "top_p",
        "top_k", "min_p", "frequency_penalty", "presence_penalty", "ignore_eos", "return_logprob", "logprob_start_len",
        "top_logprobs_num", "return_text_in_logprobs", "dtype", "choices", "choices_method", "regex", "json_schema",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1}, {"max_tokens": -1}, {"n": 0}, {"top_p": 0}, {"top_p": 1.5}, {"stop": ""}, {"stop": [1]},
        {"min_tokens": 9, "max_tokens": 3}, {"regex": "("}, {"json_schema": "{"}, {"regex": "a", "choices": ["a"]},
        {"type": int, "dtype": int}, {"choices": []}, {"choices": "yes"}, {"choices": ["a", ""]}, {"choices": [1]},
        {"name": 5}, {"name": ""}, {"stop_regex": "("}, {"dtype": list}, {"type": 5},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_options_of_gen_are_usage_errors_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        sgl.gen(**{"name": "x", **wrong})


def test_wrong_options_of_run() -> None:
    for wrong in ({"timeout": 0}, {"temperature": -2}, {"max_new_tokens": "many"}):
        with pytest.raises(UsageError):
            chat.run("q", backend=sgl.MockBackend(), **wrong)
    with pytest.raises(UsageError, match="question"):
        chat.run(backend=sgl.MockBackend())
    with pytest.raises(UsageError, match="max_tokens"):
        chat.run("q", backend=sgl.MockBackend(), max_tokens=3)
    with pytest.raises(UsageError, match="no backend"):
        chat.run("q")
    with pytest.raises(UsageError, match="first parameter"):
        sgl.function(lambda: None)


def test_min_tokens_above_the_runs_maximum_is_an_error() -> None:
    with pytest.raises(ProgramError, match="min_tokens 50 is above max_tokens 10"):
        one(sgl.gen("x", min_tokens=50), max_new_tokens=10)


def test_the_default_backend() -> None:
    mock = sgl.MockBackend("yes")
    sgl.set_default_backend(mock)
    assert chat.run("q").ret_value == "YES"
    assert sgl.flush_cache() is True
    assert sgl.get_server_info()["calls"] == 1
    assert sgl.global_config.default_backend is mock
    mock.close()
    with pytest.raises(UsageError, match="no backend"):
        chat.run("q")


def test_an_own_parameter_wins_over_an_option_of_the_same_name() -> None:
    @sgl.function
    def program(s, question, n, temperature=3):
        s += question + sgl.gen("x")
        return n, temperature

    mock = sgl.MockBackend("x")
    assert program.run("q", n=5, backend=mock).ret_value == (5, 3)
    assert program.run(question="q", n=5, temperature="hot", backend=mock).ret_value == (5, "hot")
    (state,) = program.run_batch([{"question": "q", "n": 4}], backend=mock, temperature=0.25)
    assert state.ret_value == (4, 3)
    assert [call.sampling.n for call in mock.calls] == [1, 1, 1]  # type: ignore[union-attr]
    assert mock.calls[2].sampling.temperature == 0.25  # type: ignore[union-attr]


def test_bind_keeps_everything_and_changes_nothing() -> None:
    def body(s, a, b, c=0):
        return a, b, c

    with pytest.warns(UserWarning, match="num_api_spec_tokens has no effect") as warned:
        program = sgl.function(body, num_api_spec_tokens=7)
    assert [warning.filename for warning in warned] == [__file__]
    given = {"a": 1}
    bound = program.bind(**given)
    again = bound.bind(c=9)
    mock = sgl.MockBackend()
    assert bound.run(2, backend=mock).ret_value == (1, 2, 0)
    assert again.run(b=2, backend=mock).ret_value == (1, 2, 9)
    assert again.run(b=2, a=5, backend=mock).ret_value == (5, 2, 9)
    item = {"b": 3}
    kept = copy.deepcopy(item)
    again.run_batch([item], backend=mock)
    assert item == kept
    assert given == {"a": 1}
    assert bound.num_api_spec_tokens == again.num_api_spec_tokens == 7
    assert len(warned) == 1
    assert program.bound == {}
    with pytest.raises(UsageError, match="no parameter d"):
        program.bind(d=1)


def test_help_shows_the_options_with_their_defaults() -> None:
    sampling = (
        "max_new_tokens=128, n=1, stop=None, stop_token_ids=None, stop_regex=None, temperature=1.0, top_p=1.0, "
        "top_k=-1, min_p=0.0, frequency_penalty=0.0, presence_penalty=0.0, ignore_eos=False, return_logprob=None, "
        "logprob_start_len=None, top_logprobs_num=None, return_text_in_logprobs=None"
    )
    ours = "seed=None, timeout=None, log=None"
    any_kind = "'Any'"
    assert str(inspect.signature(chat.run)) == (
        f"(*args: {any_kind}, {sampling}, stream=False, backend=None, {ours}, **kwargs: {any_kind}) -> 'ProgramState'"
    )
    assert f"({sampling}" in str(inspect.signature(chat.arun)).replace(f"*args: {any_kind}, ", "")
    assert "stream=" not in str(inspect.signature(chat.arun))
    batch = str(inspect.signature(chat.run_batch))
    assert f"*, {sampling}, backend=None, {ours}, num_threads='auto', progress_bar=False" in batch


def test_n_texts_in_a_program_are_a_list_and_the_first_goes_on() -> None:
    @sgl.function
    def program(s):
        s += "P: " + sgl.gen("x")
        texts = s["x"]
        s += "|" + sgl.gen("y", n=1)
        return texts, s["y"], s.text()

    mock = sgl.MockBackend(["a", "b", "c"])
    assert program.run(backend=mock, n=2).ret_value == (["a", "b"], "c", "P: a|c")
    assert mock.calls[1].prompt == (Text("P: "), Generated("a", (97,)), Text("|"))


def test_n_texts_are_a_list_and_the_first_goes_on() -> None:
    state = one(sgl.gen("x", n=3) + "!", ["a", "b", "c"])
    assert state["x"] == ["a", "b", "c"]
    assert state.text() == "P: a!"
    assert [meta["completion_tokens"] for meta in state.get_meta_info("x")] == [1, 1, 1]


def test_meta_info_and_stats() -> None:
    state = one(sgl.gen("x", return_logprob=True, return_text_in_logprobs=True, stop="d"), "abcdef")
    meta = state.get_meta_info("x")
    assert meta["finish_reason"] == {"type": "stop", "matched": "d"}
    assert (meta["prompt_tokens"], meta["completion_tokens"], meta["cached_tokens"]) == (3, 3, 0)
    assert meta["output_token_logprobs"] == [(-1.0, 97, "a"), (-1.0, 98, "b"), (-1.0, 99, "c")]
    stats = state.stats
    assert set(stats) == {
        "calls", "prompt_tokens", "cached_tokens", "computed_tokens", "generated_tokens", "jumped_tokens", "hit_rate",
        "seconds", "first_token_seconds",
    }  # fmt: skip
    assert (stats["calls"], stats["prompt_tokens"], stats["generated_tokens"], stats["hit_rate"]) == (1, 3, 3, 0)
    assert stats["seconds"] == state.stats["seconds"]  # it is over


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int


@pytest.mark.parametrize(
    ("kind", "text", "value", "constraint"),
    [
        (int, "-12", -12, "regex"), (float, "2.5", 2.5, "regex"), (bool, "False", False, "regex"),
        (str, "a b", "a b", None),
        (date, "2024-02-29", date(2024, 2, 29), "regex"), (Annotated[str, Regex("[ab]+")], "abba", "abba", "regex"),
        (Annotated[int, Regex("[0-9]{2}")], "42", 42, "regex"), (Point, '{"x": 1, "y": 2}', Point(x=1, y=2), "schema"),
        (list[int], "[1, 2]", [1, 2], "schema"), (Literal["yes", "no"], "no", "no", "select"),
        (Literal[1, 2], "2", 2, "select"),
        (Colour, "blue", Colour.BLUE, "select"), ((3, 4), "4", 4, "select"),
    ],
    ids=str,
)  # fmt: skip
def test_a_type_constrains_and_reads_back(kind: Any, text: str, value: object, constraint: str | None) -> None:
    mock = sgl.MockBackend(text)
    state = one(sgl.gen("x", type=kind), mock)
    assert state["x"] == value
    assert type(state["x"]) is type(value)
    assert state.text() == "P: " + text
    (call,) = mock.calls
    if constraint == "select":
        assert isinstance(call, ScoreCall)
    else:
        assert isinstance(call, GenCall)
        assert (call.constraint.kind if call.constraint else None) == constraint


def test_dtype_and_its_short_forms() -> None:
    assert one(sgl.gen("x", dtype="int"), "7")["x"] == 7
    assert one(sgl.gen_int("x"), "7")["x"] == 7
    state = one(sgl.gen_string("x"), '"a b"')
    assert state["x"] == "a b"
    assert state.text() == 'P: "a b"'


def test_a_text_that_is_no_value_of_its_type_is_an_error() -> None:
    with pytest.raises(ProgramError, match=r"gen 'x' failed.*day is out of range"):
        one(sgl.gen("x", type=date), "2023-02-30")
    with pytest.raises(ProgramError, match="ValidationError"):
        one(sgl.gen("x", type=Point), '{"x": 1}')


def test_constraints_reach_the_call() -> None:
    mock = sgl.MockBackend({"r": "ab", "s": "{}", "g": "any"})
    one(
        sgl.gen("r", regex="[ab]+") + sgl.gen("s", json_schema={"type": "object"}) + sgl.gen("g", grammar="start: /x/"),
        mock,
    )
    kinds = [(call.constraint.kind, call.constraint.value) for call in mock.calls]  # type: ignore[union-attr]
    assert kinds == [("regex", "[ab]+"), ("schema", '{"type": "object"}'), ("grammar", "start: /x/")]
    with pytest.raises(ConstraintError):
        sgl.gen("x", json_schema=5)  # type: ignore[arg-type]


def test_what_a_backend_cannot_do_is_an_error_and_no_call() -> None:
    for expr, what in (
        (sgl.gen("x", regex="a"), "regex"),
        (sgl.gen("x", seed=1), "seed"),
        (sgl.gen("x", n=2), "n above 1"),
        (sgl.gen("x", return_logprob=True), "log prob"),
        (sgl.select("x", ["a"]), "score"),
    ):
        mock = sgl.MockBackend("a", capabilities=Capabilities())
        with pytest.raises(ProgramError, match=what) as caught:
            one(expr, mock)
        assert isinstance(caught.value.__cause__, Unsupported)
        assert mock.calls == []
    mock = sgl.MockBackend("a", capabilities=Capabilities())
    assert one(sgl.gen("x", temperature=0), mock, seed=3)["x"] == "a"  # greedy needs no seed
    with pytest.raises(ProgramError, match="seed"):
        one(sgl.gen("x"), mock, seed=3)


def test_separate_reasoning() -> None:
    text = "<think>\nhm, 2+2\n</think>\n\n4"
    state = one(sgl.separate_reasoning(sgl.gen("x"), model_type="deepseek-r1") + "!", text)
    assert (state["x"], state["x_reasoning_content"], state.text()) == ("4", "hm, 2+2", "P: 4!")
    plain = one(sgl.separate_reasoning("A: " + sgl.gen("x")), "4")
    assert (plain["x"], plain["x_reasoning_content"], plain.text()) == ("4", "", "P: A: 4")
    assert plain._stream.prompt[-1] == Generated("4", (52,))
    assert split_reasoning("no opening</think>4") == ("no opening", "4")
    assert split_reasoning("<think>cut off") == ("cut off", "")


def test_seeds_follow_the_place_and_not_the_timing() -> None:
    @sgl.function
    def program(s):
        s += "a" + sgl.gen("x") + sgl.gen("y", seed=5)
        forks = s.fork(2)
        forks += sgl.gen("z")
        forks.join()

    def seeds(delay: float, **options: Any) -> dict[str, list[int]]:
        mock = sgl.MockBackend(lambda call: "t" * (1 + len(call.name)), delay=delay)
        program.run(backend=mock, **options)
        found: dict[str, list[int]] = {}
        for call in mock.calls:
            if call.name:
                found.setdefault(call.name, []).append(call.sampling.seed)  # type: ignore[union-attr, arg-type]
        return {name: sorted(values) if values[0] is not None else values for name, values in found.items()}

    first = seeds(0, seed=1)
    assert first == seeds(0.01, seed=1)
    assert first != seeds(0, seed=2)
    assert first["y"] == [5]
    assert len({*first["x"], *first["z"]}) == 3
    assert seeds(0)["x"] == [None]
    assert 0 <= derived_seed(1, (), 0) < 2**48


def test_a_program_inside_another_joins_its_hub() -> None:
    @sgl.function
    def inner(s, word):
        s += word + sgl.gen("x")
        return s["x"] + "!"

    @sgl.function
    def outer(s):
        s += "outer "
        state = inner.run("in ")  # has its own state, and the outer backend
        part = inner(s, "part ")  # runs on s
        batch = inner.run_batch([{"word": str(i)} for i in range(5)])
        return state.text(), part, [b.ret_value for b in batch], s.text()

    mock = sgl.MockBackend("X", delay=0.01)
    expected = ("in X", "X!", ["X!"] * 5, "outer part X")
    assert outer.run(backend=mock).ret_value == expected
    assert [s.ret_value for s in outer.run_batch([()] * 4, backend=mock)] == [expected] * 4
    assert inner("call ", backend=mock).text() == "call X"


def test_events_tell_what_happened() -> None:
    log = EventLog()

    @sgl.function
    def program(s):
        s += "hello "
        s += sgl.gen("x")
        s.fork(2).join()

    program.run(backend=sgl.MockBackend("X"), log=log)
    events = log.since()
    bodies = [event.body for event in events]
    assert len({event.source for event in events}) == 1
    began = [b for b in bodies if isinstance(b, StreamBegan)]
    assert [(b.parent == "", b.branch) for b in began] == [(True, 0), (False, 0), (False, 1)]
    assert began[0].label == "program"
    assert all(b.parent == began[0].stream for b in began[1:])
    assert {b.stream: b.how for b in bodies if isinstance(b, StreamEnded)} == {
        began[0].stream: "done", began[1].stream: "joined", began[2].stream: "joined",
    }  # fmt: skip
    assert [b.text for b in bodies if isinstance(b, StreamText)] == ["hello "]
    assert [(b.name, b.text) for b in bodies if isinstance(b, VariableSet)] == [("x", "X")]
    calls = [b for b in bodies if isinstance(b, CallBegan)]
    assert [(c.kind, c.name) for c in calls] == [("gen", "x")]  # nothing new to share at the fork
    assert [b.call_id for b in bodies if isinstance(b, CallEnded)] == [c.call_id for c in calls]


def test_nothing_can_be_appended_after_the_end() -> None:
    state = one(sgl.gen("x"))
    with pytest.raises(UsageError, match="run is over"):
        state += "more"
    with pytest.raises(UsageError, match="run is over"):
        state.fork(2)
    assert state.text() == "P: text"


def test_an_empty_program_and_an_empty_prompt() -> None:
    @sgl.function
    def nothing(s):
        s += ""
        s += []

    state = nothing.run(backend=sgl.MockBackend())
    assert (state.text(), state.messages(), state.ret_value, state.error()) == ("", [], None, None)

    @sgl.function
    def bare(s):
        s += sgl.gen("x")

    mock = sgl.MockBackend("X")
    assert bare.run(backend=mock)["x"] == "X"
    assert mock.calls[0].prompt == ()


def test_verbosity_prints_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    sgl.global_config.verbosity = 2
    try:
        one(sgl.gen("x"))
    finally:
        sgl.global_config.verbosity = 0
    assert capsys.readouterr().out == "P: text\n"


def test_the_settings_are_names_for_what_is_kept_in_current() -> None:
    config = GlobalConfig()
    current.set_verbosity(1)
    try:
        assert config.verbosity == sgl.global_config.verbosity == 1
    finally:
        config.verbosity = 0
    assert current.verbosity() == 0
    config.enable_precache_with_tracing = config.enable_parallel_encoding = False  # accepted, and without effect
    assert config.enable_precache_with_tracing
    assert config.enable_parallel_encoding
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        config.other = 1  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------ batches


@sgl.function
def ask(s, q):
    s += q + " "
    s += sgl.gen("a")
    s += s["a"] + " "
    s += sgl.gen("b")
    return q


def test_a_batch_has_its_results_in_order_and_takes_dicts_and_tuples() -> None:
    def script(call: Call) -> str:
        return sgl.MockBackend().render(call.prompt)[0]

    states = ask.run_batch([{"q": "x"}, ("y",), ["z"]], backend=sgl.MockBackend(script, delay=0.01))
    assert [(s.ret_value, s["b"]) for s in states] == [("x", "x"), ("y", "y"), ("z", "z")]
    assert ask.run_batch([], backend=sgl.MockBackend()) == []
    for wrong in (["abc"], [5], [{"p": 1}], [()]):
        with pytest.raises(UsageError):
            ask.run_batch(wrong, backend=sgl.MockBackend())
    for option in ({"num_threads": 0}, {"on_error": "ignore"}, {"stream": True}, {"q": "x"}):
        with pytest.raises(UsageError):
            ask.run_batch([("x",)], backend=sgl.MockBackend(), **option)


def test_a_batch_runs_side_by_side_unless_num_threads_says_otherwise() -> None:
    mock = sgl.MockBackend("t", delay=0.1)
    began = time.monotonic()
    ask.run_batch([(str(i),) for i in range(40)], backend=mock)
    assert time.monotonic() - began < 2  # one after the other: 8
    began = time.monotonic()
    ask.run_batch([(str(i),) for i in range(3)], backend=mock, num_threads=1)
    assert time.monotonic() - began > 0.6


def failing(call: Call) -> str:
    if "bad" in sgl.MockBackend().render(call.prompt):
        raise RuntimeError("no answer")
    return "t"


def test_one_failing_item_loses_nothing() -> None:
    items = [("ok1",), ("bad1",), ("ok2",), ("bad2",)]
    with pytest.raises(ProgramError, match="no answer") as caught:
        ask.run_batch(items, backend=sgl.MockBackend(failing))
    notes = "\n".join(caught.value.__notes__)
    assert "item 1 of the batch; 2 of 4" in notes
    assert "item 3" in notes
    states = ask.run_batch(items, backend=sgl.MockBackend(failing), on_error="return")
    assert [s.error() is None for s in states] == [True, False, True, False]
    assert [s.ret_value for s in states] == ["ok1", None, "ok2", None]
    with pytest.raises(ProgramError, match="no answer"):
        states[1].text()


def test_a_python_error_in_an_item() -> None:
    @sgl.function
    def program(s, x):
        s += sgl.gen("a")
        return 1 / x

    with pytest.raises(ZeroDivisionError):
        program.run(0, backend=sgl.MockBackend())
    states = program.run_batch([(1,), (0,)], backend=sgl.MockBackend(), on_error="return")
    assert states[0].ret_value == 1
    assert isinstance(states[1].error(), ZeroDivisionError)


def test_generator_style_gives_states_as_they_end() -> None:
    states = ask.run_batch(
        [(str(i),) for i in range(5)], backend=sgl.MockBackend("t", delay=0.01), generator_style=True
    )
    assert sorted(s.ret_value for s in states) == ["0", "1", "2", "3", "4"]
    with pytest.raises(ProgramError, match="no answer"):
        list(ask.run_batch([("bad",), ("ok",)], backend=sgl.MockBackend(failing), generator_style=True))
    mock = sgl.MockBackend("t", delay=0.2)
    started = iter(ask.run_batch([(str(i),) for i in range(5)], backend=mock, generator_style=True, num_threads=1))
    next(started)
    started.close()
    assert len(mock.calls) <= 4


def test_the_progress_bar_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    ask.run_batch([("x",)] * 3, backend=sgl.MockBackend(), progress_bar=True)
    assert re.fullmatch(r"ask: 3/3 · \d+/s · 0\.\d s\n", capsys.readouterr().err)


def test_two_thousand_programs() -> None:
    """Three times the figure: 10,000 programs in 5 s and 200 MB."""
    import psutil

    mock = sgl.MockBackend("ab")
    before = psutil.Process().memory_info().rss
    began = time.monotonic()
    states = ask.run_batch([(str(i),) for i in range(2_000)], backend=mock, log=EventLog(1000))
    seconds = time.monotonic() - began
    grown = (psutil.Process().memory_info().rss - before) / 1e6
    assert [s.ret_value for s in states] == [str(i) for i in range(2_000)]
    assert mock.stats()["calls"] == 4_000
    assert seconds < 3
    assert grown < 120


def test_the_language_leaves_torch_and_numpy_out() -> None:
    import subprocess

    names = "s.MockBackend, s.function, s.Session, s.gen"
    code = f"import nbsglang as s, sys; {names}; print({{'torch', 'numpy'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_public_name_but_the_engine_is_there() -> None:
    for name in dir(sgl):
        if name not in ("Engine", "Runtime"):
            assert getattr(sgl, name) is not None
