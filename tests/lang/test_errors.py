"""Failing calls: where the error arrives, what it names, that it arrives once, and that nothing hangs."""

from __future__ import annotations

import threading
import traceback
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang.calls import Call, Capabilities, GenCall, Inbox, Prompt, Reply
from nbsglang.errors import BackendClosed, BackendError, Cancelled, OutOfMemory, ProgramError, UsageError

BOOM = RuntimeError("boom")


def run(body: Any, script: Any = BOOM, **options: Any) -> Any:
    backend = script if hasattr(script, "submit") else sgl.MockBackend(script)
    return sgl.function(body).run(backend=backend, **options)


def line_of(body: Any, offset: int) -> str:
    return f"{__file__}:{body.__code__.co_firstlineno + offset}"


def test_the_read_raises_and_names_line_stream_and_call() -> None:
    def body(s):
        s += "prompt"
        s += sgl.gen("a")
        s += "after" + sgl.gen("b")
        found = []
        for name in ("a", "b", "a"):
            try:
                s[name]
            except ProgramError as error:
                found.append(error)
        return found

    failure = OutOfMemory("no room")
    mock = sgl.MockBackend({"a": failure, "b": "never"})
    first, later, again = run(body, mock).ret_value
    assert str(first).startswith(line_of(body, 2) + " in body: gen 'a' failed (stream ")
    assert f"call {mock.calls[0].call_id}" in str(first)
    assert mock.calls[0].stream_id in str(first)
    assert "OutOfMemory: no room" in str(first)
    assert first.__cause__ is failure
    assert str(first) == str(later) == str(again)
    assert [call.name for call in mock.calls] == ["a"]  # later ops are not executed
    assert first is not again


def test_reading_often_piles_up_no_frames() -> None:
    def body(s):
        s += sgl.gen("a")
        depths = []
        for _ in range(5):
            try:
                s["a"]
            except ProgramError as error:
                depths.append(len(traceback.extract_tb(error.__traceback__)))
                depths.append(len(traceback.extract_tb(error.__cause__.__traceback__ if error.__cause__ else None)))
        return depths

    depths = run(body).ret_value
    assert len(set(depths[::2])) == len(set(depths[1::2])) == 1


def test_an_error_that_nobody_reads_is_raised_at_the_end() -> None:
    def body(s):
        s += sgl.gen("a")
        return "done"

    with pytest.raises(ProgramError, match="gen 'a' failed"):
        run(body)

    def two(s):
        forks = s.fork(3)
        forks += sgl.gen("a")

    with pytest.raises(ProgramError) as caught:
        run(two)
    assert len(caught.value.__notes__) == 2


def test_an_error_that_was_read_or_looked_at_is_not_raised_again() -> None:
    def reads(s):
        s += sgl.gen("a")
        with pytest.raises(ProgramError):
            s["a"]
        return "went on"

    def looks(s):
        s += sgl.gen("a")
        s.sync()
        return type(s.error())

    def texts(s):
        s += sgl.gen("a")
        for read in (s.text, s.messages, lambda: s.get_meta_info("a"), lambda: list(s.text_iter("a"))):
            with pytest.raises(ProgramError, match="boom"):
                read()

    assert run(reads).ret_value == "went on"
    assert run(looks).ret_value is ProgramError
    state = run(texts)
    assert isinstance(state.error(), ProgramError)


def test_sync_is_no_read() -> None:
    def body(s):
        s += sgl.gen("a")
        s.sync()

    with pytest.raises(ProgramError):
        run(body)


def test_a_python_error_leaves_the_run_at_once_and_cancels_its_calls() -> None:
    mock = sgl.MockBackend("t", delay=30)

    def body(s):
        s += sgl.gen("a")
        forks = s.fork(2)
        forks += sgl.gen("b")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(body, mock)
    assert len(mock.cancelled) == len(mock.calls)
    assert mock.calls == [] or mock.calls[0].name == "a"


def test_an_error_of_the_body_wins_over_one_of_a_call() -> None:
    def body(s):
        s += sgl.gen("a")
        s.sync()
        raise KeyError("mine")

    with pytest.raises(KeyError):
        run(body)


class Broken:
    """A backend that breaks its word in various ways."""

    capabilities = Capabilities(scores=True, constraints=frozenset({"regex"}), n=True)

    def __init__(self, how: str) -> None:
        self.how = how

    def render(self, prompt: Prompt) -> str:
        return ""

    def submit(self, call: Call, inbox: Inbox) -> None:
        if self.how == "raises":
            raise BackendClosed("closed meanwhile")
        if self.how == "odd":
            raise ZeroDivisionError
        inbox.put(Reply("nobody's call"))
        inbox.put(Reply(call.call_id))  # neither completions nor scores
        inbox.put(Reply(call.call_id))

    def cancel(self, call_id: str) -> None:
        raise RuntimeError("cannot cancel")

    def flush(self) -> None: ...

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("how", "cause"), [("raises", BackendClosed), ("odd", ZeroDivisionError), ("short", BackendError)]
)
def test_a_backend_that_breaks_its_word_fails_the_stream_only(how: str, cause: type[Exception]) -> None:
    for expr in (sgl.gen("a"), sgl.select("a", ["x", "y"])):

        def body(s, expr=expr):
            s += expr
            with pytest.raises(ProgramError) as caught:
                s["a"]
            return caught.value.__cause__

        assert isinstance(run(body, Broken(how)).ret_value, cause)


def test_a_backend_that_is_closed_during_the_call() -> None:
    mock = sgl.MockBackend("t", delay=30)

    def body(s):
        s += sgl.gen("a")
        threading.Timer(0.05, mock.close).start()
        s["a"]

    with pytest.raises(ProgramError, match="closed during the call"):
        run(body, mock)
    with pytest.raises(ProgramError, match="BackendClosed"):
        run(body, mock)


def test_a_cancel_by_the_backend_is_a_cancel() -> None:
    mock = sgl.MockBackend("t", delay=30)

    def body(s):
        s += sgl.gen("a")
        threading.Timer(0.05, lambda: mock.cancel(mock.calls[0].call_id)).start()
        s["a"]

    with pytest.raises(Cancelled):
        run(body, mock)


def test_errors_in_a_choices_method_belong_to_the_stream() -> None:
    from nbsglang.lang.choices import ChoicesDecision, ChoicesSamplingMethod

    class Bad(ChoicesSamplingMethod):
        def __call__(self, **given: Any) -> ChoicesDecision:
            raise LookupError("bad method")

    class Liar(ChoicesSamplingMethod):
        def __call__(self, **given: Any) -> ChoicesDecision:
            return ChoicesDecision("none of them")

    for method, what in ((Bad(), "bad method"), (Liar(), "none of them")):
        with pytest.raises(ProgramError, match=what):
            run(lambda s: s.__iadd__(sgl.select("x", ["a", "b"], choices_method=method)), "a")  # noqa: B023


def test_the_message_of_a_helper_function_names_the_helpers_line() -> None:
    def helper(s):
        s += sgl.gen("deep")

    def body(s):
        helper(s)

    with pytest.raises(ProgramError, match="in helper: gen 'deep'"):
        run(body)


def test_a_program_that_returns_nothing_after_an_unsupported_media() -> None:
    with pytest.raises(UsageError):
        run(lambda s: s.__iadd__(b"bytes"))


def test_a_user_may_catch_and_go_on_in_a_fork_made_before() -> None:
    def script(call: Call) -> str:
        assert isinstance(call, GenCall)
        if call.name == "bad":
            raise RuntimeError("boom")
        return "t"

    def body(s):
        s += "p "
        safe = s.fork(1)[0]
        s += sgl.gen("bad")
        try:
            s["bad"]
        except ProgramError:
            safe += sgl.gen("good")
            return safe["good"], safe.text()
        return None

    assert run(body, script).ret_value == ("t", "p t")
