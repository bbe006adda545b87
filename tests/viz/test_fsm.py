"""Pictures of automata: what is folded means the same, everything is bounded, and no text gets out of its place.

Not here: how automata are compressed (`tests/engine/grammar/test_matcher.py`).
"""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.graph import constraint_graph
from nbsglang.events import CallBegan, CallEnded, Constrained, ConstraintGraph, EventLog, StreamBegan, VariableSet
from nbsglang.viz import fsm as fsm_module
from nbsglang.viz import image, page
from nbsglang.viz.fold import fold
from nbsglang.viz.fsm import MAX_ROWS, fsm_display, fsm_dot, fsm_svg, fsm_text
from nbsglang.viz.fsm_fold import MAX_EDGES, MAX_NODES, Fsm, folded
from nbsglang.viz.text import shown
from tests.viz.scenes import HOSTILE, events_of
from tests.viz.test_pictures import QUOTED, Tags, has_dot, has_hidden, images

DATE = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"


def of(pattern: str) -> ConstraintGraph:
    return constraint_graph(Constraint("regex", pattern))


def choices(*texts: str) -> ConstraintGraph:
    return constraint_graph(Constraint("choices", texts))


def hostile(text: str) -> ConstraintGraph:
    """A graph as a log may have it: the text in all places."""
    edges = ((0, 1, text, 0), (1, 2, text * 2, len(text) * 2), (1, 1, text, 0), (7, 8, text, 0))
    return ConstraintGraph(text, text, 0, (0, 1, 2), edges, (2, 99), False)


def language(fsm: Fsm) -> re.Pattern[str]:
    """A regular expression of what is drawn, by taking nodes out; loops that count go on their own node first."""
    ways: dict[tuple[int, int], list[str]] = {}
    for edge in fsm.edges:
        text = re.escape(edge.text) if edge.is_forced else _class(edge.text)
        ways.setdefault((edge.source, edge.target), []).append(f"(?:{text}){edge.times}")
    start, end = -1, -2
    assert fsm.start is not None
    ways[start, fsm.start] = [""]
    for node in fsm.accepting:
        ways[node, end] = [""]
    joined = {way: f"(?:{'|'.join(texts)})" for way, texts in ways.items()}
    for node in range(fsm.n_nodes):
        counts = [e for e in fsm.edges if e.source == e.target == node and e.times]
        again = joined.pop((node, node), "")
        loop = again if counts else f"{again}*" if again else ""
        into = {a: text for (a, b), text in joined.items() if b == node}
        outof = {b: text for (a, b), text in joined.items() if a == node}
        joined = {way: text for way, text in joined.items() if node not in way}
        for a, before in into.items():
            for b, after in outof.items():
                text = f"(?:{before}{loop}{after})"
                joined[a, b] = f"(?:{joined[a, b]}|{text})" if (a, b) in joined else text
    return re.compile(joined[start, end])


def _class(text: str) -> str:
    if text.startswith("[") or text in {r"\w", r"\d", r"\s"}:
        return text
    return "(?s:.)" if text == "any" else text if text.startswith("\\") else re.escape(text)


# ------------------------------------------------------------------------------------------------- what is drawn


@pytest.mark.parametrize(
    ("pattern", "n_nodes", "labels"),
    [
        ("[a-z]+", 2, {"[a-z]"}),
        (r"[ab]{4}-[ab]{4}", 4, {"[a-b]{4}", "-"}),
        ('"[a-z]{1,16}"', 4, {'"', "[a-z]", "[a-z]{0,15}"}),
        (r"-?(0|[1-9][0-9]{0,18})", 4, {r"\-", "0", "[1-9]", "[0-9]{0,18}"}),
        (r"a{3,}b", 3, {"aaa", "a", "b"}),
        ("yes|no", 4, {"y", "n", "es", "o"}),
    ],
)
def test_what_only_counts_is_folded(pattern: str, n_nodes: int, labels: set[str]) -> None:
    fsm = folded(of(pattern))
    assert {edge.text + edge.times for edge in fsm.edges} == labels
    assert fsm.n_nodes <= n_nodes
    assert fsm.start == 0


def test_equal_states_are_one() -> None:
    graph = of(DATE)
    fsm = folded(graph)
    assert (len(graph.nodes), fsm.n_nodes) == (17, 11)
    assert len(fsm.accepting) == 1


_PATTERNS = [
    DATE, "[a-z]+", '"[a-z]{1,5}",', r"-?(0|[1-9][0-9]{0,4})", "(a|aa|aaa)*b{3,5}", "a{2,4}b?c{0,3}", "x[ab]{0,3}(ab)*",
    r"[ab]{1,3} [bc]+ [cd]{1,3}", r"(\+1 )?\(\d{3}\) \d{3}", '([a-c]{1,3}"|[ab]{2,4}-)z', "(a{3}){2,}", "[ab]*a[ab]{2}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", _PATTERNS)
def test_what_is_drawn_means_the_same(pattern: str) -> None:
    drawn, meant = language(folded(of(pattern))), re.compile(pattern)
    letters = "".join(dict.fromkeys(re.sub(r"\\d", "012", pattern) + "ab019"))

    @settings(max_examples=60, deadline=None, database=None)
    @given(st.one_of(st.from_regex(meant, fullmatch=True), st.text(letters, max_size=14)), st.data())
    def check(text: str, data: st.DataObject) -> None:
        assert bool(drawn.fullmatch(text)) == bool(meant.fullmatch(text)), text
        at = data.draw(st.integers(0, len(text)))
        for other in (text[:at] + text[at + 1 :], text[:at] + text[at:][:1] + text[at:]):
            assert bool(drawn.fullmatch(other)) == bool(meant.fullmatch(other)), other

    check()


def test_what_is_left_out_is_said() -> None:
    graph = of("(ab|cd|[xyz]){500}")
    assert len(graph.nodes) == 200
    assert not graph.is_whole
    assert "(the rest is left out)" in fsm_text(graph)
    assert any(edge.times.endswith("…}") for edge in folded(of("a?[b-d]{0,900}")).edges)


# --------------------------------------------------------------------------------------------------------- texts


def test_what_the_text_says() -> None:
    assert fsm_text(choices("yes", "no", "A b ")).splitlines() == [
        'compressed automaton of choices ["yes", "no", "A b "]: 7 states, 6 edges, 3 forced',
        "    → (0) ─ A ─▶ (1)",
        "          ─ n ─▶ (2)",
        "          ─ y ─▶ (3)",
        "      (1) ═ ␣b␣ ═▶ ((4))",
        "      (2) ═ o ═▶ ((4))",
        "      (3) ═ es ═▶ ((4))",
    ]
    assert "  ((1)) ─ [a-z] ─▶ ((1))" in fsm_text(of("[a-z]+"))
    assert '═ {⏎  "n":␣ ═' in fsm_text(of('{\n  "n": [0-9]'))


def test_texts_are_bounded() -> None:
    long = choices("x" * 3000, "y" + "z " * 3000)
    text = fsm_text(long)
    assert max(map(len, text.splitlines())) <= 160
    assert "…" in text
    assert max(len(edge[2]) for edge in long.edges) <= 200
    assert {edge[3] for edge in long.edges} == {0, 2999, 6000}
    assert len(long.text) <= 4000
    many = choices(*(f"{chr(0x4E00 + n)}!" for n in range(190)))
    assert len(fsm_text(many).splitlines()) == MAX_ROWS + 2
    assert fsm_text(many).endswith("more edges")


@has_dot
def test_long_chains_are_wrapped_and_cut() -> None:
    svg = fsm_svg(choices("Once upon a time there was a house. " * 20, "no"))
    assert svg is not None
    lines = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert max(map(len, (line.replace("&#160;", " ") for line in lines))) <= 28
    assert sum("…" in line for line in lines) == 1
    assert image.width_of(svg) <= 600


@has_dot
def test_a_wide_picture_is_drawn_top_down() -> None:
    wide = of("[0-9]{1,3}".join(["begin", "middle", "of", "the", "text", "and", "end"]))
    svg = fsm_svg(wide)
    assert svg is not None
    assert image.width_of(svg) <= 900


@has_dot
def test_the_look() -> None:
    source = fsm_dot(choices("A", "Above", "Other"))
    assert source.count("peripheries=2") == 2
    assert re.search(r"start -> n0", source)
    assert len(re.findall(r'label=" ove ".*penwidth=2.4', source)) == 1
    html = fsm_display(of(DATE)).html
    (svg,) = images(html)
    assert "prefers-color-scheme:dark" in svg
    assert "━" in Tags(html).text


# --------------------------------------------------------------------------------------------- fallback and bounds


def test_without_graphviz_there_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    picture = fsm_display(of('"<b>"|x'))
    assert images(picture.html) == []
    assert str(picture) in Tags(picture.html).text
    assert "<b>" not in picture.html


def test_a_graph_out_of_a_log_is_bounded() -> None:
    n = 1000
    edges = tuple((a, a + 1, "x", 0) for a in range(n)) * 3
    graph = ConstraintGraph("regex", "x" * 10_000, 5000, tuple(range(n)), edges, tuple(range(0, n, 7)), True)
    fsm = folded(graph)
    assert fsm.n_nodes <= MAX_NODES
    assert len(fsm.edges) <= MAX_EDGES
    assert fsm.start is None
    assert len(fsm_text(graph)) < 10_000
    circle = ConstraintGraph("regex", "x", 0, (0, 1), ((0, 1, "x", 0), (1, 0, "x", 0)), (), True)
    assert fsm_text(circle)
    assert folded(ConstraintGraph("regex", "", 0, (), (), (), True)).n_nodes == 0


@pytest.mark.parametrize("n", [3, 40])
def test_any_graph_can_be_folded(n: int) -> None:
    @settings(max_examples=60, deadline=None, database=None)
    @given(
        st.lists(st.tuples(st.integers(0, n), st.integers(0, n), st.sampled_from("ab"), st.integers(0, 1))),
        st.lists(st.integers(0, n)),
        st.booleans(),
    )
    def check(edges: list[tuple[int, int, str, int]], accepting: list[int], is_whole: bool) -> None:
        graph = ConstraintGraph("regex", "x", 0, tuple(range(n)), tuple(edges), tuple(accepting), is_whole)
        fsm = folded(graph)
        assert all({edge.source, edge.target} <= set(range(fsm.n_nodes)) for edge in fsm.edges)
        fsm_text(graph)

    check()


# ------------------------------------------------------------------------------------------------- hostile text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_text_and_html(text: str) -> None:
    picture = fsm_display(hostile(text))
    assert not has_hidden(str(picture) + picture.html)
    tags = {tag for tag, _ in Tags(picture.html).tags}
    assert tags <= {"div", "b", "img", "pre", "style"}
    assert not any(name.startswith("on") for _, names in Tags(picture.html).tags for name in names)


@has_dot
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_svg(text: str) -> None:
    svg = fsm_svg(hostile(text))
    assert svg is not None
    root = ET.fromstring(svg)
    assert {element.tag.split("}")[1] for element in root.iter()} <= {
        "svg", "g", "text", "path", "style", "ellipse", "polygon", "polyline",
    }  # fmt: skip
    assert not any(name.startswith("on") or "href" in name for element in root.iter() for name in element.attrib)
    texts = "".join(element.text or "" for element in root.iter() if element.tag.endswith("text"))
    assert shown(text, 40).replace(" ", "") in re.sub("[\xa0 ␣]", "", texts)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_graphviz(text: str) -> None:
    source = fsm_dot(hostile(text))
    without = re.sub(QUOTED, '""', source)
    assert '"' not in without.replace('""', "")
    assert without == re.sub(QUOTED, '""', fsm_dot(hostile("safe and sound")))


# ----------------------------------------------------------------------------------------------------- the log


def test_graphs_in_a_log_come_back(tmp_path: object) -> None:
    log = EventLog()
    graphs = [of(DATE), choices("yes", "no\ud7ff"), of("(ab|cd|[xyz]){500}")]
    for graph in graphs:
        log.emit("e", graph)
    log.save(f"{tmp_path}/log.jsonl")
    again = EventLog.load(f"{tmp_path}/log.jsonl")
    assert [event.body for event in again.since()] == graphs
    assert list(fold(again.since()).graphs.values()) == graphs
    log.save(f"{tmp_path}/redacted.jsonl", redact=True)
    (first, *_) = EventLog.load(f"{tmp_path}/redacted.jsonl").since()
    assert isinstance(first.body, ConstraintGraph)
    assert {edge[2] for edge in first.body.edges} == {""}
    assert first.body.text == ""
    assert fsm_text(first.body)


def test_a_view_remembers_some_graphs() -> None:
    view = fold(events_of(*[of(f"a{n}") for n in range(50)]))
    assert len(view.graphs) == 32
    assert ("regex", "a49") in view.graphs


@pytest.mark.parametrize("text", ["[1-5]", *HOSTILE])
def test_a_gen_says_what_it_ran_under(text: str) -> None:
    bodies = (
        StreamBegan("r", "", 0, "r"), CallBegan("r", "r.1", "gen", "score"),
        Constrained("r.1", "regex", text, "automaton"), CallEnded("r", "r.1", ""),
        VariableSet("r", "score", "4"), Constrained("nobody's", "regex", text, "automaton"),
    )  # fmt: skip
    view = fold(events_of(*bodies))
    (stream,) = view.streams_of("e")
    assert stream.calls["r.1"].under == f"regex {text}"
    (part,) = stream.parts
    assert part.under == f"regex {text}"
    html = page._piece_html(part, False)
    (tag,) = [names for tag, names in Tags(html).tags if "title" in names]
    assert tag == ("title", "style")
    assert not has_hidden(html)


def test_the_module_draws_without_an_engine() -> None:
    assert not [name for name in vars(fsm_module) if "engine" in str(getattr(vars(fsm_module)[name], "__module__", ""))]
