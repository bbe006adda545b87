"""The states of a pattern with gates: anchors in the middle, word boundaries and lookarounds.

A state is what stands before it and a set of threads. Whether a match can be reached from it is not to be seen from
its positions, as duties can contradict each other: `automaton.py` looks for one.

Not here: how threads move (`threads.py`), which gates are open (`gaps.py`), patterns without gates (`plain.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from nbsglang.engine.grammar.alphabet import Alphabet
from nbsglang.engine.grammar.certain import ways
from nbsglang.engine.grammar.gaps import EDGE, Before, Gaps
from nbsglang.engine.grammar.limits import Meter
from nbsglang.engine.grammar.plain import Moves
from nbsglang.engine.grammar.plan import Plan
from nbsglang.engine.grammar.program import Program
from nbsglang.engine.grammar.syntax import Ahead
from nbsglang.engine.grammar.threads import MAIN, Threads, Walk, begun, weight


class _Key(NamedTuple):
    before: Before
    threads: Threads


class Guarded:
    """A `Machine` for a plan with gates."""

    def __init__(self, plan: Plan, alphabet: Alphabet, meter: Meter) -> None:
        self.is_certain = False
        programs = [gate.sketch and Program(gate.sketch, alphabet) for gate in plan.gates]
        self._gaps = Gaps(plan.gates, programs, alphabet)
        looked = {index: program for index, program in enumerate(programs) if program is not None}
        negative = {index: gate.node.negative for index, gate in enumerate(plan.gates) if isinstance(gate.node, Ahead)}
        self._walk = Walk({MAIN: Program(plan.main, alphabet), **looked}, negative, meter)
        self._certain = ways(plan.main.root).positions
        self.start: Hashable = _Key(self._gaps.start, begun(MAIN))

    def is_live(self, key: Hashable) -> bool:
        """See `Machine.is_live`."""
        assert isinstance(key, _Key)
        return any(not duties and bits & self._certain for duties, bits in key.threads.groups)

    def accepts(self, key: Hashable) -> bool:
        """See `Machine.accepts`."""
        assert isinstance(key, _Key)
        return self._walk.at_end(key.threads, self._gaps.open(key.before, EDGE))

    def moves(self, key: Hashable) -> Moves:
        """See `Machine.moves`."""
        assert isinstance(key, _Key)
        found: dict[Hashable, list[int]] = {}
        for after, classes in self._gaps.kinds.items():
            gates = self._gaps.open(key.before, after)
            for threads, together in self._walk.moves(key.threads, gates, classes):
                for class_id in together:
                    before = self._gaps.after(key.before, gates, class_id)
                    found.setdefault(_Key(before, threads), []).append(class_id)
        return found.items()

    def places(self, key: Hashable) -> Iterable[Hashable]:
        """See `Machine.places`."""
        return [key]

    def weight(self, key: Hashable) -> int:
        """See `Machine.weight`."""
        assert isinstance(key, _Key)
        return 300 + weight(key.threads) + sum(bits.bit_length() // 8 for bits in key.before.behind)
