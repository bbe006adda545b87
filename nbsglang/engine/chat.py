"""A prompt taken apart into the messages of a chat, and what their parts are.

Not here: where the messages go (`filler.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from nbsglang.calls import Generated, Media, Prompt, RoleBegin, RoleEnd, Text
from nbsglang.errors import Unsupported, UsageError

Part: TypeAlias = Text | Generated


@dataclass(slots=True)
class Chat:
    """A prompt taken apart: `outside[k]` stands before message k, its last entry after all messages."""

    roles: list[str]
    contents: list[list[Part]]
    outside: list[list[Part]]
    is_open: bool = False


def take_apart(prompt: Prompt) -> Chat:
    """The chat of a prompt. Raises UsageError for roles that do not nest, Unsupported for Media."""
    chat = Chat([], [], [[]])
    for segment in prompt:
        if isinstance(segment, RoleBegin):
            if chat.is_open:
                raise UsageError(f"role {segment.name!r} begins inside of {chat.roles[-1]!r}; roles do not nest")
            chat.roles.append(segment.name)
            chat.contents.append([])
            chat.outside.append([])
            chat.is_open = True
        elif isinstance(segment, RoleEnd):
            if not chat.is_open or chat.roles[-1] != segment.name:
                raise UsageError(f"role {segment.name!r} ends, but it is not open")
            chat.is_open = False
        elif isinstance(segment, Media):
            raise Unsupported("this engine serves text models: a prompt cannot hold an image or a video")
        else:
            (chat.contents[-1] if chat.is_open else chat.outside[-1]).append(segment)
    return chat


def text_of(parts: Iterable[Part]) -> str:
    """The text of the parts."""
    return "".join(part.text for part in parts)


def has_ids(part: Part) -> bool:
    """Whether the model wrote it, in tokens that stay."""
    return isinstance(part, Generated) and bool(part.ids)
