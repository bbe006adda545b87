"""Typed values of cells, data flow without waiting, speed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang.errors import ProgramError
from nbsglang.events import VariableSet
from nbsglang.lang.held import force
from tests.lang.cell_table import backend_of, prepared, run

Names = dict[str, Any]


@dataclasses.dataclass
class Point:
    """For typed generations."""

    x: int
    y: float = 0.0


def test_models_dataclasses_and_lists() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Book(pydantic.BaseModel):
        title: str
        year: int

    answers = {"b": '{"title": "T", "year": 1999}', "p": '{"x": 1, "y": 2.5}', "ns": "[1, 2]", "o": "null"}
    source = """
    b: Book = gen()
    p: Point = gen()
    ns: list[int] = gen()
    o: int | None = gen()
    t = b.title + str(p.x)
    f'<{b.year}>'
    """
    r = run(source, answers, {"Book": Book, "Point": Point})
    assert (r["b"], r["p"], r["ns"], r["o"], r["t"]) == (Book(title="T", year=1999), Point(1, 2.5), [1, 2], None, "T1")
    assert r.text.endswith("<1999>")
    bad = run("x = 1\nb: Book = gen()\nb", {"b": '{"title": 3}'}, {"Book": Book})
    assert isinstance(bad.error, ProgramError)
    assert "Cell In[3]:2 in cell" in str(bad.error)
    inside = run(
        """
        from pydantic import BaseModel
        class B(BaseModel):
            n: int
        for k in fork(2):
            b: B = gen()
        x = [one.n for one in b]
        """,
        {"b": '{"n": 4}'},
    )
    assert inside["x"] == [4, 4]


def test_a_typed_call_is_constrained() -> None:
    backend = backend_of({"n": "3", "c": "b"})
    prepared('n: int = gen(max_tokens=3)\nc: Literal["a", "b"] = gen(temperature=0.5)', backend=backend).execute()
    number, choice = backend.calls
    assert number.constraint.kind == "regex"
    assert number.sampling.max_tokens == 3
    assert choice.choices == ("a", "b")


def test_text_does_not_wait_and_branches_run_side_by_side() -> None:
    names: Names = {"clock": time.monotonic}
    r = prepared(
        """
        t = clock()
        a = gen()
        f'<{a}>'
        user(a)
        for k in fork(5):
            f'{a}{k}'
            b = gen()
        d = clock() - t
        b
        e = clock() - t
        """,
        names,
        backend=backend_of({}, 0.1),
    ).execute()
    assert r["d"] < 0.09
    assert 0.2 <= r["e"] < 0.4
    assert r.branches[3].text == "A<A>[user A]A3[assistant B]" or r.branches[3].text == "A<A>[user A]A3[assistant B"


def test_reading_in_the_users_own_event_loop_and_thread() -> None:
    r = prepared(
        "import asyncio, threading\n"
        "for k in fork(3):\n    a = gen()\n    found = []\n"
        "    async def f():\n        await asyncio.sleep(0)\n        return a\n"
        "    b = asyncio.run(f())\n"
        "    t = threading.Thread(target=lambda: found.append(a))\n    t.start()\n    t.join()",
        backend=backend_of({}, 0.05),
    ).execute()
    assert (r["b"], r["found"]) == (["A"] * 3, [["A"]] * 3)


def test_ten_thousand_branches() -> None:
    began = time.monotonic()
    r = prepared("for k in fork(10_000):\n    f'{k}'\n    a = gen()\n    b = a + 'x'\nn = len(b)").execute()
    assert r["n"] == 10_000
    assert time.monotonic() - began < 15, "three times the figure"


def test_force_is_cheap() -> None:
    def seconds(call: Callable[[str], str]) -> float:
        began = time.perf_counter()
        for _ in range(100_000):
            call("x")
        return time.perf_counter() - began

    assert min(seconds(force) for _ in range(5)) < 0.03, "three times 100 ns a read"


def test_variables_are_seen_in_the_log() -> None:
    log = sgl.EventLog()
    prepared("a = gen()", log=log).execute()
    assert [e.body.text for e in log.since() if isinstance(e.body, VariableSet)] == ["A"]
