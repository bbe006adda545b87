"""Errors of a cell: the user's line under the cell's name, no frame of ours, and the cell counts as failed."""

from __future__ import annotations

import re
import sys
import weakref
from typing import Any

import pytest

import nbsglang as sgl
from tests.notebook.conftest import Notebook, Ran


def _failed(notebook: Notebook, cell: str, error: str) -> Ran:
    ran = notebook.run(cell)
    assert not ran.ok
    assert type(ran.error).__name__ == error
    shown = ran.out + ran.err
    for ours in ("site-packages", "nbsglang/", "run_cell_magic", "<sgl", "contextlib"):
        assert ours not in shown, shown
    return ran


def _lines(ran: Ran) -> list[tuple[int, int]]:
    """(cell, line) of each place that is shown, outermost first."""
    return [(int(a), int(b)) for a, b in re.findall(r"Cell In\[(\d+)\], line (\d+)", ran.out + ran.err)]


def _number(notebook: Notebook) -> int:
    return notebook.shell.execution_count - 1


def test_a_plain_error(notebook: Notebook) -> None:
    ran = _failed(notebook, "%%sgl\n'x'\na = gen()\n1/0\nb = 2", "ZeroDivisionError")
    assert _lines(ran) == [(_number(notebook), 4)]
    assert "----> 4 1/0" in ran.out


@pytest.mark.parametrize("above", ["%%sgl\n\n\n", "\n\n%%sgl r -q\n", "%%time\n%%sgl\n", "\n%%time\n%%sgl -q\n\n"])
def test_lines_above_the_body_count(notebook: Notebook, above: str) -> None:
    cell = f"{above}'x'\nif True:\n    oops\n"
    ran = _failed(notebook, cell, "NameError")
    assert _lines(ran) == [(_number(notebook), cell[: cell.index("oops")].count("\n") + 1)]


def test_ipython_syntax_above_the_line(notebook: Notebook) -> None:
    ran = _failed(notebook, "%%sgl\n!true\nx = !true\n%time y = 1\n1/0", "ZeroDivisionError")
    assert _lines(ran) == [(_number(notebook), 5)]
    ran = _failed(notebook, "%%sgl\n\n!true \\\n  and \\\n  so on\nx = 1\n1/0", "ZeroDivisionError")
    assert _lines(ran) == [(_number(notebook), 7)]
    ran = _failed(notebook, "%%sgl\n\n  x = 1\n  1/0", "ZeroDivisionError")
    assert _lines(ran) == [(_number(notebook), 4)]


def test_an_error_in_a_helper_of_the_notebook(notebook: Notebook) -> None:
    notebook.good("def helper(x):\n    y = x\n    return 1 / y")
    defined = _number(notebook)
    ran = _failed(notebook, "%%sgl\n'x'\nhelper(0)", "ZeroDivisionError")
    assert _lines(ran) == [(_number(notebook), 3), (defined, 3)]
    assert "return 1 / y" in ran.out


def test_an_error_in_a_helper_of_the_cell(notebook: Notebook) -> None:
    ran = _failed(notebook, "%%sgl\ndef helper(x):\n    return 1 / x\n'x'\nhelper(0)", "ZeroDivisionError")
    assert _lines(ran) == [(_number(notebook), 5), (_number(notebook), 3)]


def test_an_error_in_a_branch(notebook: Notebook) -> None:
    cell = "%%sgl\n'x'\nfor k in fork(['a', 'b', 'c']):\n    f'{k} '\n    v = gen()\n    if k == 'b':\n        v.oops"
    ran = notebook.run(cell)
    assert not ran.ok
    shown = ran.out + ran.err
    assert "'b'" in shown
    assert re.search(r"line 7\b", shown), shown
    assert "run_cell_magic" not in shown
    assert "nbsglang/" not in shown


def test_a_frame_of_a_branch_shows_no_names_of_ours(notebook: Notebook) -> None:
    _failed(notebook, "%%sgl\n'x'\nfor k in fork(2):\n    y = k\n    1 / y", "JoinError")


def test_a_value_that_pydantic_refuses(notebook: Notebook) -> None:
    notebook.good("from pydantic import BaseModel\nclass B(BaseModel):\n    t: str")
    notebook.names["mock"] = sgl.MockBackend('{"t": 3}')
    ran = notebook.run("%%sgl --backend mock\n'x'\nb: B = gen()")
    assert not ran.ok
    shown = ran.out + ran.err
    assert "Input should be a valid string" in shown
    assert _lines(ran)
    assert "nbsglang/" not in shown


def test_an_error_in_a_nested_program(notebook: Notebook) -> None:
    notebook.good("%%sgl inner(x)\nf'{x} '\n1 / x")
    inner = _number(notebook)
    ran = _failed(notebook, "%%sgl\n'x'\ninner(s, 0)", "ZeroDivisionError")
    assert _lines(ran) == [(_number(notebook), 3), (inner, 3)]


def test_a_failed_call_names_its_line(notebook: Notebook) -> None:
    notebook.names["bad"] = sgl.MockBackend(sgl.NbsglangError("no luck"))
    for body, line in (("'x'\na = gen()\n\nprint(a)", 3), ("'x'\na = gen()", 3)):
        ran = notebook.run(f"%%sgl r --backend bad\n{body}")
        shown = ran.out + ran.err
        assert type(ran.error).__name__ == "ProgramError"
        assert "no luck" in shown
        assert f"Cell In[{_number(notebook)}], line {line} in r: gen 'a' failed" in shown
        assert "Cell" not in shown.split("no luck")[1], "the cause has no lines to show"
        assert "run_cell_magic" not in shown
        assert "nbsglang/" not in shown
        assert notebook.names["r"].error is not None


@pytest.mark.parametrize(
    ("body", "line", "part"),
    [
        ("'x'\nfoo(", 3, "never closed"),
        ("x = 1\nif x\n    y = 2", 3, "expected ':'"),
        ("x = 1\n\n   y = 2", 4, "indent"),
        ("\n\na = b = gen()", 4, ""),
        ("for k in fork(2):\n    x = 1\n    break", 4, ""),
        ("for k in fork(2):\n    x = 1\nelse:\n    y = 1", 5, ""),
        ("'x'\nd = {}\nd['k'] = gen()", 4, ""),
    ],
)
def test_cells_that_cannot_be_compiled(notebook: Notebook, body: str, line: int, part: str) -> None:
    ran = _failed(notebook, f"%%sgl\n{body}", "CellError")
    assert _lines(ran) == [(_number(notebook), line)]
    shown = ran.out + ran.err
    assert part in shown
    assert "^" in shown
    assert body.split("\n")[line - 2].strip() in shown
    assert not notebook.names["mock"].calls


def test_a_signature_that_cannot_be_read(notebook: Notebook) -> None:
    ran = _failed(notebook, "%%sgl judge(a, , b)\n\n'x'", "CellError")
    assert _lines(ran) == [(_number(notebook), 1)]
    assert "judge(a, , b)" in ran.out + ran.err


def test_a_type_that_cannot_be_written(notebook: Notebook) -> None:
    ran = notebook.run("%%sgl\n'x'\nx: object() = gen()")
    assert not ran.ok
    shown = ran.out + ran.err
    assert _lines(ran) == [(_number(notebook), 3)]
    assert "run_cell_magic" not in shown
    assert "nbsglang/" not in shown


def test_a_failed_run_is_kept_under_its_name(notebook: Notebook) -> None:
    notebook.run("%%sgl r\n'x'\na = gen()\na.oops")
    r = notebook.names["r"]
    assert isinstance(r.error, AttributeError)
    assert r["a"] == "one"
    assert r.done


def test_the_value_before_stays_in_underscore(notebook: Notebook) -> None:
    notebook.good("41 + 1")
    notebook.run("%%sgl\n1/0")
    assert notebook.good("_").value == 42


def test_an_interrupt_is_noted_and_fails_the_cell(notebook: Notebook) -> None:
    notebook.names["slow"] = slow = sgl.MockBackend("late", delay=30)
    body = "for k in fork(3):\n    v = gen()\nimport time\ntime.sleep(0.1)\nraise KeyboardInterrupt"
    cell = f"%%sgl r --backend slow\n{body}"
    ran = _failed(notebook, cell, "KeyboardInterrupt")
    assert ran.out.startswith("interrupted: 3 calls cancelled\n")
    assert _lines(ran) == [(_number(notebook), 6)]
    assert len(slow.cancelled) == 3
    notebook.good("%%sgl\na = gen()")


class _Big:
    """Stands for a tensor in the frames of a backend."""


def test_what_the_backend_worked_on_is_let_go(notebook: Notebook) -> None:
    seen: list[weakref.ref[Any]] = []

    def script(call: object) -> str:
        big = _Big()
        seen.append(weakref.ref(big))
        raise RuntimeError("out of memory")

    notebook.names["bad"] = sgl.MockBackend(script)
    ran = notebook.run("%%sgl r --backend bad\n'x'\na = gen()\na + 'y'")
    assert "out of memory" in ran.out + ran.err
    assert sys.last_traceback is not None
    assert [ref() for ref in seen] == [None]


def test_errors_of_the_notebook_that_are_no_cells_are_as_ever(notebook: Notebook) -> None:
    ran = notebook.run("1/0")
    assert "----> 1 1/0" in ran.out
