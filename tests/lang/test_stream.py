"""Reading while text comes: stream=True, readers on other threads, coroutines, arun."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang.calls import Call, GenCall
from nbsglang.errors import ProgramError, UsageError


@sgl.function
def story(s):
    s += sgl.user("Tell.")
    with s.assistant():
        s += "Once " + sgl.gen("a", max_tokens=10)
        s += " then " + sgl.gen("b")
    return s["b"]


SCRIPT = {"a": "0123456789abcdef", "b": "xyz"}


def test_chunks_come_before_the_end_and_make_up_the_value() -> None:
    state = story.run(backend=sgl.MockBackend(SCRIPT, delay=0.6), stream=True)
    began = time.monotonic()
    times, pieces = [], []
    for piece in state.text_iter("a"):
        times.append(time.monotonic() - began)
        pieces.append(piece)
    assert pieces == ["0123", "4567", "89"]
    assert times[0] < 0.5
    assert list(state.text_iter("b")) == ["xyz"]  # its gen may not have been appended when we ask
    assert state["a"] == "0123456789"
    assert state.text() == "".join(state.text_iter())


def test_the_whole_text_comes_in_order_and_is_what_text_gives() -> None:
    state = story.run(backend=sgl.MockBackend(SCRIPT, delay=0.05), stream=True)
    pieces = list(state.text_iter())
    assert (
        "".join(pieces)
        == state.text()
        == ("<|im_start|>user\nTell.<|im_end|>\n<|im_start|>assistant\nOnce 0123456789 then xyz<|im_end|>\n")
    )
    assert len(pieces) >= 5
    assert state.ret_value == "xyz"


def test_calls_stream_only_if_asked_to() -> None:
    mock = sgl.MockBackend(SCRIPT)
    state = story.run(backend=mock)
    assert [call.stream for call in mock.calls if isinstance(call, GenCall)] == [False, False]
    assert list(state.text_iter("a")) == ["0123456789"]
    assert list(state.text_iter()) == [state.text()]


def test_every_kind_of_value_can_be_iterated() -> None:
    @sgl.function
    def program(s):
        s["mine"] = 5
        s["empty"] = ""
        s += sgl.select("choice", ["yes", "no"]) + sgl.gen("number", dtype=int) + sgl.gen("many", n=2)

    for stream in (False, True):
        mock = sgl.MockBackend(["yes", "42", "first", "second"])
        state = program.run(backend=mock, stream=stream)
        texts = {name: "".join(state.text_iter(name)) for name in ("mine", "empty", "choice", "number", "many")}
        assert texts == {"mine": "5", "empty": "", "choice": "yes", "number": "42", "many": "first"}
        assert (state["number"], state["many"]) == (42, ["first", "second"])


def test_the_iterator_raises_after_the_text_that_there_was() -> None:
    def script(call: Call) -> str:
        if call.name == "b":
            raise RuntimeError("boom")
        return "fine"

    state = story.run(backend=sgl.MockBackend(script), stream=True)
    assert list(state.text_iter("a")) == ["fine"]
    for name in ("b", None):
        seen: list[str] = []
        with pytest.raises(ProgramError, match="boom"):
            seen.extend(state.text_iter(name))
        assert "".join(seen).endswith("Once fine then ") == (name is None)
    with pytest.raises(ProgramError, match="boom"):
        state["b"]


def test_a_python_error_of_a_streaming_program_reaches_every_reader() -> None:
    @sgl.function
    def program(s):
        s += sgl.gen("a")
        raise ZeroDivisionError("mine")

    state = program.run(backend=sgl.MockBackend("t"), stream=True)
    readers: list[Any] = [
        lambda: state["never"], lambda: list(state.text_iter("never")), lambda: list(state.text_iter()), state.text,
    ]  # fmt: skip
    for read in readers:
        with pytest.raises(ZeroDivisionError, match="mine"):
            read()
    assert isinstance(state.error(), ZeroDivisionError)


def test_a_name_that_never_comes_is_an_error_at_the_end() -> None:
    state = story.run(backend=sgl.MockBackend(SCRIPT, delay=0.05), stream=True)
    with pytest.raises(UsageError, match="no variable 'c'"):
        state["c"]


def test_text_iter_inside_a_program() -> None:
    @sgl.function
    def program(s):
        s += "p " + sgl.gen("a")
        return list(s.text_iter("a")), list(s.text_iter())

    mock = sgl.MockBackend("01234567", delay=0.02)
    assert program.run(backend=mock).ret_value == (["01234567"], ["p 01234567"])
    state = program.run(backend=mock, stream=True)
    state.sync()
    assert state.ret_value[0] == ["0123", "4567"]
    assert "".join(state.ret_value[1]) == "p 01234567"


def test_a_reader_on_another_thread_waits_in_place() -> None:
    @sgl.function
    def program(s):
        s += sgl.gen("a")
        found: list[Any] = []
        reader = threading.Thread(target=lambda: found.append((s["a"], s.text())))
        reader.start()
        reader.join(5)
        return found

    states = program.run_batch([()] * 5, backend=sgl.MockBackend("t", delay=0.05))
    assert [s.ret_value for s in states] == [[("t", "t")]] * 5


def test_many_readers_of_one_value() -> None:
    state = story.run(backend=sgl.MockBackend(SCRIPT, delay=0.1), stream=True)
    found: list[str] = []
    readers = [threading.Thread(target=lambda: found.append("".join(state.text_iter("a")))) for _ in range(20)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(5)
    assert found == ["0123456789"] * 20


def test_reading_in_the_users_own_event_loop() -> None:
    @sgl.function
    def program(s, i):
        s += f"{i}" + sgl.gen("a")

        async def main() -> list[Any]:
            async def read() -> Any:
                return s["a"]

            pieces = [piece async for piece in s.text_async_iter("a")]
            inner = story.run(backend=sgl.MockBackend(SCRIPT))  # a hub of its own, in place
            return [await read(), await asyncio.create_task(read()), pieces, inner["b"]]

        return asyncio.run(main())

    states = program.run_batch([(i,) for i in range(3)], backend=sgl.MockBackend("t", delay=0.02))
    assert [s.ret_value for s in states] == [["t", "t", ["t"], "xyz"]] * 3


def test_async_iteration_leaves_the_loop_free() -> None:
    async def main() -> None:
        state = story.run(backend=sgl.MockBackend(SCRIPT, delay=0.2), stream=True)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.create_task(tick())
        pieces = [piece async for piece in state.text_async_iter("a")]
        assert pieces == ["0123", "4567", "89"]
        pairs = [pair async for pair in state.text_async_iter("b", return_meta_data=True)]
        assert [text for text, _ in pairs] == ["xyz", ""]
        assert pairs[-1][1]["finish_reason"] == {"type": "stop"}
        assert "".join([piece async for piece in state.text_async_iter()]) == state.text()
        ticker.cancel()
        assert ticks > 4

    asyncio.run(main())


def test_async_iteration_raises_too() -> None:
    async def main() -> None:
        state = story.run(backend=sgl.MockBackend(RuntimeError("boom")), stream=True)
        with pytest.raises(ProgramError, match="boom"):
            async for _ in state.text_async_iter("a"):
                pass
        with pytest.raises(ProgramError, match="boom"):
            await story.arun(backend=sgl.MockBackend(RuntimeError("boom")))

    asyncio.run(main())


def test_arun_runs_many_at_once() -> None:
    async def main() -> list[Any]:
        mock = sgl.MockBackend(SCRIPT, delay=0.1)
        return await asyncio.gather(*(story.arun(backend=mock) for _ in range(20)))

    began = time.monotonic()
    states = asyncio.run(main())
    assert time.monotonic() - began < 2.5  # one after the other: 4
    assert [s.ret_value for s in states] == ["xyz"] * 20
    with pytest.raises(UsageError, match="stream"):
        asyncio.run(story.arun(backend=sgl.MockBackend(), stream=True))


def test_context_variables_reach_the_program_and_stay_apart() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    @sgl.function
    def program(s, i):
        seen = who.get()
        who.set(f"item {i}")
        s += sgl.gen("a")
        s["a"]  # the others run meanwhile
        return seen, who.get()

    who.set("caller")
    for at_once in ("auto", 1):
        mock = sgl.MockBackend("t", delay=0.01)
        states = program.run_batch([(i,) for i in range(3)], backend=mock, num_threads=at_once)
        assert [s.ret_value for s in states] == [("caller", f"item {i}") for i in range(3)]
    streamed = program.run(9, backend=sgl.MockBackend("t"), stream=True)
    streamed.sync()
    assert streamed.ret_value == ("caller", "item 9")
    assert who.get() == "caller"


def test_a_timeout_around_arun_is_never_lost() -> None:
    """Also when it comes in the very moment in which the waiting coroutine looks up."""

    @sgl.function
    def slow(s):
        for _ in range(20):
            s += sgl.gen("x")
            s["x"]

    mock = sgl.MockBackend("t", delay=0.02)

    async def main() -> int:
        n_lost = 0
        for seconds in (0.05, 0.1, 0.15, 0.05, 0.1):
            try:
                await asyncio.wait_for(slow.arun(backend=mock), seconds)
                n_lost += 1
            except TimeoutError:
                pass
        return n_lost

    assert asyncio.run(main()) == 0


def test_many_aruns_are_cancelled_together() -> None:
    """In a process of its own: greenlet looks through all objects of a process whenever a thread of programs ends."""
    code = textwrap.dedent(
        """
        import asyncio, time
        import nbsglang as sgl

        @sgl.function
        def slow(s):
            s += sgl.gen("x")
            s["x"]

        async def main():
            tasks = [asyncio.create_task(slow.arun(backend=sgl.MockBackend("t", delay=5))) for _ in range(20)]
            await asyncio.sleep(0.2)
            began = time.monotonic()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return time.monotonic() - began

        print(min(asyncio.run(main()) for _ in range(3)))
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert float(done.stdout) < 1.0  # one after the other it took 0.1 s each
