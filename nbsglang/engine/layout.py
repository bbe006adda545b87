"""Where the messages of a chat stand in the text that the tokenizer's chat template writes.

The template is rendered with a random word in place of each content, so that what the template writes and what the
program says can be told apart, and nothing in a message can pass for the template's own text. Templates are code of
the model's author: they run in transformers' sandbox, and whatever they raise becomes a UsageError.

Without a chat template a plain layout is used, with a warning: each message is its role and a colon, a line break,
its content and an empty line, as in "user:\\nHello!\\n\\nassistant:\\n". It has no special tokens.

Not here: what is done with the text (`filler.py`).
"""

from __future__ import annotations

import re
import secrets
import threading
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import UsageError

_MEMO = 512


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a chat matters to the layout.

    `filled[i]` says whether message i has content, `outside` before which messages (the last number: after all)
    there is text outside of roles, `is_open` that the last message is not complete.
    """

    roles: tuple[str, ...]
    filled: tuple[bool, ...]
    outside: tuple[int, ...]
    is_open: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """A template's text up to the content of the open message, if there is one, else to its end.

    `outside` has the index in `text` where text outside of roles belongs, for each entry of the shape.
    """

    text: str
    outside: tuple[int, ...]


class Layouts:
    """Renders chats with the template of one tokenizer. Safe from any thread."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._word = "w" + secrets.token_hex(12)
        self._splitter = re.compile(self._word + "h([0-9]+)h")
        texts = sorted(filter(None, tokenizer.special_texts), key=len, reverse=True)
        self._special_texts = texts
        self._special = re.compile("|".join(map(re.escape, texts)) if texts else "(?!)")
        self._masked = re.compile(self._word + "s([0-9]+)s")
        self._memo: OrderedDict[Shape, Layout] = OrderedDict()
        self._lock = threading.Lock()
        self._warned = False

    @property
    def has_template(self) -> bool:
        """Whether the tokenizer has a chat template (which then writes BOS itself)."""
        return self._tokenizer.hf.chat_template is not None

    def places(self, shape: Shape, fresh: bool = False) -> Layout:
        """The text with a place for each content; `split` finds them. Remembered, unless `fresh`."""
        with self._lock:
            layout = None if fresh else self._memo.get(shape)
            if layout is not None:
                self._memo.move_to_end(shape)
                return layout
        words = [self.hole(i) if filled else "" for i, filled in enumerate(shape.filled)]
        text = self.filled(shape, words)
        closed = _messages(shape, words)[: len(words) - shape.is_open]
        places = (self._outside(text, closed, k) if k < len(words) else len(text) for k in shape.outside)
        layout = Layout(text, tuple(places))
        with self._lock:
            self._memo[shape] = layout
            if len(self._memo) > _MEMO:
                self._memo.popitem(last=False)
        return layout

    def filled(self, shape: Shape, contents: Sequence[str]) -> str:
        """The text with these contents. Raises UsageError if the template refuses the messages."""
        messages = _messages(shape, contents)
        if not shape.is_open:
            return self._render(messages)
        if len(messages) > 1 and shape.roles[-1] == "assistant":
            return self._render(messages[:-1], opens_turn=True)
        return self._before(messages)

    def split(self, text: str) -> list[str | int]:
        """What the template wrote, and in between the numbers of the messages whose contents stand there."""
        return [int(part) if n % 2 else part for n, part in enumerate(self._splitter.split(text))]

    def mask(self, text: str) -> str:
        """Data with its special tokens replaced by random words, so that they are not mistaken for the template's."""
        return self._special.sub(lambda m: f"{self._word}s{self._special_texts.index(m[0])}s", text)

    def unmask(self, text: str) -> list[tuple[str, bool]]:
        """The text in pieces: what `mask` replaced (False), all else (True)."""
        parts = self._masked.split(text)
        return [(self._special_texts[int(part)], False) if n % 2 else (part, True) for n, part in enumerate(parts)]

    def hole(self, message: int) -> str:
        """The random word that stands for the content of a message."""
        return f"{self._word}h{message}h"

    def _before(self, messages: list[dict[str, str]]) -> str:
        """What the template writes before the content of the last message."""
        hole = self.hole(len(messages) - 1)
        text = self._render([*messages[:-1], messages[-1] | {"content": hole}])
        if hole not in text:
            raise UsageError(f"the chat template of this model has no place for a message of {messages[-1]['role']!r}")
        return text[: text.index(hole)]

    def _outside(self, text: str, messages: list[dict[str, str]], k: int) -> int:
        """The index where the first k messages end."""
        if k == 0:  # before everything, but for BOS
            bos = "".join(map(self._tokenizer.token_text, self._tokenizer.bos_ids))
            return len(bos) if text.startswith(bos) else 0
        try:
            beginning = self._render(messages[:k])
        except UsageError:  # some templates refuse a chat that ends here
            beginning = ""
        last = messages[k - 1]["content"]
        at = text.find(last) if last else -1
        return max(n_common(text, beginning), at + len(last) if at >= 0 else 0)

    def _render(self, messages: list[dict[str, str]], opens_turn: bool = False) -> str:
        if not self.has_template:
            self._warn()
            text = "".join(f"{message['role']}:\n{message['content']}\n\n" for message in messages)
            return text + "assistant:\n" if opens_turn else text
        try:
            answer: Any = self._tokenizer.hf.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=opens_turn
            )
        except Exception as error:  # a template can raise anything
            roles = ", ".join(message["role"] for message in messages) or "no message"
            raise UsageError(
                f"the chat template of this model refuses this chat ({roles}): {type(error).__name__}: {error}"
            ) from None
        return str(answer)

    def _warn(self) -> None:
        with self._lock:
            warned, self._warned = self._warned, True
        if not warned:
            warnings.warn(
                "this tokenizer has no chat template: messages are written as 'role:\\ncontent\\n\\n'. "
                "Base models need no roles; for a chat model set tokenizer.chat_template",
                stacklevel=2,
            )


def _messages(shape: Shape, contents: Sequence[str]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in zip(shape.roles, contents, strict=True)]


def n_common(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items two sequences have in common at their beginning."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
