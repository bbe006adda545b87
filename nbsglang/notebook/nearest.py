"""The name that was probably meant, for messages about unknown ones.

Not here: the messages.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean 'x'?` for the nearest of the known names, or what to say when none is near."""
    names = list(known)
    lower = {other.lower(): other for other in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    if not close:
        longer = [other for other in names if other.startswith(name)] if len(name) > 2 else []
        return f"; did you mean {longer[0]}?" if longer else otherwise
    return f"; did you mean {lower[close[0]]}?"
