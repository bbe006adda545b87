"""What the drafts of JSON Schema do not have in common: keywords that some of them pass over.

Where something is asked for, all keywords count: a text that fits more than its draft asks for still fits. Where
something must not be, that would allow what the draft excludes.

Not here: what the keywords mean (`schema_reader.py`).
"""

from __future__ import annotations

import json
import re
from typing import Any

_LATEST = 2020
_SINCE = {
    "contains": 6, "const": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7, "dependentRequired": 2019,
    "dependentSchemas": 2019, "prefixItems": 2020,
}  # fmt: skip
_UNTIL = {"dependencies": 7, "additionalItems": 2019}
_NO_SIBLINGS = 7  # the last draft in which nothing beside a "$ref" counts
_SAYS_NOTHING = frozenset(
    ("$ref", "title", "description", "default", "examples", "$comment", "$schema", "definitions", "$defs")
)
_EXCLUSIVE = ("exclusiveMinimum", "exclusiveMaximum")
_DRAFT = re.compile(r"draft[-/](\d+)")


def draft_of(root: Any) -> int:
    """The draft that a schema says it is of: 3 to 7, 2019 or 2020, which is that of one that says none."""
    named = _DRAFT.search(str(root.get("$schema", ""))) if isinstance(root, dict) else None
    return int(named[1]) if named else _LATEST


def doubtful(schema: dict[str, Any], draft: int) -> str | None:
    """A keyword of a schema that its draft passes over, or takes otherwise; None if there is none."""
    for keyword, value in schema.items():
        if draft < _SINCE.get(keyword, 0) or draft > _UNTIL.get(keyword, _LATEST):
            return keyword
        if keyword in _EXCLUSIVE and isinstance(value, bool) != (draft < 6):
            return keyword
        if keyword == "items" and isinstance(value, list) and draft > 2019:
            return keyword
        if keyword == "required" and isinstance(value, bool) != (draft < 4):
            return keyword
    is_alone = "$ref" not in schema or draft > _NO_SIBLINGS or schema.keys() <= _SAYS_NOTHING
    return None if is_alone else "$ref"


def may_be_doubtful(text: str, draft: int) -> bool:
    """Whether a schema in a document may have such a keyword, by the names that occur in it."""
    names = {name for name, first in _SINCE.items() if draft < first}
    names |= {name for name, last in _UNTIL.items() if draft > last} | {*_EXCLUSIVE}
    names |= {"$ref"} if draft <= _NO_SIBLINGS else {"items"}
    return any(json.dumps(name) in text for name in names)
