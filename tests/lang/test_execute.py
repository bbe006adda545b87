"""The stream's generator without any thread: ops in, calls out, replies in. And prompts as values."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbsglang as sgl
from nbsglang.calls import (
    Chunk,
    Completion,
    GenCall,
    Generated,
    Prompt,
    Reply,
    RoleBegin,
    RoleEnd,
    ScoreCall,
    Text,
    Usage,
)
from nbsglang.errors import UsageError
from nbsglang.events import EventLog
from nbsglang.lang import ops, prompts
from nbsglang.lang.driver import Driver
from nbsglang.lang.execute import Ask, Hint, Inherited, execute
from nbsglang.lang.options import run_options
from nbsglang.lang.run import Run, Tally, cancelled
from nbsglang.lang.slots import Signal, Slot, Where
from nbsglang.lang.stream import Stream


def stream(**options: Any) -> Stream:
    run = Run(Driver(), sgl.MockBackend(), EventLog(), run_options(options), streaming=True)
    made = Stream("s1", run)
    made.execution = execute(made)
    assert next(made.execution) is Ask.NEXT_OP
    return made


def op(expr: Any, *slots: Slot) -> ops.Op:
    (part,) = expr.parts if isinstance(expr, ops.Expr) else (expr,)
    return ops.Op(part, slots, Where("file.py", 1, "f"))


def send(to: Stream, value: object) -> Any:
    assert to.execution is not None
    return to.execution.send(value)


def test_a_gen_asks_for_a_call_takes_chunks_and_fills_its_slot() -> None:
    s, slot = stream(), Slot("x", Signal())
    assert send(s, op(ops.Literal("p"))) is Ask.NEXT_OP
    call = send(s, op(sgl.gen("x"), slot))
    assert isinstance(call, GenCall)
    assert (call.prompt, call.stream, call.stream_id, call.call_id) == ((Text("p"),), True, "s1", "s1.1")
    assert send(s, Chunk(call.call_id, "ab")) is Ask.MORE
    assert (s.shown, slot.chunks, slot.done) == (((Text("p"),), "ab"), ["ab"], False)
    assert send(s, Chunk(call.call_id, "other text of n", index=1)) is Ask.MORE
    assert slot.chunks == ["ab"]
    assert send(s, Reply(call.call_id, (Completion("abc", (1, 2), "c"),))) is Ask.NEXT_OP
    assert s.shown == ((Text("p"), Generated("ab", (1, 2)), Text("c")), "")  # ids cover all but the tail
    assert slot.read() == "abc"


def test_a_fork_hints_and_gives_its_prompt_and_a_start_waits_for_it() -> None:
    parent, child, point = stream(), stream(), Slot("", Signal())
    assert send(child, op(ops.Start(point))) is point
    send(parent, op(ops.Literal("p")))
    want = send(parent, op(ops.Fork(2), point))
    assert isinstance(want, Hint)
    assert want.call.sampling.max_tokens == 0
    assert not point.done
    assert send(parent, None) is Ask.NEXT_OP
    assert send(child, None) is Ask.NEXT_OP
    assert child.prompt == parent.prompt
    failed = stream()
    broken = Slot("", Signal())
    broken.fail(cancelled("why"))
    send(failed, op(ops.Start(broken)))
    with pytest.raises(Inherited, match="why"):
        send(failed, None)


def test_a_select_asks_for_scores() -> None:
    s = stream()
    call = send(s, op(sgl.select("x", ["a", "b"]), Slot("x", Signal())))
    assert isinstance(call, ScoreCall)
    assert call.choices == ("a", "b")


def test_a_run_has_the_tokens_of_all_its_calls() -> None:
    tally = Tally()
    tally.add(Usage(10, 4, 6, 5, 2, 0.5), False, 1.0)
    tally.add(Usage(10, 6, 4, 0, 0, 0.1), True, 0.0)  # a hint: no call, and its first token is nobody's
    tally.add(Usage(20, 10, 10, 5, 0, 0.25), False, 1.1)
    assert (tally.calls, tally.prompt, tally.cached, tally.computed) == (2, 40, 20, 20)
    assert (tally.generated, tally.jumped, tally.first_token_s) == (10, 2, pytest.approx(1.35))


segments = st.one_of(
    st.builds(Text, st.text("ab", max_size=3), st.booleans()),
    st.builds(Generated, st.text("cd", min_size=1, max_size=3), st.just((1,))),
    st.sampled_from([RoleBegin("user"), RoleEnd("user")]),
)
rows = st.lists(segments, max_size=8).map(tuple)


@given(rows, rows)
def test_appending_keeps_every_text_and_merges_literals_that_meet(first: Prompt, second: Prompt) -> None:
    prompt = prompts.extended(prompts.extended((), first), second)
    assert prompts.plain_text(prompt) == prompts.plain_text(first + second)
    assert prompt == prompts.extended((), first + second)
    for a, b in itertools.pairwise(prompt):
        assert not (isinstance(a, Text) and isinstance(b, Text) and a.special == b.special)
    assert [s for s in prompt if not isinstance(s, Text)] == [s for s in first + second if not isinstance(s, Text)]


@given(rows, rows)
def test_what_came_since_a_mark_puts_the_prompt_together_again(first: Prompt, second: Prompt) -> None:
    base = prompts.extended((), first)
    whole = prompts.extended(base, second)
    assert prompts.extended(base, prompts.since(whole, prompts.mark(base))) == whole


def test_messages_leave_out_what_is_open_or_outside() -> None:
    prompt: Prompt = (
        Text("outside"), RoleBegin("user"), Text("a"), Generated("b"), RoleEnd("user"), Text("between"),
        RoleBegin("assistant"), Text("open"),
    )  # fmt: skip
    assert prompts.messages_of(prompt) == [{"role": "user", "content": "ab"}]
    assert prompts.open_role(prompt) == "assistant"
    assert prompts.open_role(prompt[:6]) is None


def test_expressions_are_values_that_join() -> None:
    a = sgl.gen("a")
    both = "x" + a + "y" + [a, "z"]
    assert [type(p).__name__ for p in both.parts] == ["Literal", "Gen", "Literal", "Gen", "Literal"]
    assert len(a.parts) == 1
    assert repr(both) == "<'x' + gen 'a' + 'y' + gen 'a' + 'z'>"
    with pytest.raises(UsageError):
        a + 5
    with pytest.raises(AttributeError):
        a.parts = ()  # type: ignore[misc]
