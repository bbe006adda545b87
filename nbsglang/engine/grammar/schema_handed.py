"""JSON Schemas as llguidance is given them: what it reads otherwise than our automaton does is said in other words.

Patterns and formats become patterns of explicit characters, with the meaning of `schema_patterns.py`. A `oneOf` whose
choices exclude each other becomes `anyOf`, which llguidance knows. Keywords that say nothing are left out, and what may
be a keyword in another spelling is refused, as llguidance would pass over it. All else is its own to take or to refuse.

Not here: whether a schema goes to llguidance at all (`constraints.py`), the text it gets (`source.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

from nbsglang.engine.grammar.classes import both, complement
from nbsglang.engine.grammar.pattern import char_class
from nbsglang.engine.grammar.regex import parse
from nbsglang.engine.grammar.schema_formats import format_names, format_objection, format_pattern
from nbsglang.engine.grammar.schema_keywords import NUMBER_FORMATS
from nbsglang.engine.grammar.schema_patterns import searched
from nbsglang.engine.grammar.schema_places import Document, NotRegularError, Place
from nbsglang.engine.grammar.schema_reader import Reader
from nbsglang.engine.grammar.schema_words import UNSUPPORTED, objection
from nbsglang.engine.grammar.syntax import Alt, Chars, Empty, Node, Ranges, Repeat, Seq
from nbsglang.errors import ConstraintError

_VALUES = ("enum", "const", "default", "examples", "example")  # hold no schemas
_MAPS = ("properties", "patternProperties", "$defs", "definitions")  # hold schemas by names
_INNER = (  # hold schemas
    "allOf", "anyOf", "oneOf", "items", "prefixItems", "additionalItems", "additionalProperties", "propertyNames",
)  # fmt: skip
_Keys: TypeAlias = tuple[str | int, ...]
_MOST_CHARS = 200_000  # of one pattern
_NOTHING = "[a&&b]"
# Escapes by number are off (`source.py`), and for what they alone can write llguidance then writes nothing.
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
_WRITTEN = complement(((0, 7), (11, 11), (14, 0x1F)))


def handed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema for llguidance.

    Raises ConstraintError for a keyword that looks misspelt and for values that cannot be written, RecursionError for a
    schema that is too deep.
    """
    found = _Writer(schema).schema(schema, ())
    assert isinstance(found, dict), "what an object becomes"
    return found


class _Writer:
    """Writes the schemas of a document anew."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._reader: tuple[Document, Reader] | None = None

    def schema(self, value: Any, keys: _Keys, is_sure: bool = True) -> Any:
        """A schema, or whatever else stands where one may: `is_sure` if there is nothing else there."""
        if isinstance(value, list):
            return [self.schema(part, (*keys, index), is_sure) for index, part in enumerate(value)]
        if not isinstance(value, dict):
            return value
        found: dict[str, Any] = {}
        for keyword, inner in value.items():
            at = (*keys, keyword)
            if is_sure and objection(keyword) and keyword not in UNSUPPORTED:
                self._refuse(keys, keyword, objection(keyword))
            if keyword in ("enum", "const") and _has_control(inner):
                self._refuse(keys, keyword, "a control character of it has no escape but that by number")
            if keyword in _VALUES:
                found[keyword] = inner
            elif keyword in _MAPS and isinstance(inner, dict):
                found[keyword] = {name: self.schema(part, (*at, name), is_sure) for name, part in inner.items()}
            else:
                found[keyword] = self.schema(inner, at, is_sure and keyword in _INNER)
        if "oneOf" in found and self._is_exclusive(keys):
            found["allOf"] = [*_list(found.get("allOf")), {"anyOf": found.pop("oneOf")}]
        if found.get("uniqueItems") is False:
            del found["uniqueItems"]
        if is_sure and _wants_others(found):
            self._refuse(keys, "minProperties", "two of so many properties that are not named could have one name")
        _strings(found)
        _numbers(found)
        return found

    def _refuse(self, keys: _Keys, keyword: str, message: str) -> NoReturn:
        Place("#", self._root).at(*keys).fail(message, keyword)

    def _is_exclusive(self, keys: _Keys) -> bool:
        """Whether the choices of the `oneOf` at a place can be shown to exclude each other."""
        if self._reader is None:
            document = Document(self._root)
            self._reader = document, Reader(document)
        document, reader = self._reader
        try:
            return reader.is_exclusive(document.root.at(*keys))
        except (ConstraintError, NotRegularError):
            return False


def _wants_others(schema: dict[str, Any]) -> bool:
    """Whether more properties are asked for than those that must be there and one more; two may have the same name."""
    least = schema.get("minProperties")
    required = {name for name in _list(schema.get("required")) if isinstance(name, str)}
    is_closed = schema.get("additionalProperties") is False and not schema.get("patternProperties")
    return not is_closed and isinstance(least, int | float) and least > len(required) + 1


def _strings(schema: dict[str, Any]) -> None:
    """Patterns and formats of strings, as patterns."""
    patterns: list[str] = []
    if isinstance(schema.get("pattern"), str):
        patterns.append(_pattern(schema.pop("pattern")))
    name = schema.get("format") if isinstance(schema.get("format"), str) else None
    if name in NUMBER_FORMATS or (name is not None and format_objection(name)):
        pass  # it is about numbers, or llguidance's to take or to refuse
    elif name is not None and name not in format_names():
        del schema["format"]  # it says nothing
    elif name is not None:
        del schema["format"]
        patterns.append(f"^(?:{_written(parse(format_pattern(name)))})$")
    if patterns:
        schema["pattern"] = patterns.pop()
    if patterns:
        schema["allOf"] = [*_list(schema.get("allOf")), {"pattern": patterns[0]}]


def _numbers(schema: dict[str, Any]) -> None:
    """Formats of numbers, as bounds."""
    shape = NUMBER_FORMATS.get(schema["format"]) if isinstance(schema.get("format"), str) else None
    if shape is None:
        return
    del schema["format"]
    if shape.low is not None and shape.high is not None:
        bounds = {"minimum": int(shape.low.value), "maximum": int(shape.high.value)}
        schema["allOf"] = [*_list(schema.get("allOf")), bounds]
    if shape.is_integer and schema.get("type") == "number":
        schema["type"] = "integer"


def _has_control(value: Any) -> bool:
    """Whether a value has such a character in one of its strings; names are written well."""
    if isinstance(value, str):
        return _CONTROL.search(value) is not None
    return any(
        map(_has_control, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _pattern(pattern: str) -> str:
    """A pattern that says the same to llguidance; what cannot be said otherwise as it is."""
    try:
        written = _written(searched(pattern))
    except ConstraintError:
        return pattern
    return f"^(?:{written})$"


def _written(node: Node) -> str:
    """A node in the syntax of llguidance. Raises ConstraintError for lookaheads, and for what is too long."""
    text = _text(node)
    if len(text) > _MOST_CHARS:
        raise ConstraintError(f"it takes {len(text)} characters to write")
    return text


def _text(node: Node) -> str:
    if isinstance(node, Chars):
        return _class(node.ranges)
    if isinstance(node, Empty):
        return ""
    if isinstance(node, Seq):
        return "".join(map(_text, node.parts))
    if isinstance(node, Alt):
        return f"(?:{'|'.join(map(_text, node.parts))})" if node.parts else _NOTHING
    if isinstance(node, Repeat):
        most = "" if node.most is None else node.most
        return f"(?:{_text(node.part)}){{{node.least},{most}}}"
    raise ConstraintError("it looks ahead")


@lru_cache(maxsize=1024)
def _class(own: Ranges) -> str:
    ranges = both(own, _WRITTEN)
    return char_class(ranges) if ranges else _NOTHING
