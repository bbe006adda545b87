"""Chat templates by name, for programs that import them: one documented form, ChatML.

In process the tokenizer's own template is used, so nothing needs to be chosen. Not here: Jinja, tokenizers.
"""

from __future__ import annotations

from dataclasses import dataclass

from nbsglang.calls import Generated, Prompt, RoleBegin, RoleEnd, Text
from nbsglang.errors import UsageError


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A role's message is `begin` (with `{role}` in it), its content, `end`. Such messages follow each other."""

    name: str
    begin: str
    end: str

    def render(self, prompt: Prompt) -> str:
        """The prompt as text."""
        return "".join(self._piece(segment) for segment in prompt)

    def _piece(self, segment: object) -> str:
        if isinstance(segment, RoleBegin):
            return self.begin.replace("{role}", segment.name)
        if isinstance(segment, RoleEnd):
            return self.end
        return segment.text if isinstance(segment, (Text, Generated)) else ""


def get_chat_template(name: str) -> ChatTemplate:
    """The template "chatml" (or "default"). Raises UsageError for other names."""
    if name in ("chatml", "default"):
        return ChatTemplate("chatml", "<|im_start|>{role}\n", "<|im_end|>\n")
    raise UsageError(f"there is no chat template {name!r} here: an Engine uses its tokenizer's own; else use 'chatml'")
