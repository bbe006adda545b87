"""What can follow a state: found node by node where that is little, and the same as with arrays."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from benchmarks.grammar import CASES
from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.build import build
from nbsglang.engine.grammar.compiled import compile_regex
from nbsglang.engine.grammar.ends import ends
from nbsglang.engine.grammar.follow import follow
from nbsglang.engine.grammar.limits import Limits
from nbsglang.engine.grammar.moves import Moves
from nbsglang.engine.grammar.regex import parse
from nbsglang.engine.grammar.schema import schema_rules
from nbsglang.engine.grammar.stretch import shape_of
from nbsglang.engine.grammar.syntax import Node
from nbsglang.engine.grammar.table import Table
from nbsglang.engine.grammar.vocab import Vocab

_MOST = 250  # states of an automaton that are looked at
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "emoji": {"enum": ["😀", "🙏🙏", "é\n"]},
        "when": {"type": "string", "format": "date"},
        "x": {"type": "number", "minimum": -3, "maximum": 40},
    },
    "additionalProperties": False,
}
NODES = {
    **{name: parse(pattern) for name, (pattern, _) in CASES.items()},
    "structure": parse(r'\{"name": "[^"\\]{0,5}"(, "emoji": "(😀|🙏🙏|é\\n)")?(, "x": -?[0-4]?\d)?\}'),
    "broken": parse(r"(日本|🙏x|é)+\d{2}[^a]b"),
}


@pytest.fixture(scope="module")
def vocab(smollm2_folder: Path) -> Vocab:
    """The default model's."""
    return Vocab.from_tokenizer(AutoTokenizer.from_pretrained(smollm2_folder))


def states_of(table: Table) -> list[int]:
    """The states, breadth first."""
    states = [table.start]
    for state in states:
        if len(states) < _MOST:
            states += [after for after in dict.fromkeys(table.after(state)) if after >= 0 and after not in states]
    return states


@pytest.mark.smollm2
@pytest.mark.parametrize("name", NODES)
def test_few_tokens_are_those_of_the_long_way(vocab: Vocab, name: str) -> None:
    table = Table(Automaton(NODES[name]))
    moves = Moves(vocab, table)
    n_narrow = 0
    for state in states_of(table):
        narrow = moves.narrow((state, b""))
        reached, words, broken = moves.reach((state, b""))
        if narrow is not None:
            n_narrow += 1
            found = [*words.tokens.tolist(), *broken.tokens.tolist()]
            for stretch, chain in reached.parts:
                bits = np.unpackbits(stretch.shape.row(len(chain) - 1).view(np.uint8), bitorder="little")
                found += np.flatnonzero(bits).tolist()
            assert sorted(narrow[0]) == sorted(found)
    assert n_narrow or name in ("email", "strings", "words")


@pytest.mark.parametrize("name", NODES)
def test_characters_that_follow_are_those_of_the_row(name: str) -> None:
    """From an automaton that is asked for them, and from one that is asked for rows before."""
    table, other = Table(Automaton(NODES[name])), Automaton(NODES[name])
    for state in states_of(Table(Automaton(NODES[name])))[:50]:
        few, row = table.few(state), other.row(state)
        if few is not None:
            points = [point for run in table.classes.runs(np.asarray(row) >= 0) for point in range(run[0], run[1] + 1)]
            assert sorted(few) == [(point, row[table.classes.of(point)]) for point in points]
            assert all(table.read(state, chr(point)) == after for point, after in few)
            assert table.read(state, "\x7f") == -1


@pytest.mark.parametrize(
    ("node", "n_alone"),
    [
        (parse("abcde"), 5),
        (parse("(abc|abd){3}"), None),
        (parse("(ab?c){2,5}x*yz(pq)*"), None),
        (parse("(?:(a|bc)(d?)){2,7}((a{0,4}b?){0,3}c?){0,3}(xy){3,}"), None),
        (parse("((a|xyz)*b?){2}(a?b?){3}"), None),
        (schema_rules(json.dumps(SCHEMA))[0], None),
    ],
)
def test_positions_that_one_other_follows(node: Node, n_alone: int | None) -> None:
    root = build(node, Limits()).main.root
    alone = [position for position in range(root.size) if root.alone >> position & 1]
    assert alone
    assert n_alone in (None, len(alone))
    for position in range(root.size):
        after = root.advance(1 << position, 0)
        assert after == (1 << position + 1, False) or position not in alone
        assert follow(root, position) == after
        assert bool(ends(root) >> position & 1) == after[1]


@pytest.mark.smollm2
def test_automata_share_the_shapes_of_their_strings(vocab: Vocab) -> None:
    vocab.shapes.clear()
    for ending in ("x", "yz"):
        compile_regex(rf'"[^"\\]*"{ending}', vocab).matcher().mask()
        matcher = compile_regex(rf'"[^"\\]*"{ending}', vocab).matcher()
        assert matcher.accept(vocab.token_bytes.index(b'"'))
        matcher.mask()
    assert len(vocab.shapes) == 1
    for point in range(100):
        shape_of(vocab, 0, np.arange(len(vocab.points)) == point)
    assert len(vocab.shapes) == 64


@pytest.mark.parametrize("pattern", ["a+b", "(x|yz)*", "a(?=b)[bc]+", "[ab]{2}|c*", r"(?<=a)b|ab\b.?", "a?(b|$)"])
def test_last_characters_are_those_before_states_that_accept(pattern: str) -> None:
    automaton = Automaton(parse(pattern))
    table = Table(automaton)
    steps = [(cls, after) for state in states_of(table) for cls, after in enumerate(table.after(state)) if after >= 0]
    assert any(table.accepts(after) for _, after in steps)
    assert {cls for cls, after in steps if table.accepts(after)} <= automaton.last_classes
    if pattern == "a+b":
        assert {table.classes.of(ord("b"))} == automaton.last_classes
