"""What a program appends to its prompt: frozen values, made by the functions of `api.py`.

An `Expr` is the one value of the language that users hold; it is a row of parts, and `+` joins rows. An `Op` is a
part on its way into a stream, with the slot that it fills and the line that it comes from.

Not here: what the parts do (`execute.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from nbsglang.calls import Constraint
from nbsglang.errors import UsageError
from nbsglang.lang.choices import ChoicesSamplingMethod
from nbsglang.lang.options import LogprobWishes
from nbsglang.lang.slots import Slot, Where

if TYPE_CHECKING:
    from nbsglang.lang.stream import Stream

_PACKAGE = __name__.partition(".")[0] + "."


@dataclass(frozen=True, slots=True)
class Literal:
    """Text of the program."""

    text: str


@dataclass(frozen=True, slots=True)
class Gen:
    """Text of the model. `sampling` holds the fields of SamplingParams that differ from the run's.

    `read` makes the variable's value of the text (None: the text itself). With `split_reasoning` a leading
    `<think>...</think>` becomes a variable of its own and leaves the prompt.
    """

    name: str | None
    sampling: Mapping[str, object] = field(default_factory=dict)
    constraint: Constraint | None = None
    logprobs: LogprobWishes = LogprobWishes()  # noqa: RUF009 (a frozen value)
    read: Callable[[str], object] | None = None
    split_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """One of some texts. `values` has the variable's value for each choice."""

    name: str | None
    choices: tuple[str, ...]
    values: tuple[object, ...]
    temperature: float
    method: ChoicesSamplingMethod
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class BeginRole:
    """The message of a role begins."""

    role: str


@dataclass(frozen=True, slots=True)
class EndRole:
    """The message of a role ends."""

    role: str


@dataclass(frozen=True, slots=True)
class BeginScope:
    """From here on text belongs to the variable `name` too."""

    name: str


@dataclass(frozen=True, slots=True)
class EndScope:
    """The variable `name` is the text since its scope began."""

    name: str


@dataclass(frozen=True, slots=True)
class Fork:
    """Branches start here; the op's slot gets the prompt as it is at this point."""

    n: int


@dataclass(frozen=True, slots=True)
class Start:
    """A branch's first op: wait for the fork in the parent's stream, and start from its prompt."""

    fork: Slot


@dataclass(frozen=True, slots=True)
class Concat:
    """Append what each of these streams appended since it was forked."""

    streams: tuple[Stream, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    """The text of a variable, as soon as it is there; the stream waits for it, not the program."""

    slot: Slot


Part = Literal | Gen | Select | BeginRole | EndRole | BeginScope | EndScope | Fork | Start | Concat | Quote


class Op(NamedTuple):
    """A part in a stream: `slots` are filled when it is done, `where` is the program's line."""

    part: Part
    slots: tuple[Slot, ...]
    where: Where


@dataclass(frozen=True, slots=True)
class Expr:
    """A value of the language, to be appended to a program's state: `s += expr`. `a + b` joins, also with strings."""

    parts: tuple[Part, ...]

    def __add__(self, other: object) -> Expr:
        return Expr(self.parts + parts_of(other))

    def __radd__(self, other: object) -> Expr:
        return Expr(parts_of(other) + self.parts)

    def __bool__(self) -> bool:
        raise UsageError("a generation has no truth value before it is appended: write s += gen('x'), then use s['x']")

    def __str__(self) -> str:
        # An f-string would put a repr into the prompt, silently.
        raise UsageError("a generation is not text: append it to the state, as in s += 'Name: ' + gen('name')")

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<{' + '.join(describe(part) for part in self.parts)}>"


def parts_of(value: object) -> tuple[Part, ...]:
    """The parts of what can be appended: text, a value of the language, or a list of these."""
    if isinstance(value, str):
        return (Literal(value),) if value else ()
    if isinstance(value, Expr):
        return value.parts
    if isinstance(value, (list, tuple)):
        return tuple(part for item in value for part in parts_of(item))
    raise UsageError(
        f"a {type(value).__name__} cannot be appended to a prompt: use a string (str(...) or an f-string), "
        "gen(...), select(...), a role such as user(...), or a list of these"
    )


def describe(part: Part) -> str:
    """The part in a few words, for error messages."""
    if isinstance(part, (Gen, Select)):
        return f"{type(part).__name__.lower()} {part.name!r}" if part.name else type(part).__name__.lower()
    if isinstance(part, Literal):
        return repr(part.text if len(part.text) <= 24 else part.text[:21] + "...")
    if isinstance(part, (BeginRole, EndRole)):
        return f"{'begin' if isinstance(part, BeginRole) else 'end'} of role {part.role!r}"
    if isinstance(part, (BeginScope, EndScope)):
        return f"scope {part.name!r}"
    if isinstance(part, Quote):
        return f"text of {part.slot.name!r}"
    return type(part).__name__.lower()


def caller() -> Where:
    """The innermost line that is not in this package."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        if frame.f_back is None:
            return Where("?", 0, "?")
        frame = frame.f_back
    return Where(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
