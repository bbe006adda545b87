"""Pictures: what they say, and that no text of a model gets out of its place in any of them."""

from __future__ import annotations

import base64
import io
import re
import shutil
import unicodedata
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from rich.console import Console, RenderableType

from nbsglang.events import Event, NodeAdded
from nbsglang.viz import dot, gallery, page
from nbsglang.viz.dot import dot_svg, tree_dot
from nbsglang.viz.fold import View, fold
from nbsglang.viz.gallery import Gallery, Section
from nbsglang.viz.icicle import icicle_svg
from nbsglang.viz.lines import tree_text
from nbsglang.viz.numbers import engine_figures, line, run_figures
from nbsglang.viz.picture import tree_display
from nbsglang.viz.prune import pruned
from nbsglang.viz.scene import Scene
from nbsglang.viz.terminal import tree_rich
from nbsglang.viz.text import elide, n_short, shown, shown_lines
from tests.viz.scenes import HOSTILE, events_of, scene_of, tree_view

ALL = ("numbers", "streams", "tree")
has_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="needs graphviz")
QUOTED = r'"(?:[^"\\\n]|\\["\\n])*"'  # the only escapes are those of quotes and backslashes, and our line ends


def terminal(picture: RenderableType, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=True, color_system="truecolor").print(picture)
    return out.getvalue()


def images(html: str) -> list[str]:
    return [base64.b64decode(data).decode() for data in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)]


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def has_hidden(text: str) -> bool:
    """Whether a character in it can move, colour or hide something."""
    return any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} and char not in "\n\u200d" for char in text)


# ------------------------------------------------------------------------------------------------- what they say


def test_what_the_text_says() -> None:
    text = Gallery(ALL).text(scene_of("hello"))
    assert text.splitlines()[:3] == [
        "▶ hello running · 1.5 s",
        "cached 18 · prefilled 12 · generated 6 · hit rate 60% · first token 1.0 s · speed 2.6 tok/s · "
        "pool 2 locked, 5 evictable, 10 free",
        "… hello waiting",
    ]
    assert "\n    ▶ branch hello running · 6 cached · 4 prefilled · 2 generated · first token 500 ms" in text
    for line_ in ("      ▸ hello: helloplain", "      ◆ hello: hello", "      ▹ hello: helloplain", "  = hello: hello"):
        assert f"\n{line_}\n" in text
    assert "\nradix tree: 3 nodes, 6 tokens\n" in text
    assert "\n  ●+ 2 (locked) helloplain\n" in text
    assert text.endswith("\n  ✕ 1 hello")


def test_what_html_says() -> None:
    html = Gallery(ALL).html(scene_of("hello", "failed"))
    text = Tags(html).text
    for words in ("✗ hello failed · 1.5 s", "▶ branch hello running", "▸ hello: helloplain▌", "◆ hello: hello",
                  "▹ hello: helloplain", "= hello: hello", "hit rate 60%", "+ new ● hit ✕ evicted"):  # fmt: skip
        assert words in text
    assert 'alt="radix tree: 3 nodes, 6 tokens"' in html
    assert "var(--jp-layout-color1,var(--vscode-editor-background,#fff))" in html
    assert "var(--jp-content-font-color1,var(--vscode-editor-foreground,#222))" in html


def test_what_a_terminal_shows() -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal(Gallery(ALL).rich(scene_of("hello"), 100)))
    for words in ("▶ hello running · 1.5 s", "├── ▶ branch hello  running · 6 cached", "▸ hello: helloplain",
                  "●+ 🔒 2 helloplain", "✕ 1 hello"):  # fmt: skip
        assert words in plain
    small = terminal(Gallery(ALL).rich(scene_of("hello"), 100, 6))
    assert len(small.splitlines()) <= 14


def test_the_marks_of_a_tree() -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal(tree_rich(Scene.of_engine(tree_view("hello")), 80), 80))
    assert plain.splitlines()[0].rstrip() == "radix tree: 3 nodes, 3 tokens"
    for words in ("●×2 🔒 1 hello", "+ 🔒 1 xxx", "…xxx", "✕ 1 hello", "1 plain"):
        assert words in plain


def test_the_numbers() -> None:
    assert line(engine_figures(tree_view("x"))) == (
        "hit rate 40% · prompt tokens 10, 4 of them cached · generated 2 · step 1 1 running, 0 waiting · "
        "memory 1 tokens evicted, 0 preempted · pool 2 locked, 5 evictable, 10 free"
    )
    assert line(engine_figures(View())).startswith("hit rate 0%")
    stats = {"cached_tokens": 3, "computed_tokens": 1, "generated_tokens": 5, "first_token_seconds": 0.25}
    assert line(run_figures(Scene(View(), stats=stats))) == (
        "cached 3 · prefilled 1 · generated 5 · hit rate 75% · first token 250 ms"
    )
    lost = fold(Event(n, 0, "e", NodeAdded(n, 0, (n,), n, 0)) for n in (4, 9))
    assert "log 7 events were lost" in line(engine_figures(lost))


def test_pictures_for_display() -> None:
    view = tree_view("hello")
    tree = tree_display(view)
    assert set(tree._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert repr(tree).startswith("hit rate 40%")
    assert len(images(tree._repr_html_())) == 1


def test_images_are_as_dark_as_the_page() -> None:
    """Inside an image a dark system is asked for by the element's `color-scheme` alone, so that has to be said."""
    html = Gallery(ALL).html(scene_of("hello"))
    classes = set(re.findall(r'<img class="([^"]+)"', html))
    assert len(classes) == 1
    light, dark = re.findall(rf"([^{{}}]*)\.{classes.pop()}\{{color-scheme:(?:light|dark)\}}", html)
    assert light.endswith("<style>")
    for said in (
        "[data-jp-theme-light=false]",
        ".vscode-dark",
        "[theme=dark]",
    ):  # JupyterLab and nbconvert, VS Code, Colab
        assert said in dark
    assert html.count("<style>") == 1
    assert "<style" not in Gallery(("numbers", "streams")).html(scene_of("hello")), "where there is no image"


# ------------------------------------------------------------------------------------------------- hostile text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_plain_text(text: str) -> None:
    assert not has_hidden(Gallery(ALL).text(scene_of(text)))
    assert not has_hidden(str(tree_display(tree_view(text))))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_a_terminal(text: str) -> None:
    escapes = re.findall(r"\x1b(?:\[[0-9;]*m)?", terminal(Gallery(ALL).rich(scene_of("safe"), 300), 300))
    out = terminal(Gallery(ALL).rich(scene_of(text), 300), 300)
    assert re.findall(r"\x1b(?:\[[0-9;]*m)?", out) == escapes  # only rich's own
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert not has_hidden(plain)
    assert plain.count(shown(text)) >= 8


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_html(text: str) -> None:
    html = Gallery(ALL).html(scene_of(text))
    tags = Tags(html)
    assert tags.tags == Tags(Gallery(ALL).html(scene_of("safe"))).tags
    assert tags.text.count(shown_lines(text)) + tags.text.count(shown(text)) >= 8
    assert not has_hidden(html)


@pytest.mark.parametrize("draw", [icicle_svg, pytest.param(lambda v, m: dot_svg(tree_dot(v, m)), marks=has_dot)])
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_svg(text: str, draw: object) -> None:
    view = tree_view(text)
    root = ET.fromstring(draw(view, view.marks))  # type: ignore[operator]  # well formed
    assert {element.tag.split("}")[1] for element in root.iter()} <= {
        "svg", "g", "title", "rect", "text", "defs", "pattern", "path", "style", "ellipse", "polygon", "polyline",
    }  # fmt: skip
    assert not any(name.startswith("on") or "href" in name for element in root.iter() for name in element.attrib)
    texts = "".join(element.text or "" for element in root.iter() if "text" in element.tag or "title" in element.tag)
    assert shown(text, 52).replace(" ", "") in texts.replace("\xa0", "").replace(" ", "")
    assert "@import" not in ET.tostring(root, "unicode")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_graphviz(text: str) -> None:
    source = tree_dot(tree_view(text))
    assert "\n\n" not in source
    without = re.sub(QUOTED, '""', source)
    assert '"' not in without.replace('""', "")
    assert without == re.sub(QUOTED, '""', tree_dot(tree_view("safe and sound")))


def test_a_long_text_without_spaces() -> None:
    scene = scene_of("x" * 10_000)
    html = Gallery(ALL).html(scene)
    assert len(html) < 30_000
    assert "overflow-wrap:anywhere" in html
    assert max(map(len, Gallery(ALL).text(scene).splitlines())) < 180


# --------------------------------------------------------------------------------------------------- large trees


def trees() -> list[View]:
    deep = [NodeAdded(n, n - 1, (n,), n, 0) for n in range(1, 3001)]
    wide = [NodeAdded(n, 0, (n,), n, 0) for n in range(1, 3001)]
    mixed = [NodeAdded(n, n // 3, tuple(range(n % 17)), n, 0) for n in range(1, 3001)]
    return [fold(events_of(*bodies)) for bodies in (deep, wide, mixed)]


def test_large_trees_are_folded() -> None:
    for view in trees():
        for limit in (1, 2, 10, 200):
            drawn = pruned(view, view.marks, limit)
            assert len(drawn) <= limit
            assert sum(d.n_nodes for d in drawn) == 3000  # nothing is left out without a word
            assert len({d.node.id for d in drawn if d.node}) == sum(d.node is not None for d in drawn)
            places = {0, *(d.node.id for d in drawn if d.node)}
            assert all(d.parent in places for d in drawn)
        assert tree_dot(view).count(" -> n") + tree_dot(view).count(" -> f") <= dot.MAX_NODES
        assert icicle_svg(view, view.marks).count("<rect") <= 401
        assert len(terminal(tree_rich(Scene.of_engine(view))).splitlines()) <= 61
    n_tokens = sum(len(node.tokens) for node in trees()[2].nodes.values())
    drawn = pruned(trees()[2], View().marks, 50)
    assert sum(d.n_tokens if d.node is None else len(d.node.tokens) for d in drawn) == n_tokens


def test_what_is_marked_is_rather_drawn() -> None:
    view = trees()[1]
    view.marks.clear()
    view.marks.hit(2999)
    drawn = pruned(view, view.marks, 5)
    assert 2999 in {d.node.id for d in drawn if d.node}
    assert "+2996 nodes, 3.0k tokens" in {d.words for d in drawn if d.node is None}


def test_a_run_is_drawn_without_what_it_has_not_touched() -> None:
    view = trees()[2]
    view.marks.clear()
    for node in range(2000, 2050):
        view.marks.hit(node)
    drawn = {d.node.id for d in pruned(view, view.marks, 200, 24) if d.node}
    assert drawn >= set(range(2000, 2050))
    assert all(view.marks.hits.keys() & {n, *_below(view, n)} for n in drawn)
    view.marks.clear()
    assert [d.n_nodes for d in pruned(view, view.marks, 200, 24) if d.node is None] == [3000]
    shown = tree_text(Scene(view, marks=view.marks))
    assert len(shown.splitlines()) == 2 < len(tree_text(Scene.of_engine(view)).splitlines())


def _below(view: View, node: int) -> list[int]:
    return [n for child in view.children().get(node, []) for n in (child.id, *_below(view, child.id))]


def test_a_log_that_makes_no_tree_is_drawn_all_the_same() -> None:
    view = fold(events_of(*[NodeAdded(n, max(0, n - 1), (n,), n, 0) for n in range(1, 9)]))
    view.marks.evicted = {n: view.nodes[n] for n in (3, 4)} | {20: view.nodes[8]}
    view.nodes[1].parent = 8  # a circle
    assert pruned(view, view.marks, 100) == []
    assert icicle_svg(view, view.marks)
    assert tree_dot(view)


def test_front_ends_take_no_text_for_maths() -> None:
    assert 'class="tex2jax_ignore' in Gallery(ALL).html(Scene(View()))  # JupyterLab typesets $...$ in HTML


def test_empty_pictures() -> None:
    for scene in (Scene(View()), Scene.of_engine(View())):
        assert Gallery(ALL).text(scene)
        assert Gallery(ALL).html(scene)
        assert terminal(Gallery(ALL).rich(scene, 80))
    assert icicle_svg(View(), View().marks)


def test_without_dot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    view = tree_view("hello")
    assert dot_svg(tree_dot(view)) is None
    assert images(tree_display(view).html) == [icicle_svg(view, view.marks)]


def test_a_dot_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for program in (shutil.which("false"), "/nowhere/dot"):
        monkeypatch.setattr(dot.shutil, "which", lambda name, program=program: program)
        assert dot_svg("digraph {}") is None


def test_boxes_are_tokens_wide_and_leaves_high() -> None:
    view = tree_view("a")
    boxes = [e.attrib for e in ET.fromstring(icicle_svg(view, view.marks)).iter() if e.tag.endswith("rect")][1:]
    assert [(float(box["x"]), float(box["width"]), int(box["height"])) for box in boxes] == [
        (0.0, 480.0, 42), (480.0, 480.0, 20), (480.0, 480.0, 20), (0.0, 480.0, 20)
    ]  # fmt: skip


# --------------------------------------------------------------------------------------------------- the gallery


def test_a_section_that_fails_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("no")

    for name in ALL:
        monkeypatch.setattr(gallery, "SECTIONS", {**gallery.SECTIONS, name: Section(broken, broken, broken)})
        shown_ones = Gallery(ALL)
        for _ in range(2):
            assert shown_ones.text(scene_of("x")) or name
            assert shown_ones.html(scene_of("x"))
            assert terminal(shown_ones.rich(scene_of("x"), 80))
        assert name in shown_ones.failures
        assert shown_ones.failures[name] == "RuntimeError: no"
        assert name not in shown_ones.names


def test_the_tree_is_drawn_again_only_when_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    n_drawn = 0

    def count(scene: Scene) -> str:
        nonlocal n_drawn
        n_drawn += 1
        return page.tree_html(scene)

    monkeypatch.setattr(
        gallery, "SECTIONS", {"tree": Section(gallery.lines.tree_text, count, gallery.terminal.tree_rich)}
    )
    one, scene = Gallery(("tree",)), scene_of("x")
    for _ in range(3):
        one.html(scene, live=True)
    assert n_drawn == 1
    scene.view.apply(Event(scene.view.seq + 1, 0, "e", NodeAdded(50, 0, (1,), 1, 0)))
    one.html(scene, live=True)
    assert n_drawn == 1  # too soon
    one.html(scene)
    one.html(scene)
    assert n_drawn == 2  # the last picture shows what is


def test_text() -> None:
    assert shown("a\x1b[1m\n\t\x7f\u202e\u200b") == "a␛[1m⏎␉␡<U+202E><U+200B>"
    assert shown_lines("a\x1b[1m\r\nb\tc\rd") == "a␛[1m\nb    c␍d"
    assert shown("👨‍👩‍👧 é日") == "👨‍👩‍👧 é日"
    assert [elide("abcdef", n) for n in (6, 5, 2, 1, None)] == ["abcdef", "ab…ef", "a…", "…", "abcdef"]
    assert [n_short(n) for n in (0, 999, 1000, 1234, 34_567, 5_600_000)] == ["0", "999", "1.0k", "1.2k", "34k", "5.6M"]
