"""Errors of cells: one for several branches, lines, delivered or not, frames."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from nbsglang.errors import BackendError, JoinError
from nbsglang.lang.cell import compile_cell
from tests.lang.cell_table import FILE, backend_of, prepared, run

Names = dict[str, Any]


def test_one_error_for_several_branches() -> None:
    r = run("for k in fork(['a', 'b', 'c']):\n    if k != 'b':\n        raise ValueError(k * 2)")
    error = r.error
    assert isinstance(error, JoinError)
    assert [type(one) for one in error.errors] == [ValueError, type(None), ValueError]
    assert str(error).splitlines() == [
        "Cell In[3], line 1: 2 of 3 branches failed",
        "  in branch 'a', line 3: ValueError: aa",
        "  in branch 'c', line 3: ValueError: cc",
    ]
    assert error.__cause__ is error.errors[0]
    shown = "".join(traceback.format_exception(error))
    assert shown.count("/nbsglang/lang/") == 1, "only `execute` is ours in it"


def test_all_branches_end_before_one_error_is_raised() -> None:
    names: Names = {"ended": []}
    with pytest.raises(JoinError):
        prepared(
            "for k in fork(3):\n    if k == 0:\n        1 / 0\n    a = gen()\n    a\n    ended.append(k)", names
        ).execute()
    assert names["ended"] == [1, 2]


def test_a_list_raises_the_same_error_at_each_read() -> None:
    source = """
    for k in fork(2):
        bad = gen()
    for i in range(3):
        try:
            bad
        except Exception as e:
            frames = traceback.extract_tb(e.__traceback__)
            kinds.append((type(e).__name__, [f.lineno for f in frames if f.filename == 'Cell In[3]']))
    """
    names: Names = {"kinds": [], "traceback": traceback}
    assert run(source, {"bad": BackendError("no")}, names).error is None
    assert names["kinds"] == [("JoinError", [5])] * 3


def test_an_error_counts_as_delivered_where_it_was_read() -> None:
    script = {"bad": BackendError("no")}
    assert run("bad = gen()\ntry:\n    bad\nexcept Exception:\n    pass", script).error is None
    assert run("for k in fork(2):\n    bad = gen()\ntry:\n    bad\nexcept Exception:\n    pass", script).error is None
    assert (
        run(
            "for k in fork(2):\n    bad = gen()\n    try:\n        bad\n    except Exception:\n        pass", script
        ).error
        is None
    )
    assert isinstance(run("for k in fork(2):\n    bad = gen()", script).error, JoinError)


def test_first_line_moves_errors_and_tracebacks() -> None:
    cell = compile_cell("x = 1\n1 / 0", FILE, first_line=2)
    with pytest.raises(ZeroDivisionError) as caught:
        cell.prepare({}, backend=backend_of({})).execute()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == 3


def test_warnings_can_be_errors(recwarn: pytest.WarningsRecorder) -> None:
    r = run("q = 'text'\nq\nxs = [gen()]")
    assert r.error is None
    assert [(str(w.message).split(":")[0], w.lineno) for w in recwarn] == [
        ("this string is dropped", 2),
        ("this gen(...) was never appended, so it did nothing", 3),
    ]
