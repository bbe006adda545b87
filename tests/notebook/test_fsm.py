"""`%sgl fsm` and `nbsglang.fsm`: what a line means, what is shown, what is refused, what completion knows.

Not here: pictures (`tests/viz/test_fsm.py`).
"""

from __future__ import annotations

import enum
import re
import threading
from datetime import date
from typing import Annotated, Any, Literal

import pytest

import nbsglang as sgl
from nbsglang import current
from nbsglang.events import CallBegan, Constrained, ConstraintGraph, EventLog
from nbsglang.notebook.automata import constraint_of
from tests.notebook.conftest import Notebook
from tests.tiny import byte_tokenizer, tiny_model


class Colour(enum.Enum):
    RED = "red"
    BLUE = 7


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("[a-z]+", "regex [a-z]+"),
        (r"  \d{4}-\d{2}  ", r"regex \d{4}-\d{2}"),
        ("a b  c", "regex a b  c"),
        ('"[a-z]+ x"', "regex [a-z]+ x"),
        (r"r'\d+'", r"regex \d+"),
        (r"'\d+'", r"regex \d+"),
        ('"[^"]*"', 'regex "[^"]*"'),
        (r"\$colours{2}", None),
        ("colours", 'choices ["red", "blue"]'),
        ("score", "regex [1-5]"),
        ("compiled", "regex (?i)a[b]"),
        ("int", "regex -?(0|[1-9]"),
        ("date", "regex [0-9]{4}"),
        ("Colour", 'choices ["red", "7"]'),
        ("word", "regex word"),
        ("{colours}", None),
    ],
)
def test_what_a_line_means(notebook: Notebook, line: str, title: str | None) -> None:
    notebook.names.update(colours=["red", "blue"], score="[1-5]", compiled=re.compile("a[b]", re.I), Colour=Colour)
    if title is None:  # nothing of the notebook is put into a pattern
        assert "regex " + line in notebook.run(f"%sgl fsm {line}").out
    else:
        assert notebook.good(f"%sgl fsm {line}").out.startswith(f"compressed automaton of {title}")


def test_lines_of_other_verbs_are_filled_in(notebook: Notebook) -> None:
    notebook.names["where"] = "no/such/model"
    assert "no/such/model cannot be loaded" in notebook.usage_error("%sgl load {where}")
    assert "no/such/model cannot be loaded" in notebook.usage_error("%sgl load $where")
    local = "def f():\n    inner = 'no/such/thing'\n    get_ipython().run_line_magic('sgl', 'load {inner}')\nf()"
    assert "no/such/thing cannot be loaded" in notebook.usage_error(local)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("fsm", "required: PATTERN_OR_NAME"),
        ("fsm (", "is not a regular expression"),
        (r"fsm (a+)\1", "cannot constrain generation"),
        (r"fsm (?!)", "matches no text"),
        ("fsm mock", "is not a type"),
        ("fsm nothing", "no value to choose from"),
        ("fsm Halves", "this JSON schema has no automaton"),
        ("fsm (((a{0,900}){0,900}){0,900})", "positions"),
    ],
)
def test_what_cannot_be_shown_is_said(notebook: Notebook, line: str, part: str) -> None:
    pydantic = pytest.importorskip("pydantic")
    halves = pydantic.create_model("Halves", n=(Annotated[float, pydantic.Field(multiple_of=0.5)], ...))
    notebook.names.update(Halves=halves, nothing=[])
    assert part in notebook.usage_error(f"%sgl {line}")


def test_values_as_constraints() -> None:
    assert constraint_of(Literal["a", 2]).value == ("a", "2")
    assert constraint_of(Colour).value == ("red", "7")
    assert constraint_of({"b", "a"}).value == ("a", "b")
    assert constraint_of(Annotated[str, sgl.Regex("[A-Z]{3}")]).value == "[A-Z]{3}"
    assert constraint_of(re.compile("a.", re.S | re.X)).value == "(?sx)a."
    assert constraint_of(date).kind == "regex"
    with pytest.raises(ValueError, match="any text"):
        constraint_of(str)


def test_in_python() -> None:
    for picture in (sgl.fsm("yes|no"), sgl.fsm(regex="yes|no"), sgl.fsm(choices=["yes", "no"]), sgl.fsm(["yes", "no"])):
        assert "es ═▶" in str(picture)
        assert set(picture._repr_mimebundle_()) == {"text/html", "text/plain"}
    with pytest.raises(ValueError, match="one constraint"):
        sgl.fsm()
    with pytest.raises(ValueError, match="one constraint"):
        sgl.fsm("a", choices=["b"])


def test_a_model_of_pydantic(notebook: Notebook) -> None:
    pydantic = pytest.importorskip("pydantic")
    notebook.names["Place"] = pydantic.create_model("Place", city=(str, ...), open=(bool, ...))
    assert '═ {"city": " ═▶' in notebook.good("%sgl fsm Place").out


def test_completion_and_help(notebook: Notebook) -> None:
    notebook.names.update(colours=["red"], numbers=[1], pattern="a+")
    assert {"fsm", "free"} <= {*notebook.complete("%sgl f")}
    assert {"colours", "pattern", "int", "date"} <= {*notebook.complete("%sgl fsm ")}
    assert "numbers" not in notebook.complete("%sgl fsm ")
    assert notebook.complete("%sgl fsm col") == ["colours"]
    assert re.search(r"%sgl fsm PATTERN_OR_NAME +the automaton", notebook.good("%sgl help").out)


def test_a_gen_by_its_name(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    log = EventLog()
    monkeypatch.setattr(current, "event_log", lambda: log)
    for n, (kind, text) in enumerate([("regex", "[1-5]"), ("choices", '["yes", "no"]'), ("regex", "x" * 4000)]):
        log.emit("run", CallBegan("s", f"c{n}", "gen", f"gen{n}"))
        log.emit("engine", Constrained(f"c{n}", kind, text, "automaton"))
    assert "regex [1-5]:" in notebook.good("%sgl fsm gen0").out
    assert 'choices ["yes", "no"]:' in notebook.good("%sgl fsm gen1").out
    assert "regex gen2:" in notebook.good("%sgl fsm gen2").out
    assert {"gen0", "gen1"} <= {*notebook.complete("%sgl fsm gen")}


@pytest.fixture
def engine(notebook: Notebook) -> Any:
    """A tiny model, loaded from a variable."""
    notebook.names["module"], notebook.names["words"] = tiny_model("llama"), byte_tokenizer()
    notebook.good("%sgl load module --tokenizer words --kv-tokens 300")
    yield current.default_backend()
    notebook.run("%sgl free")


def test_the_log_says_what_a_gen_ran_under(notebook: Notebook, engine: Any) -> None:
    before = engine.log.seq
    notebook.good("%%sgl r -t 0\n'x'\nscore: int = gen()\nfree = gen(max_tokens=2)\ncode = gen(regex='[a-c]{2}')")
    bodies = [event.body for event in engine.log.since(before)]
    names = {body.call_id: body.name for body in bodies if isinstance(body, CallBegan)}
    said = {names[body.call_id]: body for body in bodies if isinstance(body, Constrained)}
    assert {name: (body.kind, body.by) for name, body in said.items()} == {
        "score": ("regex", "automaton"),
        "code": ("regex", "automaton"),
    }
    assert said["code"].text == "[a-c]{2}"
    assert not any(isinstance(body, ConstraintGraph) for body in bodies), "drawn when it is asked for, not before"
    assert "regex [a-c]{2}: 3 states" in notebook.good("%sgl fsm code").out
    (graph,) = [e.body for e in engine.log.since(before) if isinstance(e.body, ConstraintGraph)]
    assert graph == engine.fsm(regex="[a-c]{2}")
    assert engine.fsm(choices=["yes", "no"]).kind == "choices"
    with pytest.raises(ValueError, match="needs a constraint"):
        engine.fsm()
    with pytest.raises(ValueError, match="have no automaton"):
        engine.fsm(grammar='start: "a"')
    assert engine.fsm(json_schema={"type": "boolean"}).kind == "schema"


def test_llguidance_is_named(notebook: Notebook, engine: Any) -> None:
    before = engine.log.seq
    engine.generate("x", max_tokens=4, grammar='start: "ab"')
    (body,) = [e.body for e in engine.log.since(before) if isinstance(e.body, Constrained)]
    assert (body.kind, body.by) == ("grammar", "llguidance")


def test_drawing_is_safe_beside_runs() -> None:
    failed: list[BaseException] = []

    def draw() -> None:
        try:
            for n in range(20):
                sgl.fsm(f"[a-z]{{1,{n + 1}}}x")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
