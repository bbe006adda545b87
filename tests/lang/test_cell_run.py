"""Runs of cells: arguments, nesting, starting from another run, background, what is left of them."""

from __future__ import annotations

import gc
import pickle
import sys
import time
import traceback
import weakref
from typing import Any

import pytest

import nbsglang as sgl
from nbsglang.errors import BackendError, Cancelled, CellError, JoinError, ProgramError, UsageError
from nbsglang.events import StreamBegan, StreamEnded
from nbsglang.lang.cell import compile_cell
from nbsglang.lang.cell_run import CellRun
from tests.lang.cell_table import FILE, backend_of, prepared, run

Names = dict[str, Any]


def test_streams_say_which_pythons_failed() -> None:
    log = sgl.EventLog()
    source = 'f"x"\nfor k in fork(3):\n    a = gen()\n    if k == 1:\n        1 / 0'
    with pytest.raises(JoinError):
        compile_cell(source).prepare({}, backend=sgl.MockBackend("t", delay=5), log=log).execute()
    ended = {
        event.body.stream.split(".")[1]: event.body.how for event in log.since() if isinstance(event.body, StreamEnded)
    }
    assert ended == {"1": "failed", "2": "cancelled", "3": "failed", "4": "cancelled"}


@pytest.mark.parametrize(
    ("line", "how"),
    [
        ("raise KeyboardInterrupt", "cancelled"),
        ("raise SystemExit(1)", "failed"),
        ("raise Cancelled('by hand')", "cancelled"),
        ("raise OSError", "failed"),
    ],
)
@pytest.mark.parametrize("where", ["", "for k in fork(1):\n    "])
def test_a_stream_says_how_its_python_ended(line: str, how: str, where: str) -> None:
    """Also where all of its text was there by then: no call is open, and nothing is cancelled on the way."""
    log = sgl.EventLog()
    cell = compile_cell(f'f"x"\na = gen()\nb = str(a)\n{where}{line}')
    with pytest.raises((Exception, KeyboardInterrupt, SystemExit)) as caught:
        cell.prepare({"Cancelled": Cancelled}, backend=sgl.MockBackend("t"), log=log).execute()
    ended = [event.body.how for event in log.since() if isinstance(event.body, StreamEnded)]
    root = "failed" if isinstance(caught.value, JoinError) else how
    assert ended == ([root, how] if where else [root])


def test_a_typed_value_that_was_cut_off_says_so() -> None:
    backend = sgl.MockBackend('{"t": "one two three"}')
    with pytest.raises(ProgramError, match="cut off after 2 tokens, before it was a whole value: raise max_tokens"):
        compile_cell("f'x'\nb: dict[str, str] = gen(max_tokens=2)").prepare({}, backend=backend).execute()


# ------------------------------------------------------------------------------------------- programs


def test_parameters_by_position_and_keyword_with_defaults() -> None:
    cell = compile_cell('f"{essay} {n} {rest} {more}"', FILE, name="judge", parameters="essay, n=k + 1, *rest, more=2")
    names: Names = {"k": 4}
    assert cell.prepare(names, "e", backend=backend_of({})).execute().text == "e 5 () 2"
    assert cell.prepare(names, "e", 1, 7, more=3, backend=backend_of({})).execute().text == "e 1 (7,) 3"
    with pytest.raises(UsageError, match="judge: missing a required argument: 'essay'"):
        cell.prepare(names, backend=backend_of({}))
    with pytest.raises(UsageError, match="timeout must be"):
        cell.prepare(names, "e", timeout=-1)


def test_a_parameter_wins_over_an_option_and_may_be_assigned() -> None:
    cell = compile_cell(
        'essay = essay.strip()\nf"{essay}{n}"\nfor k in fork(2):\n    x = essay + n', parameters="essay, n"
    )
    r = cell.prepare({"essay": "other"}, " e ", n="3", backend=backend_of({})).execute()
    assert (r.text, r["essay"], r["x"], "n" in r) == ("e3", "e", ["e3", "e3"], False)


@pytest.mark.parametrize("parameters", ["a b", "a):\n pass\ndef g(b", "s", "*, s=1", "a, a"])
def test_bad_parameters(parameters: str) -> None:
    with pytest.raises(CellError):
        compile_cell("x = 1", FILE, parameters=parameters, first_line=2)


def test_a_program_from_a_string_sees_its_callers_names() -> None:
    local = "from here"
    judge = sgl.program(
        """
        user(f"{essay} {local}")
        score: int = gen()
        return score + 1
        """,
        name="judge",
        parameters="essay",
    )
    assert judge.name == "judge"
    assert judge.arg_names == ("essay",)
    r = judge.run("E", backend=backend_of({"score": "4"}))
    assert isinstance(r, CellRun)
    assert (r["score"], r.text, r.state.ret_value) == (4, "[user E from here][assistant 4]", 5)
    bound = judge.bind(essay="B").run(backend=backend_of({"score": "4"}))
    assert bound.messages()[0] == {"role": "user", "content": "B from here"}
    assert local


def test_batches_streams_and_coroutines_give_runs() -> None:
    import asyncio

    ask = sgl.program("user(q)\na = gen()\nif q == 'bad':\n    1 / 0", name="ask", parameters="q")
    runs = ask.run_batch([("x",), {"q": "y"}], backend=backend_of({}))
    assert [r["a"] for r in runs] == ["A", "A"]
    assert [r.text for r in runs] == ["[user x][assistant A]", "[user y][assistant A]"]
    kept = ask.run_batch([("x",), ("bad",)], backend=backend_of({}), on_error="return")
    assert [type(r.error) for r in kept] == [type(None), ZeroDivisionError]
    assert sorted(r["a"] for r in ask.run_batch([("x",)], backend=backend_of({}), generator_style=True)) == ["A"]
    streamed = ask.run("x", backend=backend_of({}, 0.05), stream=True)
    assert "".join(streamed.state.text_iter("a")) == "A"
    assert streamed["a"] == "A"
    assert asyncio.run(ask.arun("x", backend=backend_of({})))["a"] == "A"


def test_branches_in_a_batch_and_in_an_event_loop() -> None:
    judge = sgl.program("for k in fork(n):\n    a = gen()\n    b = a + str(k)\nreturn b", name="judge", parameters="n")
    runs = judge.run_batch([(i % 4,) for i in range(50)], backend=backend_of({}, 0.01))
    assert [r.state.ret_value for r in runs] == [[f"A{k}" for k in range(i % 4)] for i in range(50)]
    source = "import asyncio\nasync def f():\n    judge(s, 2)\nasyncio.run(f())"
    with pytest.raises(UsageError, match="event loop"):
        prepared(source, {"judge": judge}).execute()


def test_programs_inside_programs() -> None:
    judge = sgl.program(
        "user(f'judge {x}')\nverdict = gen()\nfor k in fork(2):\n    y = k\nreturn verdict.lower()", parameters="x"
    )

    @sgl.function
    def plain(s, x):
        s += sgl.user(f"plain {x}") + sgl.gen("p")
        return judge(s, x)

    names: Names = {"judge": judge, "plain": plain}
    r = prepared("a = judge(s, 1)\nb = plain(s, 2)\nc = judge(3)\nx = c['verdict']\ngen('z')", names).execute()
    assert r.text == ("[user judge 1][assistant VERDICT][user plain 2][assistant P][user judge 2][assistant VERDICTZ]")
    assert (r["a"], r["b"], r["x"]) == ("verdict", "verdict", "VERDICT")
    assert plain.run(5, backend=backend_of({})).text() == "[user plain 5]P[user judge 5][assistant VERDICT]"


def test_errors_in_nested_programs_keep_their_lines() -> None:
    inner = sgl.program("y = 1\n1 / 0", name="inner")
    with pytest.raises(ZeroDivisionError) as caught:
        prepared("x = 1\ninner.run()", {"inner": inner}).execute()
    shown = "".join(traceback.format_exception(caught.value))
    assert 'File "Cell In[3]", line 2, in cell' in shown
    assert "line 2, in inner" in shown
    assert "1 / 0" in shown, "the source of a program from a string is known to tracebacks"


# ------------------------------------------------------------------------------------------- results


def test_what_a_run_tells_before_while_and_after() -> None:
    log = sgl.EventLog()
    r = prepared("a = gen()\nb = a\nfor k in fork(['x', 'y']):\n    f\"{k}{gen('c')}\"", log=log)
    assert (r.done, r.error, r.keys(), r.variables, "a" in r, r.stats["calls"]) == (False, None, [], {}, False, 0)
    assert (r.log, dict(r.branches), repr(r)) == (log, {}, "<run, not begun>")
    stream_id, source = r.stream_id, r.source
    with pytest.raises(UsageError, match="not begun"):
        r["a"]
    assert r.execute() is r
    assert (r.done, r.error, r.keys()) == (True, None, ["a", "b", "k", "c"])
    assert (r["c"], list(r.branches), r.branches["y"]["c"], r.branches["y"].text) == (
        ["C", "C"],
        ["x", "y"],
        "C",
        "AyC",
    )
    assert (r.stream_id, r.source) == (stream_id, source)
    assert r.tokens == (ord("A"),)
    assert r.branches["x"].tokens == (ord("A"), ord("C"))
    assert r.stats["calls"] == 3
    began = [e for e in log.since() if isinstance(e.body, StreamBegan)]
    assert [(e.source, e.body.label) for e in began] == [(source, "cell"), (source, "x"), (source, "y")]
    assert began[0].body.stream == stream_id == began[1].body.parent
    with pytest.raises(UsageError, match="executed once"):
        r.execute()
    with pytest.raises(sgl.NbsglangError, match="no variable 'z'; there are: 'a', 'b'"):
        r["z"]


def test_branches_by_key() -> None:
    r = run(
        """
        for k in fork([(1, 'a'), (2, 'b')]):
            x = k
        for d in fork([{}, []]):
            y = 1
        for j in fork(['a', 'a']):
            z = 2
        """
    )
    assert list(r.branches) == [(1, "a"), (2, "b"), 0, 1]
    assert r.branches[(2, "b")]["x"] == (2, "b")
    assert r.branches[1]["z"] == 2
    nested = run("for a in fork(2):\n    for b in fork(['x']):\n        c = gen()")
    assert nested.branches[1].branches["x"]["c"] == "C"


def test_a_run_that_is_over_holds_no_backend() -> None:
    for source in ("a = gen()\nfor k in fork(2):\n    b = gen()", "a = gen()\n1 / 0", "bad = gen()\nbad"):
        backend = backend_of({"bad": BackendError("no")})
        r = compile_cell(source).prepare({}, backend=backend)
        try:
            r.execute()
        except Exception:
            assert r.error is not None
        text = r.text if r.error is None else None
        gone = weakref.ref(backend)
        del backend
        sys.last_value = None
        gc.collect()
        assert gone() is None, source
        assert text is None or r.text == text == "A"
        if r.branches:
            assert r.branches[0].text == "AB"
            assert r.branches[0]["b"] == "B"


def test_values_are_real_and_can_be_pickled() -> None:
    r = run("a = gen()\nn: int = gen()\nfor k in fork(2):\n    x = gen()", {"n": "3"})
    assert pickle.loads(pickle.dumps(r.variables)) == {"a": "A", "n": 3, "k": [0, 1], "x": ["X", "X"]}


# ------------------------------------------------------------------------------------------- starting from a run


def test_a_start_is_a_snapshot() -> None:
    first = run('system("s")\nuser("q")\na = gen()')
    cell = compile_cell('with_a = s["a"]\nuser("more")\nb = gen()\nt = s.get_meta_info("a")["finish_reason"]')
    for _ in range(2):
        backend = backend_of({})
        r = cell.prepare({}, start=first, backend=backend).execute()
        assert r.text == "[system s][user q][assistant A][user more][assistant B]"
        assert (r["with_a"], r["a"], r["b"], r["t"]) == ("A", "A", "B", {"type": "stop"})
        assert r.tokens == (65, 66)
        generated = [part for part in backend.calls[-1].prompt if hasattr(part, "ids")]
        assert [part.ids for part in generated] == [(65,)], "ids are kept, so the cache is hit"
    assert first.text == "[system s][user q][assistant A]"
    assert first.keys() == ["a"]


def test_a_start_in_an_open_role_and_from_a_state() -> None:
    state = sgl.function(lambda s: s.__iadd__(sgl.user("q") + sgl.assistant_begin() + "so" + sgl.gen("a"))).run(
        backend=backend_of({})
    )
    r = prepared('"!"\nb = gen()\nassistant_end()\nc = gen()', start=state).execute()
    assert r.text == "[user q][assistant soA!B][assistant C]"


def test_bad_starts() -> None:
    with pytest.raises(UsageError, match="not over"):
        prepared("x = 1", start=prepared("a = gen()"))
    failed = run("bad = gen()\nbad", {"bad": BackendError("no")})
    with pytest.raises(ProgramError, match="no"):
        prepared("x = 1", start=failed)


# ------------------------------------------------------------------------------------------- background


def test_in_the_background() -> None:
    r = prepared("a = gen()\nb = a + '!'", backend=backend_of({}, 0.1)).start_thread()
    assert not r.done
    assert r.error is None
    assert r.wait(0.01) is False
    assert r["b"] == "A!"
    assert r.wait() is True
    assert (r.text, r.variables) == ("A", {"a": "A", "b": "A!"})


def test_errors_in_the_background() -> None:
    r = prepared("a = gen()\na\n1 / 0", backend=backend_of({}, 0.02)).start_thread()
    with pytest.raises(ZeroDivisionError):
        r.wait(5)
    assert isinstance(r.error, ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        r["b"]
    assert r["a"] == "A"
    depth = len(traceback.extract_tb(r.error.__traceback__))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            r.wait()
    assert len(traceback.extract_tb(r.error.__traceback__)) <= depth + 2, "frames do not pile up"


def test_cancel() -> None:
    backend = backend_of({}, 30)
    r = prepared("a = gen()\nfor k in fork(3):\n    b = gen()\n    b", backend=backend).start_thread()
    time.sleep(0.05)
    r.cancel()
    with pytest.raises(Cancelled):
        r.wait(5)
    assert r.done
    early = prepared("a = gen()\na")
    early.cancel()
    with pytest.raises(Cancelled):
        early.execute()
