"""Prompts as immutable rows of segments: appending, the part since a mark, messages.

Not here: how a prompt looks to the model (a backend's `render`).
"""

from __future__ import annotations

from typing import NamedTuple

from nbsglang.calls import Generated, Prompt, RoleBegin, RoleEnd, Segment, Text


class Mark(NamedTuple):
    """A place in a prompt: after `n_segments` segments, the last of which then had `n_chars` characters of text."""

    n_segments: int
    n_chars: int


START = Mark(0, 0)


def extended(prompt: Prompt, segments: Prompt) -> Prompt:
    """The prompt with these at its end; literals that meet become one, so that they are encoded as one text."""
    for segment in segments:
        prompt = _appended(prompt, segment)
    return prompt


def mark(prompt: Prompt) -> Mark:
    """The prompt's end as a place."""
    return Mark(len(prompt), len(prompt[-1].text) if prompt and isinstance(prompt[-1], Text) else 0)


def since(prompt: Prompt, place: Mark) -> Prompt:
    """What came after the place."""
    rest = prompt[place.n_segments :]
    last = prompt[place.n_segments - 1] if place.n_segments else None
    if isinstance(last, Text) and len(last.text) > place.n_chars:
        return (Text(last.text[place.n_chars :], last.special), *rest)
    return rest


def plain_text(prompt: Prompt) -> str:
    """The texts without what a template adds for roles."""
    return "".join(segment.text for segment in prompt if isinstance(segment, (Text, Generated)))


def messages_of(prompt: Prompt) -> list[dict[str, str]]:
    """The finished messages; text outside of roles is in none of them."""
    messages: list[dict[str, str]] = []
    role: str | None = None
    texts: list[str] = []
    for segment in prompt:
        if isinstance(segment, RoleBegin):
            role, texts = segment.name, []
        elif isinstance(segment, RoleEnd):
            if role is not None:
                messages.append({"role": role, "content": "".join(texts)})
            role = None
        elif isinstance(segment, (Text, Generated)):
            texts.append(segment.text)
    return messages


def open_role(prompt: Prompt) -> str | None:
    """The role whose message has begun and not ended."""
    for segment in reversed(prompt):
        if isinstance(segment, RoleBegin):
            return segment.name
        if isinstance(segment, RoleEnd):
            return None
    return None


def _appended(prompt: Prompt, segment: Segment) -> Prompt:
    last = prompt[-1] if prompt else None
    if isinstance(segment, Text):
        if not segment.text:
            return prompt
        if isinstance(last, Text) and last.special == segment.special:
            return (*prompt[:-1], Text(last.text + segment.text, segment.special))
    return (*prompt, segment)
