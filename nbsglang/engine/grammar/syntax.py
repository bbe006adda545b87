"""The plain nodes that a regular language over code points is written in.

A node is a value: it says which texts belong to the language, and nothing of how they are found. Parts may be shared
between nodes (and should be, where the same part occurs often: `automaton.py` then works it out once).

Not here: Python's regular expressions (`regex.py` turns them into nodes), which code points a class has
(`classes.py`), automata (`automaton.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]  # code points, both ends included, ascending, apart, no surrogates

ALL_CHARS: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of `ranges`; without ranges there is no such text."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Empty:
    """The empty text."""


@dataclass(frozen=True, slots=True)
class Seq:
    """The parts one after the other; without parts the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of the parts; without parts there is no such text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The part at least `least` times and at most `most` times; None is without end."""

    part: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """Nothing, at the start or the end of the whole text; with `lines` at those of any line, too."""

    at_end: bool
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Boundary:
    """Nothing, where a character of `word` meets another one or an edge of the text; with `inside` where not.

    Python's `\\B` does not match in an empty text (up to 3.13); nor does this then.
    """

    word: Chars
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Ahead:
    """Nothing, where the rest of the whole text begins with `part`; with `negative` where it does not."""

    part: Node
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Behind:
    """Nothing, where the text so far ends with `part`; with `negative` where it does not.

    `part` has no Ahead in it.
    """

    part: Node
    negative: bool = False


Node: TypeAlias = Chars | Empty | Seq | Alt | Repeat | Edge | Boundary | Ahead | Behind


def text(value: str) -> Node:
    """The node of one text."""
    return Seq(tuple(Chars(((ord(char), ord(char)),)) for char in value))
