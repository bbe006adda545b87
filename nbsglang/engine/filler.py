"""The messages of a chat in the places that the tokenizer's chat template has for them.

The template is asked where the contents go (`layout.py`), and the parts are put there. Then it is asked again, with the
real contents: where it would write something else (some drop the reasoning of earlier turns), its text is taken from
there on. Blanks that a template strips from the edges of a message are stripped from literal text only: what the model
generated stays.

Not here: ids (`prompt.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, zip_longest
from typing import NamedTuple

from nbsglang.calls import Text
from nbsglang.engine.chat import Chat, Part, has_ids, text_of
from nbsglang.engine.layout import Layout, Layouts, Shape, n_common


class Plan(NamedTuple):
    """Parts in their final order, whether BOS is ours to add, and the index of the first part encoded anew."""

    parts: list[Part]
    bos: bool
    anew: int | None = None


class Filler:
    """Fills the templates' layouts of one tokenizer. Safe from any thread."""

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts

    def plan(self, chat: Chat) -> Plan:
        """The parts of a chat in the order of the prompt. Raises UsageError for what the template refuses."""
        if not chat.roles:
            return Plan(chat.outside[0], bos=True)
        shape = Shape(
            roles=tuple(chat.roles),
            filled=tuple(bool(text_of(parts)) for parts in chat.contents),
            outside=tuple(k for k, parts in enumerate(chat.outside) if parts),
            is_open=chat.is_open,
        )
        real = self._layouts.filled(shape, [self._masked(parts) for parts in chat.contents])
        filled = self._fill(chat, self._layouts.places(shape), real, shape.outside)
        if not filled.as_expected:  # perhaps only because the template writes the date
            filled = self._fill(chat, self._layouts.places(shape, fresh=True), real, shape.outside)
        parts = filled.parts + (chat.contents[-1] if chat.is_open else [])
        return Plan(parts, not self._layouts.has_template, filled.anew)

    def _fill(self, chat: Chat, places: Layout, real: str, outside: Sequence[int]) -> _Filled:
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

    def _rewritten(self, chat: Chat, slots: Sequence[_Slot], real: str, parts: list[Part], at: int) -> _Filled:
        """From the first difference in `slots[0]`, which begins at `at`, take the template's text as it is."""
        content = chat.contents[slots[0].message] if slots[0].message is not None else []
        kept = _up_to(content, n_common(text_of(content), real[at:]))
        at += len(text_of(kept))
        messages = [content[len(kept) :], *(chat.contents[s.message] for s in slots[1:] if s.message is not None)]
        lost = any(has_ids(part) for rest in messages for part in rest)
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

    def _find(self, real: str, start: int, literal: str, chat: Chat, following: _Slot | None) -> int:
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
        return "".join(text_of(group) if special else self._layouts.mask(text_of(group)) for special, group in groups)


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
        while wanted and parts and (generated or not has_ids(parts[index])):
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
            if not has_ids(part) and n_chars:
                kept.append(part._replace(text=part.text[:n_chars]))
            break
        kept.append(part)
        n_chars -= size
    return kept
