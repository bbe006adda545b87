"""The line of `%%sgl`: what it means, and what is said about lines that mean nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.error import UsageError

from nbsglang.magics import SglMagics
from nbsglang.notebook.flags import CellLine, parse_cell_line, views_of

SETTINGS = SimpleNamespace(
    show="streams", plain=False, temperature=None, top_p=None, max_tokens=None, seed=None, timeout=None
)


def parse(line: str, **settings: Any) -> CellLine:
    return parse_cell_line(SglMagics.sgl.parser, line, SimpleNamespace(**{**vars(SETTINGS), **settings}))


def test_an_empty_line_takes_the_settings() -> None:
    line = parse("", temperature=0.5, show="tree,numbers", seed=3)
    assert (line.name, line.parameters, line.out) == ("", None, "")
    assert line.show == ("tree", "numbers")
    assert line.options == {"temperature": 0.5, "seed": 3}


def test_flags_win_over_settings() -> None:
    line = parse("-t 0 --show none --seed 0 --max-tokens 8 --top-p .5 --timeout 9", temperature=0.5, seed=3)
    assert line.show == ()
    assert line.options == {"temperature": 0, "seed": 0, "max_new_tokens": 8, "top_p": 0.5, "timeout": 9}


@pytest.mark.parametrize(
    ("text", "name", "parameters", "out"),
    [
        ("r", "r", None, "r"),
        ("-t 0 r", "r", None, "r"),
        ("-o r", "", None, "r"),
        ("judge -o r", "judge", None, "r"),
        ("judge()", "judge", "", "judge"),
        ("judge(essay, n=3)", "judge", "essay, n=3", "judge"),
        ('judge(a=")", b=[(1, 2)]) -q', "judge", 'a=")", b=[(1, 2)]', "judge"),
        ('-q judge(a, *rest, b: str = "x y")', "judge", 'a, *rest, b: str = "x y"', "judge"),
        ('-m "a folder (old)/x" r', "r", None, "r"),
    ],
)
def test_names_and_signatures(text: str, name: str, parameters: str | None, out: str) -> None:
    line = parse(text)
    assert (line.name, line.parameters, line.out) == (name, parameters, out)


def test_the_other_flags() -> None:
    line = parse('--from r0 -m "my model" -b --plain --cache off --budget 500 -q')
    assert (line.start, line.model, line.background, line.plain) == ("r0", "my model", True, True)
    assert (line.cache, line.budget, line.quiet) == ("off", 500, True)
    assert parse("--backend mine").backend == "mine"
    line = parse("--compare --trace 'my x.json' --show timeline,fsm")
    assert (line.compare, line.dry_run, line.trace, line.show) == (True, False, "my x.json", ("timeline", "fsm"))
    assert parse("--dry-run -m m").dry_run


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("--sed 3", "did you mean --seed?"),
        ("--temprature=0", "did you mean --temperature?"),
        ("--tokens 5", "did you mean --max-tokens?"),
        ("--zzz", "its flags are --out"),
        ("-z", "no flag -z"),
        ("--seed", "expected one argument"),
        ("--seed x", "invalid int value: 'x'"),
        ("--seed=1 2r", "must be a name of Python, not '2r'"),
        ("for", "must be a name of Python, not 'for'"),
        ("-o a.b", "-o must be a name of Python"),
        ("a b", "cannot use 'b'"),
        ("judge(a", "the bracket after judge is not closed"),
        ("-m 'x", "no closing quotation"),
        ("--cache of", "invalid choice: 'of'"),
        ("--show strems", "did you mean streams?"),
        ("--show tree,none", "no view 'none'"),
        ("--show ,", "--show needs views"),
        ("-t -1", "temperature must be between 0"),
        ("--top-p 2", "top_p must be between 0 and 1"),
        ("--timeout 0", "timeout must be seconds above 0"),
        ("--budget 1", "at least 2"),
        ("-m x --backend y", "use one of them"),
        ("--compare -b", "so --bg has no use beside it"),
        ("--compare --cache off", "so --cache off has no use beside it"),
        ("--dry-run --compare", "--dry-run calls no model, so --compare"),
        ("--dry-run --budget 90", "--dry-run calls no model, so --budget"),
        ("--trace", "expected one argument"),
        ("--dryrun", "did you mean --dry-run?"),
        ("--show timelin", "did you mean timeline?"),
        ("judge(a) --compare", "--compare has no use here"),
        ("judge(a) --dry-run", "--dry-run has no use here"),
        ("judge(a) -t 0", "judge.run(temperature=0)"),
        ("judge(a) --from r", "--from has no use here"),
        ("--temp 0", "no flag --temp"),  # an abbreviation may mean another flag one day
    ],
)
def test_lines_that_mean_nothing(text: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert type(caught.value) is UsageError
    assert part in str(caught.value)


def test_views_are_named_once() -> None:
    assert views_of(" tree, streams,tree") == ("tree", "streams")
