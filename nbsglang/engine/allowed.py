"""What may come next under a constraint, and how likely each token is: the answer of `Engine.allowed`, and it as text.

Not here: how it is found (`look.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_WIDTH = 60  # characters of a constraint, or of the text so far, in a table


class Candidate(NamedTuple):
    """A token that may come next, or may not.

    `probability` is the model's own, before the mask; `share` is what it has of what the mask leaves, 0 where it is
    banned. `ends` says that it ends the text.
    """

    id: int
    text: str
    probability: float
    share: float
    ends: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Allowed:
    """What a constraint allows after the text `after`, with the model's own probabilities at temperature 1.

    `kept` is the probability of all `n_allowed` tokens, `removed` that of all others of the `n_vocab`; what is left of
    a distribution of 32-bit numbers may miss 1 by their rounding. `tokens` are the likeliest that are allowed and
    `banned` those that are not, likeliest first. `forced` is the text that must come next, "" where there is a choice.
    Where the text is `done`, it may end. `constraint` is its value as text, "" where there is none.
    """

    constraint: str
    after: str
    forced: str
    done: bool
    n_vocab: int
    n_allowed: int
    kept: float
    removed: float
    tokens: tuple[Candidate, ...]
    banned: tuple[Candidate, ...]

    def __getitem__(self, text: str) -> Candidate:
        """The likeliest of the listed tokens with this text, allowed ones first. Raises KeyError."""
        for candidate in (*self.tokens, *self.banned):
            if candidate.text == text:
                return candidate
        raise KeyError(text)

    def __str__(self) -> str:
        return "\n".join(_table(self))

    __repr__ = __str__


def _table(found: Allowed) -> Iterator[str]:
    under = f"under {short(found.constraint)}" if found.constraint else "without a constraint"
    n_banned = found.n_vocab - found.n_allowed
    yield f"after {short(repr(found.after))} {under}:"
    yield (
        f"{found.n_allowed:,} of {found.n_vocab:,} tokens are allowed, with {_percent(found.kept)} of the probability; "
        f"{100 * found.removed:.5g}% is removed"
    )
    if found.forced:
        yield f"forced: {short(repr(found.forced))}"
    width = max([len("not allowed"), *(len(_label(each)) for each in (*found.tokens, *found.banned))])
    yield from _rows("allowed", found.tokens, found.n_allowed, width)
    yield from _rows("not allowed", found.banned, n_banned, width)


def _rows(title: str, listed: Sequence[Candidate], n_all: int, width: int) -> Iterator[str]:
    if not n_all:
        return
    yield f"  {title:{width}}  {'model':>9}  {'left':>9}"
    for each in listed:
        left = _percent(each.share) if each.share else "-"
        yield f"  {_label(each):{width}}  {_percent(each.probability):>9}  {left:>9}"
    if n_all > len(listed):
        yield f"  … {n_all - len(listed):,} more"


def _percent(probability: float) -> str:
    return f"{100 * probability:.3g}%"


def _label(candidate: Candidate) -> str:
    is_told = candidate.text and "\ufffd" not in candidate.text  # a part of a character, or a row without a token
    name = short(repr(candidate.text)) if is_told else f"{candidate.text!r} id {candidate.id}"
    return f"{name} (ends it)" if candidate.ends else name


def short(text: str) -> str:
    """In one line, whatever the text says: `repr` has made the rest visible."""
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
