"""From a `calls.Prompt` to text and to token ids.

Without roles a prompt is its segments in order. With roles the tokenizer's own chat template is asked where the
contents of the messages go (`layout.py`), and the segments are put there, generated ids as they are. Then the
template is asked again, with the real contents: where it would write something else (some drop the reasoning of
earlier turns), everything from there on is encoded anew as text, and `Encoded.anew` says so. Blanks that a template
strips from the edges of a message are stripped from literal text only: what the model generated stays.

Not here: ids of text (`tokenizer.py`), the places of the messages in a template's text (`layout.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import NamedTuple, TypeAlias

from nbsglang.calls import Generated, Media, Prompt, RoleBegin, RoleEnd, Text
from nbsglang.engine.layout import Layout, Layouts, Shape, n_common
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import Unsupported, UsageError

Part: TypeAlias = Text | Generated


class Encoded(NamedTuple):
    """A prompt in tokens. `anew` is the index in `ids` from which generated text was encoded anew, or None.

    The last `n_literal` ids are those of literal text after all that was generated.
    """

    ids: list[int]
    text: str
    anew: int | None = None
    n_literal: int = 0


@dataclass(slots=True)
class _Chat:
    """A prompt taken apart: `outside[k]` stands before message k, its last entry after all messages."""

    roles: list[str]
    contents: list[list[Part]]
    outside: list[list[Part]]
    is_open: bool = False


class _Plan(NamedTuple):
    """Parts in their final order, whether BOS is ours to add, and the index of the first part encoded anew."""

    parts: list[Part]
    bos: bool
    anew: int | None = None


class Renderer:
    """Renders and encodes the prompts of one tokenizer. Safe from any thread."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._layouts = Layouts(tokenizer)

    def render(self, prompt: Prompt) -> str:
        """The text of the prompt as the model will see it. Raises as `encode` does."""
        return _text(self._plan(prompt).parts)

    def encode(self, prompt: Prompt) -> Encoded:
        """The ids of the prompt.

        Ids of Generated segments are in it as they are; all text between two of them is encoded as one text, however
        it is cut into segments, with special tokens only where a Text is special or the template writes them. A raw
        prompt begins as the tokenizer begins a text (BOS), a chat as the template does.

        Raises UsageError for roles that do not nest and for what the chat template refuses, Unsupported for Media.
        """
        plan = self._plan(prompt)
        ids, n_literal = self._ids(plan.parts, plan.bos)
        anew = None
        if plan.anew is not None:
            anew = n_common(ids, self._ids(plan.parts[: plan.anew], plan.bos)[0])
        return Encoded(ids, _text(plan.parts), anew, n_literal)

    def _ids(self, parts: Sequence[Part], bos: bool) -> tuple[list[int], int]:
        """The ids, and how many of the last of them are those of literal text."""
        ids: list[int] = []
        if bos and (not parts or _has_ids(parts[0])):
            ids += self._tokenizer.bos_ids
        first = not ids
        start = len(ids)  # of the literal text before the next ids
        for has_ids, group in groupby(parts, key=_has_ids):
            if has_ids:
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

    def _plan(self, prompt: Prompt) -> _Plan:
        chat = _take_apart(prompt)
        if not chat.roles:
            return _Plan(chat.outside[0], bos=True)
        shape = Shape(
            roles=tuple(chat.roles),
            filled=tuple(bool(_text(parts)) for parts in chat.contents),
            outside=tuple(k for k, parts in enumerate(chat.outside) if parts),
            is_open=chat.is_open,
        )
        real = self._layouts.filled(shape, [self._masked(parts) for parts in chat.contents])
        filled = self._fill(chat, self._layouts.places(shape), real, shape.outside)
        if not filled.as_expected:  # perhaps only because the template writes the date
            filled = self._fill(chat, self._layouts.places(shape, fresh=True), real, shape.outside)
        parts = filled.parts + (chat.contents[-1] if chat.is_open else [])
        return _Plan(parts, not self._layouts.has_template, filled.anew)

    def _fill(self, chat: _Chat, places: Layout, real: str, outside: Sequence[int]) -> _Filled:
        """Put the contents in their places, as far as the template writes the same text with the real contents."""
        parts: list[Part] = []
        slots = self._slots(places, outside)
        at = 0  # in the real text
        for n, slot in enumerate(slots):
            content = chat.contents[slot.message] if slot.message is not None else []
            for variant in _stripped(content):
                end = at + len(expected := self._masked(variant.as_written) + slot.literal)
                if real.startswith(expected, at) and (n + 1 < len(slots) or end == len(real)):
                    break
            else:
                return self._rewritten(chat, slots[n:], real, parts, at)
            parts += variant.parts
            start = 0
            for before, offset in slot.outside:
                parts += [Text(slot.literal[start:offset], special=True), *chat.outside[before]]
                start = offset
            parts.append(Text(slot.literal[start:], special=True))
            at = end
        return _Filled(parts, True)

    def _rewritten(self, chat: _Chat, slots: Sequence[_Slot], real: str, parts: list[Part], at: int) -> _Filled:
        """From the first difference in `slots[0]`, which begins at `at`, take the template's text as it is."""
        content = chat.contents[slots[0].message] if slots[0].message is not None else []
        kept = _up_to(content, n_common(_text(content), real[at:]))
        at += len(_text(kept))
        messages = [content[len(kept) :], *(chat.contents[s.message] for s in slots[1:] if s.message is not None)]
        lost = any(_has_ids(part) for rest in messages for part in rest)
        parts = parts + kept
        filled = _Filled(parts, False, len(parts) if lost else None)
        for slot, following in zip_longest(slots, slots[1:]):
            for k, offset in slot.outside:
                place = self._find(real, at, slot.literal[offset:], chat, following)
                parts += [Text(*piece) for piece in self._layouts.unmask(real[at:place])]
                parts += chat.outside[k]
                at = place
        parts += [Text(*piece) for piece in self._layouts.unmask(real[at:])]
        return filled

    def _find(self, real: str, start: int, literal: str, chat: _Chat, following: _Slot | None) -> int:
        """Where `literal` stands in a rewritten text, before the content of the following slot or at the end."""
        if following is None or following.message is None:
            return max(start, len(real) - len(literal)) if real.endswith(literal) else len(real)
        found = real.find(literal + self._masked(chat.contents[following.message]), start)
        return found if found >= 0 else max(start, real.find(literal, start))

    def _slots(self, places: Layout, outside: Sequence[int]) -> list[_Slot]:
        slots = [_Slot(None, "", [])]
        start = 0
        for item in self._layouts.split(places.text):
            if isinstance(item, int):
                slots.append(_Slot(item, "", []))
                start += len(self._layouts.hole(item))
                continue
            end = start + len(item)
            inside = [(k, at - start) for k, at in zip(outside, places.outside, strict=True) if start <= at <= end]
            slots[-1] = slots[-1]._replace(literal=item, outside=inside)
            start = end
        return slots

    def _masked(self, parts: Iterable[Part]) -> str:
        groups = groupby(parts, key=lambda part: isinstance(part, Text) and part.special)
        return "".join(_text(group) if special else self._layouts.mask(_text(group)) for special, group in groups)


class _Slot(NamedTuple):
    """The place of a message's content (None: of nothing) with the template's text after it.

    `outside` has the message that text outside of roles stands before, and its place in `literal`.
    """

    message: int | None
    literal: str
    outside: list[tuple[int, int]]


class _Filled(NamedTuple):
    parts: list[Part]
    as_expected: bool
    anew: int | None = None  # the first part that is encoded anew


class _Variant(NamedTuple):
    as_written: list[Part]  # what the template writes for the content
    parts: list[Part]  # what we write


def _stripped(content: list[Part]) -> Iterable[_Variant]:
    """The content as it is, and without blanks on both sides, on the right, on the left."""
    yield _Variant(content, content)
    for left, right in ((True, True), (False, True), (True, False)):
        yield _Variant(_strip(content, left, right, True), _strip(content, left, right, False))


def _strip(content: list[Part], left: bool, right: bool, generated: bool) -> list[Part]:
    parts = list(content)
    for wanted, index in ((left, 0), (right, -1)):
        while wanted and parts and (generated or not _has_ids(parts[index])):
            text = parts[index].text
            text = text.lstrip() if index == 0 else text.rstrip()
            parts[index] = parts[index]._replace(text=text)
            if text:
                break
            parts.pop(index)
    return parts


def _up_to(content: Sequence[Part], n_chars: int) -> list[Part]:
    """The parts within the first n_chars characters; literal text is cut there, generated text is left out."""
    kept: list[Part] = []
    for part in content:
        size = len(part.text)
        if size > n_chars:
            if not _has_ids(part) and n_chars:
                kept.append(part._replace(text=part.text[:n_chars]))
            break
        kept.append(part)
        n_chars -= size
    return kept


def _text(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts)


def _has_ids(part: Part) -> bool:
    return isinstance(part, Generated) and bool(part.ids)


def _take_apart(prompt: Prompt) -> _Chat:
    chat = _Chat([], [], [[]])
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
