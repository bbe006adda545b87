"""From a `calls.Prompt` to text and to token ids.

Without roles a prompt is its segments in order. With roles the tokenizer's own chat template says where they go
(`filler.py`), generated ids as they are. Where it would write something else than was generated, everything from there
on is encoded anew as text, and `Encoded.anew` says so.

Not here: ids of text (`tokenizer.py`), the order of the parts (`filler.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from nbsglang.calls import Generated, Prompt, Text
from nbsglang.engine.chat import Part, has_ids, take_apart, text_of
from nbsglang.engine.filler import Filler
from nbsglang.engine.layout import Layouts, n_common
from nbsglang.engine.tokenizer import Tokenizer


class Encoded(NamedTuple):
    """A prompt in tokens. `anew` is the index in `ids` from which generated text was encoded anew, or None.

    The last `n_literal` ids are those of literal text after all that was generated.
    """

    ids: list[int]
    text: str
    anew: int | None = None
    n_literal: int = 0


class Renderer:
    """Renders and encodes the prompts of one tokenizer. Safe from any thread."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._filler = Filler(Layouts(tokenizer))

    def render(self, prompt: Prompt) -> str:
        """The text of the prompt as the model will see it. Raises as `encode` does."""
        return text_of(self._filler.plan(take_apart(prompt)).parts)

    def encode(self, prompt: Prompt) -> Encoded:
        """The ids of the prompt.

        Ids of Generated segments are in it as they are; all text between two of them is encoded as one text, however
        it is cut into segments, with special tokens only where a Text is special or the template writes them. A raw
        prompt begins as the tokenizer begins a text (BOS), a chat as the template does.

        Raises UsageError for roles that do not nest and for what the chat template refuses, Unsupported for Media.
        """
        plan = self._filler.plan(take_apart(prompt))
        ids, n_literal = self._ids(plan.parts, plan.bos)
        anew = None
        if plan.anew is not None:
            anew = n_common(ids, self._ids(plan.parts[: plan.anew], plan.bos)[0])
        return Encoded(ids, text_of(plan.parts), anew, n_literal)

    def _ids(self, parts: Sequence[Part], bos: bool) -> tuple[list[int], int]:
        """The ids, and how many of the last of them are those of literal text."""
        ids: list[int] = []
        if bos and (not parts or has_ids(parts[0])):
            ids += self._tokenizer.bos_ids
        first = not ids
        start = len(ids)  # of the literal text before the next ids
        for stays, group in groupby(parts, key=has_ids):
            if stays:
                for part in group:
                    assert isinstance(part, Generated)
                    self._append(ids, start, part)
                    start = len(ids)
            else:
                pieces = ((part.text, isinstance(part, Text) and part.special) for part in group)
                ids += self._tokenizer.encode_run(pieces, first=first, bos=bos)
            first = False
        return ids, len(ids) - start

    def _append(self, ids: list[int], start: int, part: Generated) -> None:
        """Append what was generated; the literal text since `start` loses the tokens that it has replaced.

        Where that text ends otherwise than when it was healed, the new text is encoded as text.
        """
        if part.over:
            end, data = len(ids), b""
            while end > start and len(data) < len(part.over.encode()):
                end -= 1
                data = self._tokenizer.token_bytes(ids[end]) + data
            if data != part.over.encode():
                ids += self._tokenizer.encode_run([(part.text, False)], first=False)
                return
            del ids[end:]
        ids += part.ids
