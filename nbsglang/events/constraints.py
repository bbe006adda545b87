"""What the answers to a call must match, and how it looks as an automaton.

Not here: what a constraint does to tokens (`tokens.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from nbsglang.events.fields import Word


class Constrained(NamedTuple):
    """The answers to the call must match a constraint of a `kind` and a `text`; choices are a JSON list.

    A long text has lost its middle. `by` says what allows and forbids tokens: our own "automaton", or "llguidance".
    """

    call_id: Word
    kind: Word
    text: str
    by: Word


class ConstraintGraph(NamedTuple):
    """The compressed automaton of a constraint, when somebody has asked for it.

    `edges` are (source, target, text, n_forced): where n_forced is 0, the text is a class of characters as a regular
    expression writes it; else it is what must follow, n_forced characters, with "…" in place of its middle if it is
    long. `accepting` are the nodes in which the text may end. `is_whole` is false where some of it was left out.
    """

    kind: Word
    text: str
    start: int
    nodes: tuple[int, ...]
    edges: tuple[tuple[int, int, str, int], ...]
    accepting: tuple[int, ...]
    is_whole: bool


ConstraintBody = Constrained | ConstraintGraph
