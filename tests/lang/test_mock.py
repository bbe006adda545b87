"""The mock backend: its script, its arithmetic of tokens, its delay, and that it keeps the contract."""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbsglang as sgl
from nbsglang.calls import (
    Backend,
    Capabilities,
    Chunk,
    Constraint,
    Failure,
    GenCall,
    LogprobSpec,
    Media,
    Reply,
    RoleBegin,
    RoleEnd,
    SamplingParams,
    ScoreCall,
    Text,
)
from nbsglang.errors import BackendClosed, BackendError, Cancelled, Unsupported, UsageError
from nbsglang.lang.chat_template import ChatTemplate, get_chat_template

PROMPT = (RoleBegin("user"), Text("hi"), RoleEnd("user"))


def answers(backend: Backend, call: Any, wait: float = 2.0) -> list[Any]:
    """What comes for a call, up to its end."""
    inbox: SimpleQueue[Any] = SimpleQueue()
    backend.submit(call, inbox)
    found = [inbox.get(timeout=wait)]
    while isinstance(found[-1], Chunk):
        found.append(inbox.get(timeout=wait))
    with pytest.raises(Empty):
        inbox.get_nowait()
    return found


def text_of(backend: Backend, **sampling: Any) -> Any:
    (reply,) = answers(backend, GenCall("c", PROMPT, SamplingParams(**sampling)))
    assert isinstance(reply, Reply), reply
    return reply.completions[0]


def test_it_is_a_backend_and_renders_chatml() -> None:
    mock: Backend = sgl.MockBackend()
    assert mock.render(PROMPT) == "<|im_start|>user\nhi<|im_end|>\n"
    assert sgl.MockBackend(render=lambda prompt: "fixed").render(PROMPT) == "fixed"
    with pytest.raises(Unsupported, match="no images"):
        mock.render((Media("image", "0" * 64, b""),))


def test_a_chat_template_is_a_name_and_renders_nothing() -> None:
    assert get_chat_template("default") == get_chat_template("chatml") == ChatTemplate("chatml")
    assert not hasattr(ChatTemplate, "render")  # that is the backend's
    with pytest.raises(UsageError, match="no chat template"):
        get_chat_template("llama-2-chat")


def test_the_kinds_of_scripts() -> None:
    assert text_of(sgl.MockBackend()).text == "mock"
    assert text_of(sgl.MockBackend("always")).text == "always"
    listed = sgl.MockBackend(["one", "two", ValueError("three")])
    assert [text_of(listed).text for _ in range(2)] == ["one", "two"]
    (failed,) = answers(listed, GenCall("c", PROMPT))
    assert isinstance(failed, Failure)
    assert isinstance(failed.error, ValueError)
    (over,) = answers(listed, GenCall("c", PROMPT))
    assert "script is over" in str(over.error)
    table = sgl.MockBackend({"x": "by name", r"user\nh.": "by pattern"})
    assert answers(table, GenCall("c", PROMPT, name="x"))[0].completions[0].text == "by name"
    assert answers(table, GenCall("c", PROMPT, name="y"))[0].completions[0].text == "by pattern"
    assert "nothing for 'y'" in str(answers(table, GenCall("c", (), name="y"))[0].error)
    assert text_of(sgl.MockBackend(lambda call: call.call_id)).text == "c"
    assert "must give text" in str(answers(sgl.MockBackend(lambda call: 5), GenCall("c", PROMPT))[0].error)  # type: ignore[arg-type, return-value]


def test_stops_lengths_and_their_reasons() -> None:
    mock = sgl.MockBackend("one two three")
    cases: list[tuple[dict[str, Any], tuple[str, str, Any]]] = [
        ({}, ("one two three", "stop", None)),
        ({"max_tokens": 5}, ("one t", "length", None)),
        ({"max_tokens": 13}, ("one two three", "stop", None)),
        ({"stop": ("three", "two")}, ("one ", "stop", "two")),
        ({"stop": ("two",), "max_tokens": 4}, ("one ", "stop", "two")),
        ({"stop": ("two",), "max_tokens": 3}, ("one", "length", None)),
        ({"stop": ("t",), "min_tokens": 5}, ("one two ", "stop", "t")),
        ({"stop_regex": ("t[a-z]+",)}, ("one ", "stop", "two")),
        ({"stop_token_ids": (ord("w"),)}, ("one t", "stop", ord("w"))),
        ({"max_tokens": 0}, ("", "prefix", None)),
    ]
    for sampling, expected in cases:
        done = text_of(mock, **sampling)
        assert (done.text, done.finish_reason, done.matched) == expected
        assert done.ids == tuple(map(ord, done.text))


@given(st.text(max_size=30), st.integers(1, 9), st.integers(1, 40))
def test_chunks_make_up_the_text(text: str, chunk: int, max_tokens: int) -> None:
    call = GenCall("c", PROMPT, SamplingParams(max_tokens=max_tokens), stream=True)
    *chunks, reply = answers(sgl.MockBackend(text, chunk=chunk), call)
    assert "".join(c.text for c in chunks) == reply.completions[0].text == text[:max_tokens]


def test_constraints_must_be_met_by_the_script() -> None:
    cases = [
        (Constraint("regex", "[0-9]+"), "12", "1a"),
        (Constraint("choices", ("a", "b")), "a", "c"),
        (Constraint("schema", "{}"), "[1]", "[1"),
    ]
    for constraint, good, bad in cases:
        call = GenCall("c", PROMPT, constraint=constraint)
        assert isinstance(answers(sgl.MockBackend(good), call)[0], Reply)
        (failed,) = answers(sgl.MockBackend(bad), call)
        assert "does not match" in str(failed.error)


def test_scores() -> None:
    call = ScoreCall("c", PROMPT, ("yes", "no"), unconditional=True)
    (reply,) = answers(sgl.MockBackend("no"), call)
    assert [[t.logprob for t in s.tokens] for s in reply.scores] == [[-2.0] * 3, [-0.1] * 2]
    assert [[t.logprob for t in s.unconditional] for s in reply.scores] == [[-1.0] * 3, [-1.0] * 2]
    given = sgl.MockBackend(scores=lambda call: {choice: -float(len(choice)) for choice in call.choices})
    assert answers(given, call)[0].scores[0].tokens[0].logprob == -3.0
    (failed,) = answers(sgl.MockBackend("maybe"), call)
    assert "none of the choices" in str(failed.error)
    with pytest.raises(Unsupported):
        answers(sgl.MockBackend(capabilities=Capabilities()), call)


def test_logprobs_and_usage() -> None:
    call = GenCall("c", PROMPT, SamplingParams(n=2), logprobs=LogprobSpec(top=1))
    (reply,) = answers(sgl.MockBackend(["ab", "c"]), call)
    assert [t.text for t in reply.completions[0].logprobs] == ["a", "b"]
    assert len(reply.completions[0].top_logprobs[0]) == 1
    assert (reply.usage.prompt_tokens, reply.usage.generated_tokens) == (30, 3)
    assert reply.usage.cached_tokens + reply.usage.computed_tokens == reply.usage.prompt_tokens


def test_a_delay_a_cancel_and_a_close() -> None:
    mock = sgl.MockBackend("text", delay=0.05)
    began = time.monotonic()
    assert isinstance(answers(mock, GenCall("a", PROMPT))[0], Reply)
    assert 0.04 < time.monotonic() - began < 2
    slow = sgl.MockBackend("text", delay=30)
    inbox: SimpleQueue[Any] = SimpleQueue()
    slow.submit(GenCall("b", PROMPT), inbox)
    slow.submit(GenCall("c", PROMPT), inbox)
    slow.cancel("b")
    slow.cancel("b")
    slow.cancel("unknown")
    first = inbox.get(timeout=1)
    assert (first.call_id, type(first.error), slow.cancelled) == ("b", Cancelled, ["b"])
    slow.close()
    slow.close()
    last = inbox.get(timeout=1)
    assert (last.call_id, type(last.error)) == ("c", BackendClosed)
    with pytest.raises(BackendClosed):
        slow.submit(GenCall("d", PROMPT), inbox)
    assert inbox.empty()


def test_what_it_remembers_is_read_under_its_lock() -> None:
    mock = sgl.MockBackend("text", delay=30)
    mock.submit(GenCall("a", PROMPT), SimpleQueue())
    mock.cancel("a")
    read: list[object] = []
    reader = threading.Thread(target=lambda: read.extend((mock.calls, mock.cancelled, mock.stats())))
    with mock._wake:
        reader.start()
        reader.join(0.05)
        assert read == []
    reader.join(2)
    assert read == [[GenCall("a", PROMPT)], ["a"], {"calls": 1, "prompt_tokens": 30, "generated_tokens": 4}]


def test_its_thread_ends_when_nothing_waits() -> None:
    mock = sgl.MockBackend("text", delay=0.02)
    for _ in range(3):
        answers(mock, GenCall("a", PROMPT))
        until = time.monotonic() + 1
        while any(t.name == "nbsglang-mock" for t in threading.enumerate()):
            assert time.monotonic() < until
            time.sleep(0.005)


def test_wrong_options_and_backend_error_is_a_nbsglang_error() -> None:
    for wrong in ({"chunk": 0}, {"delay": -1}):
        with pytest.raises(UsageError):
            sgl.MockBackend("x", **wrong)  # type: ignore[arg-type]
    assert issubclass(BackendError, sgl.NbsglangError)


def test_a_session_runs_with_its_backend_and_log() -> None:
    from nbsglang.events import EventLog
    from nbsglang.session import Session

    @sgl.function
    def program(s, q):
        s += q + sgl.gen("x")

    log, mock = EventLog(), sgl.MockBackend("t")
    with Session(mock, log) as session:
        assert session.run(program, "q").text() == "qt"
        assert [s.text() for s in session.run_batch(program, [("a",), ("b",)])] == ["at", "bt"]
        assert session.run(program, "q", backend=sgl.MockBackend("other")).text() == "qother"
    assert log.seq > 0
    assert isinstance(answers(mock, GenCall("a", PROMPT))[0], Reply)  # not the session's to close
