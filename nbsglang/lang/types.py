"""Types as constraints: what text a type allows, and the text read back as a value of the type.

Not here: choosing between values (`Literal`, `Enum` and tuples become a `select`; see `choices_of`).
"""

from __future__ import annotations

import datetime
import enum
import json
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from nbsglang.calls import Constraint
from nbsglang.errors import ConstraintError, UsageError
from nbsglang.lang.choices import token_length_normalized
from nbsglang.lang.ops import Gen, Select

# Bounded on purpose: an endless number or string would only be ended by max_tokens, and then read back wrongly.
REGEX_INT = r"-?(0|[1-9][0-9]{0,18})"
REGEX_FLOAT = r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,9})?"
REGEX_BOOL = r"(True|False)"
REGEX_STR = r'"[^"\\\n]{0,256}"'
REGEX_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"

_NAMES: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


@dataclass(frozen=True, slots=True)
class Regex:
    """For annotations: `Annotated[str, Regex(r"[A-Z]{3}")]` is a string that matches in full."""

    pattern: str


class Typed(NamedTuple):
    """A type as the language uses it: the constraint (None: free text) and the way back."""

    constraint: Constraint | None
    read: Callable[[str], object]


def typed(kind: object) -> Typed:
    """The constraint and the reader of a type that is no choice. Raises UsageError for what cannot be one."""
    if kind is str:
        return Typed(None, str)
    if kind is int:
        return Typed(Constraint("regex", REGEX_INT), int)
    if kind is float:
        return Typed(Constraint("regex", REGEX_FLOAT), float)
    if kind is bool:
        return Typed(Constraint("regex", REGEX_BOOL), _read_bool)
    if kind is complex:  # pydantic has a schema for it, that of any string
        raise UsageError("a generation cannot be complex: two floats say the same")
    if kind is datetime.date:
        return Typed(Constraint("regex", REGEX_DATE), datetime.date.fromisoformat)
    if get_origin(kind) is Annotated:
        for note in get_args(kind)[1:]:
            if isinstance(note, Regex):
                return Typed(Constraint("regex", note.pattern), typed(get_args(kind)[0]).read)
    return _by_schema(kind)


def typed_by_name(dtype: object) -> Typed:
    """The meaning of `dtype=`: int, float, bool (or their names), or str, which is text in double quotes."""
    kind = _NAMES.get(dtype, dtype) if isinstance(dtype, str) else dtype
    if kind is str:
        return Typed(Constraint("regex", REGEX_STR), _read_quoted)
    if kind not in (int, float, bool):
        raise UsageError(f"dtype must be int, float, bool or str, not {dtype!r}; for other types use type=")
    return typed(kind)


def as_type(part: Gen | Select, kind: object) -> Gen | Select:
    """The generation with this type as well: its own constraint or choices stay, and are read back as the type."""
    if isinstance(part, Gen) and part.read is not None:
        raise UsageError(f"this gen has a type already, and is annotated with {kind!r}: keep one of the two")
    values = choices_of(kind)
    if isinstance(part, Select):
        if values is None:
            read = typed(kind).read
            return replace(part, values=tuple(read(choice) for choice in part.choices))
        strange = [choice for choice in part.choices if choice not in values]
        if strange:
            raise UsageError(f"{strange[0]!r} is one of the choices, but no value of {kind!r}")
        return replace(part, values=tuple(values[choice] for choice in part.choices))
    if part.constraint is not None:
        return replace(part, read=typed(kind).read if values is None else _reader_of(values, kind))
    if values is not None:
        if part.sampling.get("n", 1) != 1:
            raise UsageError(f"n above 1 does not go with {kind!r}, whose values are scored: use a loop")
        temperature: float = part.sampling.get("temperature", 0.0)  # type: ignore[assignment]  # checked by gen
        seed: int | None = part.sampling.get("seed")  # type: ignore[assignment]
        return Select(part.name, tuple(values), tuple(values.values()), temperature, token_length_normalized, seed)
    constraint, read = typed(kind)
    return replace(part, constraint=constraint, read=None if read is str else read)


def choices_of(kind: object) -> dict[str, object] | None:
    """Text -> value of a type with a fixed set of values (Literal, Enum, tuple or list of values), else None."""
    if get_origin(kind) is Literal:
        values: dict[str, object] = {_text_of(value): value for value in get_args(kind)}
    elif isinstance(kind, type) and issubclass(kind, enum.Enum):
        values = {_text_of(member.value): member for member in kind}
    elif isinstance(kind, (tuple, list)):
        values = {_text_of(value): value for value in kind}
    else:
        return None
    if not values:
        raise UsageError(f"{kind!r} has no value to choose from")
    return values


def schema_constraint(schema: str | dict[str, Any]) -> Constraint:
    """The constraint of `json_schema=`, given as JSON text or as a dict."""
    if isinstance(schema, dict):
        return Constraint("schema", json.dumps(schema))
    if not isinstance(schema, str):
        raise ConstraintError(f"json_schema must be JSON text or a dict, not {type(schema).__name__}; or use type=")
    try:
        json.loads(schema)
    except ValueError as error:
        raise ConstraintError(f"json_schema is not JSON: {error}") from None
    return Constraint("schema", schema)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _reader_of(values: Mapping[str, object], kind: object) -> Callable[[str], object]:
    def read(text: str) -> object:
        if text not in values:
            raise ValueError(f"{text!r} is no value of {kind!r}")
        return values[text]

    return read


def _read_bool(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError(f"{text!r} is neither True nor False")
    return text == "True"


def _read_quoted(text: str) -> str:
    value = json.loads(text, strict=False)
    if not isinstance(value, str):
        raise ValueError(f"{text!r} is not a string in double quotes")
    return value


def _by_schema(kind: object) -> Typed:
    if not isinstance(kind, type) and get_origin(kind) is None:
        raise UsageError(f"type={kind!r} is not a type that a generation can have")
    try:
        from pydantic import PydanticUserError, TypeAdapter
    except ImportError:
        raise UsageError(f"type={kind!r} needs pydantic: pip install pydantic") from None
    try:
        adapter: TypeAdapter[object] = TypeAdapter(typing.cast("Any", kind))
        schema = _closed(adapter.json_schema())
    except PydanticUserError as error:
        raise UsageError(f"type={kind!r} cannot be written as a JSON Schema: {error}") from None
    return Typed(Constraint("schema", json.dumps(schema)), adapter.validate_json)


def _closed(schema: Any) -> Any:
    """The schema with objects that have no other keys than those named, unless their type allows it (extra="allow").

    A model that may add keys goes on adding them until it is cut off, and what it adds is not read.
    """
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed
