"""Where the schemas of a document stand, and the two ways in which one cannot be used.

A `Place` is a schema (an object or a boolean) with its JSON pointer. `$ref` leads from one place to another of the same
document; what would have to be fetched is refused by name.

Not here: what keywords mean (`schema_reader.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

from nbsglang.engine.grammar.pattern import shown
from nbsglang.engine.grammar.schema_drafts import draft_of
from nbsglang.engine.grammar.source import MAX_CHARS
from nbsglang.errors import ConstraintError

_NAME = re.compile(r'"\$?(id|anchor|dynamicAnchor)"')  # keywords that give names to schemas
_LISTED = "in "  # before the names of a place that has no others
_WORK = 100_000  # steps that one document may take: about a second


class NotRegularError(Exception):
    """The schema is beyond our automaton (it cannot say what is asked, or would be too large); says why.

    Nothing is wrong with the schema: a parser that is more than an automaton may take it.
    """


class UnreadError(ConstraintError):
    """A schema is asked for while it is being read: it refers to itself, or it is looked at on the way."""


@dataclass(frozen=True, slots=True)
class Place:
    """A schema and its JSON pointer; `rebased` is whether an `$id` on the way changes what its references mean."""

    pointer: str
    schema: Any = field(compare=False)
    rebased: bool = field(default=False, compare=False)

    def at(self, *keys: str | int) -> Place:
        """The schema that is found by these keys. Raises ConstraintError if it is none."""
        found, pointer, rebased = self.schema, self.pointer, self.rebased
        for key in keys:
            found = found[key]
            pointer += "/" + str(key).replace("~", "~0").replace("/", "~1")
            if isinstance(found, dict):
                rebased = rebased or any(_is_base(found.get(name), pointer) for name in ("$id", "id"))
        place = Place(pointer, found, rebased)
        if not isinstance(found, dict | bool):
            place.fail(f"{shown(found)} is not a schema: it must be an object or a boolean")
        return place

    def each(self, keyword: str) -> list[Place]:
        """The schemas of a list of some. Raises ConstraintError if it is none, or empty."""
        branches = self.schema[keyword]
        if not isinstance(branches, list) or not branches:
            self.fail(f"{shown(branches)} is not a list of schemas", keyword)
        return [self.at(keyword, index) for index in range(len(branches))]

    def values(self, keyword: str) -> list[Any]:
        """The values of `enum` or `const`. Raises ConstraintError for one that no text has."""
        found = self.schema[keyword] if keyword == "enum" else [self.schema[keyword]]
        if not isinstance(found, list):
            self.fail(f"{shown(found)} is not a list of values", keyword)
        for value in found:
            if _is_unwritable(value):
                self.fail(f"{shown(value)} has a lone surrogate or a number without end: no text has", keyword)
        return found

    def fail(self, message: str, keyword: str = "", error: type[ConstraintError] = ConstraintError) -> NoReturn:
        """Raise ConstraintError with the place, and the keyword if one is given."""
        name = f"{keyword!r} " if keyword else ""
        raise error(f"json_schema cannot be used: {name}at {self.pointer}: {message}")

    def beyond(self, message: str, keyword: str) -> NoReturn:
        """Raise NotRegularError with the place and the keyword."""
        raise NotRegularError(f"{keyword!r} at {self.pointer}: {message}")


Sub: TypeAlias = tuple[Place, ...]  # a value must fit all of them; any value fits ()

NEVER: Sub = (Place("#never", False),)  # no pointer of a document begins so; places are told apart by theirs


@dataclass(frozen=True)
class Denied:
    """What stands in a place for the schema of all values that do not fit `sub`."""

    sub: Sub


def denied(sub: Sub) -> Sub:
    """What the values fit that do not fit `sub`."""
    if len(sub) == 1 and isinstance(sub[0].schema, Denied):
        return sub[0].schema.sub
    return (Place(f"not {json.dumps([place.pointer for place in sub])}", Denied(sub)),)


def only(value: Any) -> Sub:
    """What one value fits alone."""
    return (Place(f"={json.dumps(value)}", {"const": value}),)


def listed(names: Iterable[str]) -> Sub:
    """What some names fit alone."""
    names = sorted(names)
    return (Place(f"{_LISTED}{json.dumps(names)}", {"enum": names}),)


def listed_names(sub: Sub) -> list[str] | None:
    """The names that are all that do not fit `sub`, if it says so."""
    inner = sub[0].schema.sub if len(sub) == 1 and isinstance(sub[0].schema, Denied) else ()
    return inner[0].schema["enum"] if len(inner) == 1 and inner[0].pointer.startswith(_LISTED) else None


def found_in(pattern: str) -> Sub:
    """What names fit in which a pattern is found."""
    return (Place(f"~{json.dumps(pattern)}", {"pattern": pattern}),)


class Document:
    """A whole schema. Raises ConstraintError when it is not JSON, too long, or no schema."""

    def __init__(self, schema: str | dict[str, Any]) -> None:
        self.text = _text_of(schema)
        if len(self.text) > MAX_CHARS:
            raise ConstraintError(f"a json_schema of more than {MAX_CHARS} characters cannot be used")
        try:
            root = json.loads(self.text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ConstraintError(f"json_schema {shown(self.text)} is not JSON: {error}") from None
        self.root = Place("#", {"": root}).at("")
        self.root = Place("#", self.root.schema)
        self.draft = draft_of(root)
        self._id = root.get("$id", root.get("id")) if isinstance(root, dict) else None
        self._n_steps = 0

    def spend(self, n_steps: int) -> None:
        """Count work. Raises NotRegularError when it is too much."""
        self._n_steps += n_steps
        if self._n_steps > _WORK:
            raise NotRegularError(f"it takes more than {_WORK} steps to work out what its parts allow together")

    def target(self, place: Place) -> Place:
        """The place that the `$ref` of a place leads to. Raises ConstraintError if there is none in the document."""
        ref = place.schema["$ref"]
        if not isinstance(ref, str):
            place.fail(f"{shown(ref)} is not a text", "$ref")
        address, _, fragment = ref.partition("#")
        is_named = address != str(self._id).partition("#")[0] if address else bool(fragment) and fragment[0] != "/"
        # In older drafts nothing beside a "$ref" counts, in newer ones an "$id" there changes what it means.
        is_ambiguous = any(name in place.schema for name in ("$id", "id"))
        if is_named and not is_ambiguous and _NAME.search(self.text):
            place.beyond(f"{shown(ref)} may be the name of a part", "$ref")
        if address and address != str(self._id).partition("#")[0]:
            place.fail(f"{shown(ref)} is outside of the schema, and nothing is fetched: copy it into '$defs'", "$ref")
        if place.rebased:
            place.beyond(f"{shown(ref)} is inside a schema with an '$id' of its own", "$ref")
        if fragment and not fragment.startswith("/"):
            place.fail(f"{shown(ref)} is a name: only paths such as '#/$defs/name' are supported", "$ref")
        found = self.root.schema
        keys: list[str | int] = []
        for part in unquote(fragment).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and re.fullmatch("0|[1-9][0-9]{0,8}", key) and int(key) < len(found):
                keys.append(int(key))
            elif isinstance(found, dict) and key in found:
                keys.append(key)
            else:
                place.fail(f"{shown(ref)} leads nowhere: there is no {shown(key)} on the way", "$ref")
            found = found[keys[-1]]
        return self.root.at(*keys)


def _is_base(value: Any, pointer: str) -> bool:
    """Whether an `$id` changes what references mean: those of older drafts may say no more than where they stand."""
    return isinstance(value, str) and value != pointer


def _text_of(schema: str | dict[str, Any]) -> str:
    if isinstance(schema, str):
        return schema
    try:
        return json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConstraintError(f"json_schema {type(schema).__name__} cannot be written as JSON: {error}") from None


def _is_unwritable(value: Any) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, float):  # 1e999 is read as infinite
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(_is_unwritable(part) for item in value.items() for part in item)
    return isinstance(value, list) and any(map(_is_unwritable, value))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
