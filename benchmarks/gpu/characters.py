"""The text of the json workload: the character of the paper's example, as a regular expression, and its check.

Not here: who makes such texts; only engines whose adapters have `constrained` can.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = r"[\w\d\s]{1,16}"
_FIELDS = (
    ("name", f'"{_WORDS}"'),
    ("house", '"(Gryffindor|Slytherin|Ravenclaw|Hufflepuff)"'),
    ("blood status", '"(Pure-blood|Half-blood|Muggle-born)"'),
    ("occupation", '"(student|teacher|auror|ministry of magic|death eater|order of the phoenix)"'),
    (
        "wand",
        rf'\{{\n        "wood": "{_WORDS}",\n        "core": "{_WORDS}",\n'
        r'        "length": [0-9]{1,2}\.[0-9]{0,2}\n    \}',
    ),
    ("alive", '"(Alive|Deceased)"'),
    ("patronus", f'"{_WORDS}"'),
    ("bogart", f'"{_WORDS}"'),
)
PATTERN = r"\{\n" + r",\n".join(f'    "{name}": {value}' for name, value in _FIELDS) + r"\n\}"


def n_valid(texts: Iterable[str]) -> int:
    """How many of the texts match in full, as Python's `re` reads the pattern."""
    pattern = re.compile(PATTERN)
    return sum(pattern.fullmatch(text) is not None for text in texts)
