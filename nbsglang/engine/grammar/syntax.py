"""The plain nodes that a regular language over code points is written in.

A node is a value: it says which texts belong to the language, and nothing of how they are found. Parts may be shared
between nodes (and should be, where the same part occurs often: `automaton.py` then works it out once).

Not here: Python's regular expressions (`regex.py` turns them into nodes), which code points a class has
(`classes.py`), automata (`automaton.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]  # code points, both ends included, ascending, apart, no surrogates

ALL_CHARS: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))
MOST_CALLED = 0x800  # nodes that can refer to each other
_FIRST_CALL = 0xD800


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
    return Seq(tuple(map(_char, value)))


@lru_cache(maxsize=4096)
def _char(char: str) -> Chars:
    return Chars(((ord(char), ord(char)),))


def call(number: int) -> Node:
    """A place for the node with this number, of several that refer to each other (`nested.py`).

    It is written as a surrogate, which no text has.
    """
    assert 0 <= number < MOST_CALLED, "a number that can be written"
    return Chars(((_FIRST_CALL + number, _FIRST_CALL + number),))


def called(code_point: int) -> int | None:
    """The number of the node that a code point is a place for, if it is one."""
    number = code_point - _FIRST_CALL
    return number if 0 <= number < MOST_CALLED else None
