"""What a constraint allows at one place, as a table with bars: the answer of an engine's `allowed` in a notebook.

Not here: how it is found and its form as text (the engine).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Protocol

from nbsglang.viz.page import page
from nbsglang.viz.paint import GREEN, VERMILION
from nbsglang.viz.text import shown

_MONO = "font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:12px"
_CELL = "text-align:left;padding:0 14px 0 0"
_NUMBER = "text-align:right;padding:0 14px 0 0;font-variant-numeric:tabular-nums"
_WIDE = 160  # pixels of the longest bar


class Token(Protocol):
    """A token with the model's own probability, and its share of what the mask leaves."""

    @property
    def id(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def probability(self) -> float: ...
    @property
    def share(self) -> float: ...
    @property
    def ends(self) -> bool: ...


class Found(Protocol):
    """The answer; see the engine's `Allowed`."""

    @property
    def constraint(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def forced(self) -> str: ...
    @property
    def n_vocab(self) -> int: ...
    @property
    def n_allowed(self) -> int: ...
    @property
    def kept(self) -> float: ...
    @property
    def removed(self) -> float: ...
    @property
    def tokens(self) -> Sequence[Token]: ...
    @property
    def banned(self) -> Sequence[Token]: ...


def allowed_html(found: Found) -> str:
    """The likeliest tokens that are allowed, then those that are not. Bars are the model's own probabilities."""
    place = f"after <b>{escape(_visible(found.after, 60))}</b>" if found.after else "at the beginning"
    under = f"under <b>{escape(shown(found.constraint, 80))}</b>" if found.constraint else "without a constraint"
    forced = f"; forced: <b>{escape(_visible(found.forced, 60))}</b>" if found.forced else ""
    head = (
        f"<div>{place} {under}: {found.n_allowed:,} of {found.n_vocab:,} "
        f"tokens are allowed, with {_percent(found.kept)} of the probability; "
        f"{100 * found.removed:.5g}% is removed{forced}</div>"
    )
    longest = max((token.probability for token in (*found.tokens, *found.banned)), default=0.0)
    rows = [
        *_rows("allowed", "✓", GREEN, found.tokens, found.n_allowed, longest),
        *_rows("not allowed", "✗", VERMILION, found.banned, found.n_vocab - found.n_allowed, longest),
    ]
    look = "border-collapse:collapse;color:inherit;background:inherit;font:inherit;margin-top:4px"
    return page(head, f'<table style="{look}">{"".join(rows)}</table>')


def _rows(title: str, sign: str, colour: str, tokens: Sequence[Token], n_all: int, longest: float) -> Iterator[str]:
    if not n_all:
        return
    names = (title, "", "model", "left" if sign == "✓" else "")
    faint = "".join(
        f'<td style="{_CELL if n < 2 else _NUMBER};opacity:.75">{name}</td>' for n, name in enumerate(names)
    )
    yield f"<tr>{faint}</tr>"
    for token in tokens:
        wide = _WIDE * token.probability / longest if longest > 0 and math.isfinite(token.probability) else 0.0
        bar = f'<div style="height:8px;width:{wide:.1f}px;min-width:1px;background:{colour}"></div>'
        yield (
            f'<tr><td style="{_CELL};{_MONO}">{sign} {escape(_label(token))}</td>'
            f'<td style="{_CELL};width:{_WIDE}px" aria-hidden="true">{bar}</td>'
            f'<td style="{_NUMBER}">{_percent(token.probability)}</td>'
            f'<td style="{_NUMBER}">{_percent(token.share) if token.share else ""}</td></tr>'
        )
    if n_all > len(tokens):
        yield f'<tr><td colspan="4" style="{_CELL};opacity:.75">… {n_all - len(tokens):,} more</td></tr>'


def _label(token: Token) -> str:
    is_told = token.text and "\ufffd" not in token.text  # a part of a character, or a row without a token
    name = _visible(token.text, 40) if is_told else f"id {token.id}"
    return f"{name} (ends it)" if token.ends else name


def _visible(text: str, width: int) -> str:
    """The text with its blanks at the ends to be seen."""
    text = shown(text, width)
    inner = text.strip(" ")
    if not inner:
        return "␣" * len(text)
    before, after = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    return "␣" * before + inner + "␣" * after


def _percent(probability: float) -> str:
    return f"{100 * probability:.3g}%"
