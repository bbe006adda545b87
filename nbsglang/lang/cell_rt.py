"""What the statements of a cell call once they have been transformed: append, name, type, enter a role.

`HELPERS` has them under names that no program can contain, as free variables of the cell's code.

Not here: the transformation (`cell_pass.py`), branches (`cell_fork.py`), forcing values (`held.py`).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

from nbsglang.errors import UsageError
from nbsglang.lang import api
from nbsglang.lang.cell_errors import warn_dropped
from nbsglang.lang.cell_fork import fork
from nbsglang.lang.cell_here import Here
from nbsglang.lang.held import Later, force, quote, quote_text
from nbsglang.lang.ops import BeginRole, EndRole, Expr, Gen, Select, caller, parts_of
from nbsglang.lang.types import as_type

_SIMPLE = (int, float, bool)  # format to the same text whoever does it
Generation = Gen | Select


def text(here: Here, value: object) -> None:
    """R1 by form: append what is text by its looks."""
    if value is None:  # "..." if x else None
        return
    if not isinstance(value, (str, Expr)):
        raise UsageError(
            f"this line is text for the prompt by its form, but it is a {type(value).__name__}; "
            "assign it to a name if it is not meant for the prompt"
        )
    append(here, value)


def value(here: Here, what: object, warns: bool) -> None:
    """R1 by value: append a value of the language; anything else is plain Python."""
    if type(what) is Expr:
        append(here, what)
    elif type(what) is FunctionType:
        not_called(what)
    elif warns and type(what) is str and what:
        warn_dropped(what, caller())


def not_called(function: FunctionType) -> None:
    """Raise UsageError for a function of the language where its value was meant."""
    if function.__module__ == api.__name__:
        raise UsageError(f"{function.__name__} is a function: call it, as in {function.__name__}(...)")


def append(here: Here, what: object) -> None:
    """Append to the prompt of this place."""
    here.stop()
    here.state._append(parts_of(what), caller())


def named(here: Here, name: str, what: Any) -> Any:
    """R2: a generation that is assigned is appended and called so; anything else is what it is."""
    if type(what) is not Expr:
        return what
    at = _the_generation(what, name)
    return what if at is None else _append_named(here, name, what, at)


def typed(here: Here, name: str, what: Any, kind: Any) -> Any:
    """R3: the same, with the annotation as its type."""
    if type(what) is not Expr:
        return what
    at = _the_generation(what, name)
    if at is None:
        return what
    part = what.parts[at]
    assert isinstance(part, Generation)
    of_type = as_type(part, kind)
    here.run.take((part,))
    return _append_named(here, name, Expr((*what.parts[:at], of_type, *what.parts[at + 1 :])), at)


def unpacked(here: Here, names: tuple[str | None, ...], what: Any) -> Any:
    """R2 for `a, b = f()`: the generations of a tuple get the names that they are unpacked to."""
    if type(what) is Expr:
        raise UsageError(f"one generation for {len(names)} names: give it one name first, then unpack that")
    if isinstance(what, (tuple, list)) and any(type(one) is Expr for one in what):
        if len(what) != len(names):
            raise UsageError(f"{len(what)} values for {len(names)} names")
        return [plain(one, "") if name is None else named(here, name, one) for name, one in zip(names, what)]  # noqa: B905
    return what


def plain(what: Any, target: str) -> Any:
    """A value for a place that is no plain name: it must not be a generation."""
    if type(what) is Expr and any(isinstance(part, Generation) for part in what.parts):
        place = f" for `{target}`" if target else ""
        raise UsageError(f"a generation needs one plain name{place}: write a = gen(...), then use a")
    return what


def returned(here: Here, what: Any) -> Any:
    """A generation that is returned is appended; the program's value is its value."""
    if type(what) is not Expr:
        return what
    at = _the_generation(what, "return")
    if at is not None:
        return force(_append_named(here, None, what, at))
    append(here, what)
    return None


def joined(*pieces: Any) -> Any:
    """R4: an f-string; a value of the language with its text if a hole holds one."""
    if any(type(piece) is Expr for piece in pieces):
        shown = [piece if type(piece) is Expr else format(piece) for piece in pieces]
        return Expr(tuple(part for piece in shown for part in parts_of(piece)))
    for piece in pieces:
        if type(piece) is FunctionType:
            not_called(piece)
    return "".join([piece if type(piece) is str else format(piece) for piece in pieces])


def around(here: Here, what: Any) -> Any:
    """R6: `with assistant():` is a role around what it holds; any other context manager is itself."""
    if type(what) is not Expr:
        return what
    begin, end = what.parts[0] if what.parts else None, what.parts[-1] if what.parts else None
    if not isinstance(begin, BeginRole) or not isinstance(end, EndRole) or len(what.parts) != 2:
        raise UsageError("`with` takes a role without text, as in: with assistant(): ...")
    here.stop()
    return here.state._role(begin.role, None)


def leave(here: Here, variables: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """The body has ended, well or not."""
    here.leave(variables, names)


def _the_generation(what: Expr, name: str) -> int | None:
    """The index of the one generation in it; None without any."""
    found = [at for at, part in enumerate(what.parts) if isinstance(part, Generation)]
    if len(found) > 1:
        raise UsageError(f"{len(found)} generations cannot all be called {name!r}: assign each to a name of its own")
    return found[0] if found else None


def _append_named(here: Here, name: str | None, what: Expr, at: int) -> Later:
    here.stop()
    part = what.parts[at]
    assert isinstance(part, Generation)
    here.run.take((part,))
    called = part.name or name or here.state._unused_name()
    parts = (*what.parts[:at], replace(part, name=called), *what.parts[at + 1 :])
    here.state._append(parts, caller())
    slot = here.state._slots[called]
    if name is not None and name != called:
        here.state._slots[name] = slot
    return _later(here, part, slot)


def _later(here: Here, part: Generation, slot: Any) -> Later:
    if isinstance(part, Select):
        is_text = all(type(one) is str for one in part.values)
        return Later(slot, is_text, is_text or all(type(one) in _SIMPLE for one in part.values), here.stop)
    is_one = part.sampling.get("n", here.run.options.sampling.n) == 1
    is_text = is_one and part.read is None
    return Later(slot, is_text, is_text or (is_one and part.read in _SIMPLE), here.stop)


def given_key(here: Here) -> Any:
    """R5: the key of the branch."""
    return here.state._given[0]


def given_outer(here: Here) -> Mapping[str, Any]:
    """R5: what the code around the loop has bound."""
    return here.state._given[1]


HELPERS: dict[str, Callable[..., Any]] = {
    "enter": Here,
    "leave": leave,
    "text": text,
    "value": value,
    "named": named,
    "typed": typed,
    "unpacked": unpacked,
    "plain": plain,
    "returned": returned,
    "joined": joined,
    "around": around,
    "force": force,
    "quote": quote,
    "quote_text": quote_text,
    "fork": fork,
    "given_key": given_key,
    "given_outer": given_outer,
    "locals": builtins.locals,
}
