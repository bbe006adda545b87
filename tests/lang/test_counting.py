"""The line that counts a batch: what it says, and where it writes."""

from __future__ import annotations

import io
import re
import threading

import pytest

import nbsglang as sgl
from nbsglang.lang import counting
from nbsglang.lang.counting import Count, span, words


class Terminal(io.StringIO):
    """Knows which threads wrote."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.threads: set[str] = set()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        self.threads.add(threading.current_thread().name)
        return super().write(text)


@pytest.mark.parametrize(
    ("done", "total", "seconds", "expected"),
    [
        (0, 10, 1.0, "0/10"),
        (2, 10, 4.0, "2/10 · 0.5/s · 16 s left"),
        (50, 100, 2.0, "50/100 · 25/s · 2.0 s left"),
        (1, 100, 60.0, "1/100 · 60 s each · 1:39 h left"),
        (10, 10, 200.0, "10/10 · 20 s each · 3:20 min"),
        (3, 3, 0.0, "3/3 · 3000000/s · 0.0 s"),
    ],
)
def test_words(done: int, total: int, seconds: float, expected: str) -> None:
    assert words(done, total, seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.44, "0.4 s"), (12.2, "12 s"), (185, "3:05 min"), (3599, "59:59 min"), (3720, "1:02 h")]
)
def test_spans(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_in_a_terminal_the_line_is_written_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_EVERY_S", 0.0)
    out = Terminal(is_terminal=True)
    count = Count("ask", 2, out)
    count.tell(1)
    count.tell(2)
    assert re.fullmatch(r"\rask: 1/2 · [^\r\n]* left\rask: 2/2 · [^\r\n]*\n", out.getvalue())


def test_in_a_file_lines_come_now_and_then() -> None:
    out = Terminal(is_terminal=False)
    count = Count("ask", 500, out)
    for done in range(1, 501):
        count.tell(done)
    assert out.getvalue().count("\n") == 1
    assert "\r" not in out.getvalue()


@sgl.function
def ask(s: sgl.ProgramState, q: str) -> None:
    s += q + sgl.gen("a")


@pytest.mark.parametrize("lazily", [False, True])
def test_only_the_thread_that_waits_writes(lazily: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal(is_terminal=True)
    monkeypatch.setattr("sys.stderr", out)
    items = [("x",)] * 4
    states = ask.run_batch(items, backend=sgl.MockBackend("b", delay=0.02), progress_bar=True, generator_style=lazily)
    assert len(list(states)) == 4
    assert out.getvalue().rstrip().split("\r")[-1].startswith("ask: 4/4 · ")
    assert out.threads == {threading.current_thread().name}
