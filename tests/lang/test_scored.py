"""What the log has of a select: its choices with their scores, in bounds, before the variable is set."""

from __future__ import annotations

import json
import math

import pytest

import nbsglang as sgl
from nbsglang.events import CallBegan, CallEnded, EventLog, Scored, VariableSet
from nbsglang.lang.choices import Decided
from nbsglang.lang.scored import IMPOSSIBLE, MAX_CHOICES, MAX_TEXT, scored
from nbsglang.viz.fold import fold
from nbsglang.viz.page import streams_html
from nbsglang.viz.scene import Scene
from nbsglang.viz.state import Weighed
from tests.viz.scenes import HOSTILE

SCORES = {"yes": [-0.1, -0.3, -0.2], "no": [-1.0, -2.0], "perhaps": -4.0}


def run(log: EventLog, **options: object) -> sgl.ProgramState:
    @sgl.function
    def program(s: sgl.ProgramState) -> None:
        s += "Q? " + sgl.select("a", list(SCORES), **options)  # type: ignore[arg-type]

    return program.run(backend=sgl.MockBackend(scores=SCORES), log=log)


def test_the_log_has_the_scores_before_the_value() -> None:
    log = EventLog()
    state = run(log)
    bodies = [
        event.body for event in log.since() if isinstance(event.body, (CallBegan, CallEnded, Scored, VariableSet))
    ]
    assert [type(body).__name__ for body in bodies] == ["CallBegan", "CallEnded", "Scored", "VariableSet"]
    began, told = bodies[0], bodies[2]
    meta = state.get_meta_info("a")
    assert isinstance(began, CallBegan)
    assert isinstance(told, Scored)
    assert (told.stream, told.call_id) == (began.stream, began.call_id)
    assert (told.choices, told.chosen, told.n_choices) == (("yes", "no", "perhaps"), 0, 3)
    assert told.scores == pytest.approx(meta["normalized_prompt_logprobs"])
    assert told.shares == pytest.approx(meta["probabilities"])


def test_they_are_the_scores_of_the_method_and_the_shares_of_the_temperature() -> None:
    log = EventLog()
    state = run(log, choices_method=sgl.unconditional_likelihood_normalized, temperature=0.5, seed=1)
    (told,) = (event.body for event in log.since() if isinstance(event.body, Scored))
    meta = state.get_meta_info("a")
    given = dict(zip(meta["choices"], meta["normalized_unconditional_prompt_logprobs"], strict=True))
    assert dict(zip(told.choices, told.scores, strict=True)) == pytest.approx(given)
    assert dict(zip(told.choices, told.shares, strict=True)) == pytest.approx(
        dict(zip(meta["choices"], meta["probabilities"], strict=True))
    )
    assert told.choices[told.chosen] == state["a"]
    assert list(told.scores) == sorted(told.scores, reverse=True)


def test_the_event_has_bounds_and_finite_numbers() -> None:
    choices = [f"{n}" for n in range(100)]
    scores = [-math.inf, *(-float(n) for n in range(1, 100))]
    told = scored("s", "c", choices, Decided("0", {}, scores, [0.01] * 100))
    assert (len(told.choices), told.n_choices, told.chosen) == (MAX_CHOICES, 100, MAX_CHOICES - 1)
    assert (told.choices[-1], told.scores[-1]) == ("0", IMPOSSIBLE)
    assert told.choices[:3] == ("1", "2", "3")
    assert "Infinity" not in json.dumps(told)
    long = scored("s", "c", ["x" * 5000, "y"], Decided("y", {}, [-1.0, -2.0], [0.7, 0.3]))
    assert [len(choice) for choice in long.choices] == [MAX_TEXT, 1]
    assert long.chosen == 1


def scene(log: EventLog) -> Scene:
    """The streams of a log."""
    view = fold(log.since())
    return Scene(view, tuple(view.streams.values()))


def test_a_stream_shows_them_with_the_choice() -> None:
    log = EventLog()
    run(log)
    part = scene(log).streams[0].parts[-1]
    assert part.kind == "choice"
    assert [(each.choice, each.is_chosen) for each in part.scores] == [("yes", True), ("no", False), ("perhaps", False)]
    assert part.scores[0].share == pytest.approx(0.77, abs=0.01)
    assert "yes 77.2%, no 21.0%, perhaps 1.7%" in streams_html(scene(log))


@pytest.mark.parametrize("text", HOSTILE)
def test_choices_end_nothing_in_a_page(text: str) -> None:
    log = EventLog()
    run(log)
    drawn = scene(log)
    parts = drawn.streams[0].parts
    parts[-1] = parts[-1]._replace(scores=(Weighed(text, -0.5, 0.5, False),) * 40)
    page = streams_html(drawn)
    assert page.count("<") == page.count(">") == streams_html(scene(log)).count("<")
    assert "32 more" in page
    for char in ("\x1b", "\u202e", "\x00"):
        assert char not in page
