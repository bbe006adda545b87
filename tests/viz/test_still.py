"""Still pictures: what they say, and that no text of a model gets out of its place."""

from __future__ import annotations

import base64
import io
import re
import xml.etree.ElementTree as ET

import pytest
from rich.console import Console

from nbsglang.events import (
    Event,
    Finished,
    NodeAdded,
    NodeEvicted,
    NodeLocked,
    NodeSplit,
    NodeTouched,
    Step,
    TokenTexts,
)
from nbsglang.viz.fold import View, fold
from nbsglang.viz.still import MAX_NODES, numbers_line, tree_dot, tree_html, tree_svg, tree_text
from nbsglang.viz.text import elide, shown

HOSTILE = [
    "</script><script>alert(1)</script>", "\x1b[31mred\x1b[0m\x1b]0;title\x07", '"];n9 [label="x', "[bold]x[/bold]",
    "a\\", "\\N\\G\\l", "<img src=x onerror=y>", "' onload='z", "\u202eevil", "]]>", "&lt;", "\x00\x7f\x9b31m", "{a|b}",
    "\ud800", "line\nbreak\r", "[link=file:///etc]x[/link]", ":smile:",
]  # fmt: skip
STEP = Step(1, 3, 1, 1, 0, 10, 5, 2, 0.0, 0.0, 0.1, 0.0)


def view_of(text: str) -> View:
    bodies = [
        TokenTexts((1, 2, 3), (text, "plain", "x" * 500)),
        NodeAdded(1, 0, (1, 2), 1, 0),
        NodeAdded(4, 0, (1,), 2, 0),
        STEP,
        NodeSplit(1, 2, 1, 5),
        NodeTouched((2,), 3, 5),
        NodeTouched((2,), 4, 6),
        NodeAdded(3, 2, (3,), 5, 5),
        NodeLocked(3, 1),
        NodeEvicted(4, 1),
        Finished(1, "c", "stop", 10, 4, 2),
    ]
    return fold(Event(n, 0, "e", body) for n, body in enumerate(bodies, 1))


def terminal(view: View, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=True, color_system="truecolor").print(tree_text(view, width))
    return out.getvalue()


def test_what_a_terminal_shows() -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal(view_of("hello")))
    lines = plain.splitlines()
    assert lines[0] == "3 nodes, 3 tokens"
    assert "● ×2 🔒 1 hello" in plain
    assert "＋ 🔒 1 xxx" in plain
    assert "…xxx" in plain
    assert "✕ 1 hello" in plain
    assert "1 plain" in plain


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_a_terminal(text: str) -> None:
    escapes = re.findall(r"\x1b(?:\[[0-9;]*m)?", terminal(view_of("safe")))
    out = terminal(view_of(text), 200)
    assert re.findall(r"\x1b(?:\[[0-9;]*m)?", out) == escapes  # only rich's own
    assert not re.search(r"[\x00-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", out)
    assert shown(text) in re.sub(r"\x1b\[[0-9;]*m", "", out)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_svg_and_html(text: str) -> None:
    svg = tree_svg(view_of(text))
    root = ET.fromstring(svg)  # well formed
    assert {element.tag.split("}")[1] for element in root.iter()} <= {
        "svg",
        "g",
        "title",
        "rect",
        "text",
        "defs",
        "pattern",
        "path",
    }
    assert not any(name.startswith("on") or "href" in name for element in root.iter() for name in element.attrib)
    assert any(shown(text, 300) in (element.text or "") for element in root.iter())
    html = tree_html(view_of(text))
    assert re.findall(r"<(\w+)", html) == re.findall(r"<(\w+)", tree_html(view_of("safe")))
    image = re.search(r'src="data:image/svg\+xml;base64,([^"]*)"', html)
    assert image is not None
    assert base64.b64decode(image[1]).decode() == svg


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_graphviz(text: str) -> None:
    dot = tree_dot(view_of(text))
    assert "\n\n" not in dot
    without = re.sub(r'"(?:[^"\\\n]|\\["\\])*"', '""', dot)  # the only escapes are those of quotes and backslashes
    assert '"' not in without.replace('""', "")
    assert without == re.sub(r'"(?:[^"\\\n]|\\["\\])*"', '""', tree_dot(view_of("safe")))


def test_the_numbers() -> None:
    assert numbers_line(view_of("x")) == (
        "hit rate 40% · 4 of 10 prompt tokens from the cache · 2 generated · step 1: 1 running, 0 waiting · "
        "pool 2 locked, 5 evictable, 10 free · 1 evicted, 0 preempted"
    )
    assert numbers_line(View()).startswith("hit rate 0%")


def test_empty_and_large_trees() -> None:
    for picture in (tree_svg(View()), tree_html(View()), tree_dot(View()), terminal(View())):
        assert picture
    deep = fold(Event(n, 0, "e", NodeAdded(n, n - 1, (n,), n, 0)) for n in range(1, 3001))
    wide = fold(Event(n, 0, "e", NodeAdded(n, 0, (n,), n, 0)) for n in range(1, 3001))
    for view in (deep, wide):
        assert tree_svg(view).count("<rect") == tree_dot(view).count("->") == MAX_NODES
    assert "2600 more nodes" in terminal(wide)


def test_boxes_are_tokens_wide_and_leaves_high() -> None:
    root = ET.fromstring(tree_svg(view_of("a")))
    boxes = [element.attrib for element in root.iter() if element.tag.endswith("rect")]
    assert [(float(box["x"]), float(box["width"]), int(box["height"])) for box in boxes] == [
        (0.0, 480.0, 42), (480.0, 480.0, 20), (480.0, 480.0, 20), (0.0, 480.0, 20)
    ]  # fmt: skip


def test_text() -> None:
    assert shown("a\x1b[1m\n\t\x7f\u202e\u200b") == "a␛[1m⏎␉␡<U+202E><U+200B>"
    assert shown("👨‍👩‍👧 é日") == "👨‍👩‍👧 é日"
    assert [elide("abcdef", n) for n in (6, 5, 2, 1, None)] == ["abcdef", "ab…ef", "a…", "…", "abcdef"]
    assert shown("\x00" * 10**6, 9) == "␀␀␀␀…␀␀␀␀"
