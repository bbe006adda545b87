"""Text of models and users made safe to show: nothing in it can move a cursor, colour a terminal or hide itself.

Not here: escaping for HTML and SVG (`page.py`, `icicle.py`) and for graphviz (`dot.py`).
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # control, format, surrogate, private, unassigned, separators
SPECIAL = "◇"
_SPECIAL_TOKEN = re.compile(r"<\|[^<>|\s]{1,40}\|>")
_JOINER = "\u200d"  # between the parts of one emoji


def shown(text: str, width: int | None = None) -> str:
    """The text in one line, with control characters as pictures (␛, ⏎) and other invisible ones as <U+202E>.

    More than `width` characters lose their middle to "…".
    """
    if width is not None and len(text) > 4 * width:
        text = text[: 2 * width] + text[-2 * width :]  # enough for both ends, whatever they become
    return elide("".join(map(_visible, text)), width)


def shown_lines(text: str, width: int | None = None) -> str:
    """The same with its line ends kept, and tabs as spaces: for where a text may take several lines."""
    if width is not None and len(text) > 4 * width:
        text = text[: 2 * width] + text[-2 * width :]
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    return elide("\n".join("".join(map(_visible, line)) for line in lines), width)


def brief(text: str) -> str:
    """The text with one sign for each special token such as <|im_start|>: they would fill the labels of a tree."""
    return _SPECIAL_TOKEN.sub(SPECIAL, text)


def name_of(label: str, stream: str, parent: str, branch: int) -> str:
    """How a stream is called: by its label; without one (redacted logs have none) by its number, or as the log does."""
    return f"branch {label or branch}" if parent else label or stream


def n_short(n: int) -> str:
    """A count in few characters: 950, 1.2k, 34k, 5.6M."""
    for unit, name in ((1_000_000, "M"), (1000, "k")):
        if n >= unit:
            return f"{n / unit:.1f}{name}" if n < 10 * unit else f"{n // unit}{name}"
    return str(n)


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
