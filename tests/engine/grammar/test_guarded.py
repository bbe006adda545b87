"""Where a state with gates leads by groups of classes is where it leads by each class alone."""

from __future__ import annotations

import pytest

from nbsglang.engine.grammar.automaton import Automaton
from nbsglang.engine.grammar.gaps import Before
from nbsglang.engine.grammar.guarded import Guarded, _Key
from nbsglang.engine.grammar.regex import parse
from nbsglang.engine.grammar.threads import Threads
from tests.engine.grammar.test_regex import GATED, automaton_or_none

SEARCHES = [
    r"(?=.*(?:^list|date|number$)).{0,9}", r"(?=.*[0-9a-f]{2})(?!.*--)(?=\w+-)[\w-]{2,8}", r"(?=[^\s]+$)https?://.*",
    r"(?!(?:.*7)|(?!.*9).*5).*", r"(?:(?!(?=a.)\w{3})[ab-])+", r"(?<=a)b(?=c)c|ab(?<!aa)(?!ca)c.",
]  # fmt: skip


def by_each_class(machine: Guarded, key: _Key, n_classes: int) -> dict[tuple[Before, Threads], set[int]]:
    """The classes that lead to each next state, asked one by one."""
    found: dict[tuple[Before, Threads], set[int]] = {}
    for after, classes in machine._gaps.kinds.items():
        gates = machine._gaps.open(key.before, after)
        for class_id in classes & set(range(n_classes)):
            threads = machine._walk.move(key.threads, gates, class_id)
            if threads.groups:
                before = machine._gaps.after(key.before, gates, class_id)
                found.setdefault((before, threads), set()).add(class_id)
    return found


@pytest.mark.parametrize("pattern", [*GATED, *SEARCHES])
def test_moves_are_those_of_each_class(pattern: str) -> None:
    automaton = automaton_or_none(pattern)
    if automaton is None or not isinstance(automaton._machine, Guarded):
        pytest.skip("without gates")
    n_checked, state = 0, 0
    while state < min(automaton.n_states, 60):
        key = automaton._keys[state]
        assert isinstance(key, _Key)
        found = {tuple(after): set(classes) for after, classes in automaton._machine.moves(key)}
        assert found == by_each_class(automaton._machine, key, automaton.n_classes)
        automaton.row(state)  # which makes the states after it
        n_checked += len(found)
        state += 1
    assert n_checked > 0


def test_equal_duties_are_one_object() -> None:
    """A state of a pattern with lookaheads is small, however many there are."""
    automaton = Automaton(parse(r"(?=.*a)(?=.*b)(?=.*c)[a-d]{6}"))
    for state in range(60):
        if state < automaton.n_states:
            automaton.row(state)
    duties = [duty for key in automaton._keys for group, _ in key.threads.groups for duty in group]  # type: ignore[attr-defined]
    assert len(duties) > 40
    assert len({id(duty) for duty in duties}) == len(set(duties))
