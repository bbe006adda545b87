"""The language's names as a cell finds them: what they are, and when the notebook's own come first.

Not here: where in a cell a name is the language's (`cell_names.py`).
"""

from __future__ import annotations

import builtins
import datetime
import enum
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, NamedTuple

from nbsglang.lang import api, choices, types
from nbsglang.lang.cell_names import CALLS, GENERATIONS, METHODS
from nbsglang.lang.held import Outer, force
from nbsglang.lang.hub import current_place
from nbsglang.lang.ops import Gen, Select, caller, parts_of

_MISSING = object()


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, remembering what it made until that is appended."""

    @wraps(function)
    def made(*args: Any, **named: Any) -> Any:
        expr = function(*args, **named)
        place = current_place()
        if place is not None and place.run is not None:
            where = caller()
            for arg in args:
                if function is api.separate_reasoning:  # it gives the same generations anew
                    place.run.take(parts_of(arg))
            for part in expr.parts:
                if isinstance(part, (Gen, Select)):
                    place.run.made[id(part)] = (part, where)
        return expr

    return made


CALLED: Mapping[str, Callable[..., Any]] = {
    name: _watched(getattr(api, name)) if name in GENERATIONS else getattr(api, name) for name in sorted(CALLS)
}
_OURS: Mapping[str, Any] = {
    **{name: getattr(api, name) for name in CALLS},
    **{name: getattr(choices, name) for name in METHODS},
    "Literal": typing.Literal,
    "Annotated": typing.Annotated,
    "Regex": types.Regex,
    "Enum": enum.Enum,
    "date": datetime.date,
}


class Lookup(NamedTuple):
    """Where the code of a cell finds names that it does not bind: `word` one of the language's, `passed` its own."""

    word: Callable[[str], Any]
    passed: Callable[[Iterable[str]], dict[str, Any]]


def lookup(scope: Mapping[str, Any], namespace: Mapping[str, Any]) -> Lookup:
    """Of a cell that is bound to this namespace; both are read when they are asked."""

    def word(name: str) -> Any:
        found = scope.get(name, _MISSING)
        if found is _MISSING:
            found = namespace.get(name, _MISSING)
        return _OURS[name] if found is _MISSING else force(found)

    def passed(names: Iterable[str]) -> dict[str, Any]:
        given = {}
        for name in names:
            for place in (scope, namespace, _OURS, vars(builtins)):
                if name in place:
                    given[name] = Outer(place[name])
                    break
        return given

    return Lookup(word, passed)
