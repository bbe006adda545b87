"""The text that llguidance is given for a constraint, and the name that errors give to it.

Not here: regular expressions (`pattern.py`), matching (`external.py`).
"""

from __future__ import annotations

import json
import re

from nbsglang.calls import Constraint
from nbsglang.engine.grammar.pattern import literal, shown, translate
from nbsglang.errors import ConstraintError, UsageError

MAX_CHARS = 1_000_000  # of a constraint
_NO_FORCING = '\n%llguidance {"no_forcing": true}\n'
# With \u escapes a name could be one that is listed, in disguise: it takes them in names that are not listed.
_JSON_STYLE = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "json_allowed_escapes": 'nrbtf\\"',
}


def grammar_text(constraint: Constraint) -> str:
    """The constraint in llguidance's variant of Lark. Raises ConstraintError, for no choices UsageError."""
    value = constraint.value
    if sum(map(len, [value] if isinstance(value, str) else value)) > MAX_CHARS:
        raise ConstraintError(f"a {constraint.kind} of more than {MAX_CHARS} characters cannot be used")
    if constraint.kind == "choices":
        if not value:
            raise UsageError("choices needs at least one text to choose from")
        return f"start: /{'|'.join(map(literal, dict.fromkeys(value)))}/{_NO_FORCING}"
    assert isinstance(value, str), f"a {constraint.kind} is one text"
    if constraint.kind == "regex":
        return f"start: /{translate(value)}/{_NO_FORCING}"
    if constraint.kind == "schema":
        return f"start: %json {_schema(value)}{_NO_FORCING}"
    if re.search(r"%\s*llguidance", value):
        raise ConstraintError(
            f"{named(constraint)} cannot be used: options of llguidance in a grammar are not supported"
        )
    return value + _NO_FORCING  # after it, so that line numbers in errors are those of the grammar


def _schema(text: str) -> str:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"json_schema {shown(text)} is not JSON: {error}") from None
    if schema is False:
        raise ConstraintError("json_schema false allows no value at all")
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise ConstraintError(f"json_schema {shown(text)} is not a schema: it must be an object or a boolean")
    from nbsglang.engine.grammar.schema_handed import handed  # it asks this module in turn

    try:
        return json.dumps(handed(schema) | {"x-guidance": _JSON_STYLE})
    except RecursionError:
        raise ConstraintError(f"json_schema {shown(text)} is nested too deeply") from None


def after_prefix(grammar: str, prefix: bytes) -> str:
    """The grammar, after these bytes. Raises ConstraintError when they are not UTF-8."""
    try:
        text = prefix.decode()
    except UnicodeDecodeError:
        raise ConstraintError(f"a required prefix must be whole characters, not {prefix!r}") from None
    start = f"start: /{literal(text)}/ @inner{_NO_FORCING}"
    return json.dumps({"grammars": [{"lark_grammar": start}, {"name": "inner", "lark_grammar": grammar}]})


def named(constraint: Constraint) -> str:
    """What errors call the constraint."""
    name = "json_schema" if constraint.kind == "schema" else constraint.kind
    return f"{name} {shown(constraint.value)}"
