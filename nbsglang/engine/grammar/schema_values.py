"""JSON values: as texts in the one style that is used, and which of them are the same.

Not here: whether they fit a schema (`schema_fitting.py`), shapes as texts (`schema_nodes.py`).
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from fractions import Fraction
from typing import Any


def written(value: Any) -> str:
    """The text of a value: ", " and ": " between its parts, characters that need no escape as themselves."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same to JSON: 1 and 1.0 are, 1 and true are not."""
    return identity(one) == identity(other)


def exact(value: int | float) -> Fraction:
    """A number as it is written."""
    return Fraction(value if isinstance(value, int) else repr(value))


def identity(value: Any) -> Hashable:
    """A value that two values have in common where they are the same to JSON."""
    if isinstance(value, list):
        return list, *map(identity, value)
    if isinstance(value, dict):
        return dict, frozenset((key, identity(part)) for key, part in value.items())
    return isinstance(value, bool), value
