"""The streams of programs: what is appended to them, the calls they make, the values they get.

Not here: what becomes of a call in an engine (`engine.py`, `tokens.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from nbsglang.events.fields import Word


class StreamBegan(NamedTuple):
    """A stream of a program exists; `parent` is the stream it was forked from ("" for a program's own)."""

    stream: Word
    parent: Word
    branch: int
    label: str


class StreamEnded(NamedTuple):
    """Nothing more happens on the stream: it is done, joined, failed or cancelled."""

    stream: Word
    how: Word


class StreamText(NamedTuple):
    """Literal text was appended to the stream (role tags excluded)."""

    stream: Word
    text: str


class StreamRole(NamedTuple):
    """The message of a role begins on the stream; `role` is the program's own word."""

    stream: Word
    role: str


class CallBegan(NamedTuple):
    """The stream submitted a call: `kind` is gen, score or prefix; `name` the variable it will set."""

    stream: Word
    call_id: Word
    kind: Word
    name: str


class CallEnded(NamedTuple):
    """The call ended; `error` is "" when it went well."""

    stream: Word
    call_id: Word
    error: str


class Scored(NamedTuple):
    """What a select has found about its choices: the likeliest of `n_choices` with their scores and probabilities.

    All three are aligned, the likeliest first. `scores` are natural logs, as the select's method compares them, and
    `shares` the probabilities that follow. `chosen` is the index of the choice that was taken. A long choice has lost
    its middle.
    """

    stream: Word
    call_id: Word
    choices: tuple[str, ...]
    scores: tuple[float, ...]
    shares: tuple[float, ...]
    chosen: int
    n_choices: int


class VariableSet(NamedTuple):
    """The stream has a value for `name`, as text."""

    stream: Word
    name: str
    text: str


ProgramBody = StreamBegan | StreamEnded | StreamText | StreamRole | CallBegan | CallEnded | Scored | VariableSet
