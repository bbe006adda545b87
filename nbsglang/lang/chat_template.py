"""Chat templates by name, for programs that import them. A name is all that there is to them.

Not here: any rendering. A backend renders prompts: an Engine by its tokenizer's own template, the mock as ChatML.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbsglang.errors import UsageError


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A template by its name, to be passed around; nothing depends on it."""

    name: str


def get_chat_template(name: str) -> ChatTemplate:
    """The template "chatml" (or "default"). Raises UsageError for other names."""
    if name in ("chatml", "default"):
        return ChatTemplate("chatml")
    raise UsageError(f"there is no chat template {name!r} here: an Engine uses its tokenizer's own; else use 'chatml'")
