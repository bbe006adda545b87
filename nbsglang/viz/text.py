"""Text of models and users made safe to show: nothing in it can move a cursor, colour a terminal or hide itself.

Not here: escaping for HTML, SVG and graphviz (`still.py`).
"""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # control, format, surrogate, private, unassigned, separators
_JOINER = "\u200d"  # between the parts of one emoji


def shown(text: str, width: int | None = None) -> str:
    """The text in one line, with control characters as pictures (␛, ⏎) and other invisible ones as <U+202E>.

    More than `width` characters lose their middle to "…".
    """
    if width is not None and len(text) > 4 * width:
        text = text[: 2 * width] + text[-2 * width :]  # enough for both ends, whatever they become
    return elide("".join(map(_visible, text)), width)


def elide(text: str, width: int | None) -> str:
    """The text with "…" in place of its middle if it has more than `width` characters."""
    if width is None or len(text) <= width:
        return text
    head = max(width, 1) // 2
    tail = max(width, 1) - head - 1
    return text[:head] + "…" + (text[-tail:] if tail else "")


def _visible(char: str) -> str:
    if char == "\n":
        return "⏎"
    if char < " ":
        return chr(0x2400 + ord(char))
    if char == "\x7f":
        return "␡"
    if char != _JOINER and unicodedata.category(char) in _HIDDEN:
        return f"<U+{ord(char):04X}>"
    return char
