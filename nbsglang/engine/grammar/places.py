"""Where in the text of a regular expression a construct stands that is refused.

The parse tree of `re` does not say. So the text is gone through again, by the few marks that matter: escapes, classes
and comments, in which a construct is none, and the constructs themselves.

Not here: what is refused and why (`regex.py`).
"""

from __future__ import annotations

import re
from re import _constants as ops  # type: ignore[attr-defined]  # not in typeshed; the parse tree has no other door
from typing import Any

_TOKEN = r"""
    (?P<backreference> \\(?![0-3][0-7][0-7])[1-9][0-9]? | \(\?P=[^)]*\) )
  | \\.
  | \[\^?\]?(?:\\.|[^\]\\])*\]
  | \(\?\#[^)]*\)
  | (?P<conditional> \(\?\( [^)]* \) )
  | (?P<atomic> \(\?> )
  | (?P<possessive> (?: [*+?] | \{(?:[0-9]+(?:,[0-9]*)?|,[0-9]*)\} )\+ )
  | (?P<lookbehind> \(\?<[=!] )
"""
_NAMES = {
    ops.GROUPREF: "backreference",
    ops.GROUPREF_EXISTS: "conditional",
    ops.ATOMIC_GROUP: "atomic",
    ops.POSSESSIVE_REPEAT: "possessive",
}


def place(pattern: str, op: Any, verbose: bool) -> str:
    """The first place of what the parse tree calls `op`, as the end of a sentence: " at position 3: '\\\\1'"."""
    name = _NAMES.get(op, "lookbehind")
    token = _TOKEN + (r"| \#[^\n]*" if verbose else "")
    for found in re.finditer(token, pattern, re.VERBOSE | re.DOTALL):
        if found.lastgroup == name:
            return f" at position {found.start()}: {found.group()!r}"
    return ""
