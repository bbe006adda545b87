"""Following a text while it grows, as steps: pieces of text, and pauses in which the reader must wait.

How to wait is the reader's affair, so that threads, programs and coroutines share the one logic.

Not here: waiting (`hub.py`), the iterators that users call (`state.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple

from nbsglang.calls import Prompt, Text
from nbsglang.lang import prompts
from nbsglang.lang.hub import Ready
from nbsglang.lang.slots import Signal, Slot
from nbsglang.lang.stream import Stream


class Pause(NamedTuple):
    """Nothing more to say until `ready()`."""

    signal: Signal
    ready: Ready


Steps = Generator[str | Pause, None, None]


def follow_slot(slot: Slot) -> Steps:
    """The text of a variable: its chunks, or all of it if it did not stream. Raises its fault at the end."""
    sent = 0
    while True:
        done = slot.done  # before looking for chunks: none comes after it
        while sent < len(slot.chunks):
            sent += 1
            yield slot.chunks[sent - 1]
        if done:
            break
        yield Pause(slot.signal, lambda: slot.done or len(slot.chunks) > sent)  # noqa: B023 (waits at once)
    value = slot.read()
    if sent == 0:
        text = str(value[0] if isinstance(value, list) and value else value)  # of n texts the one that went on
        if text:
            yield text


def follow_prompt(stream: Stream, settled: Ready, render: Callable[[Prompt], str]) -> Steps:
    """The rendered prompt up to where it is `settled`; the pieces make up the final text."""
    sent = ""
    while True:
        last = settled()  # before looking at the prompt
        seen = stream.shown
        prompt, live = seen
        now = render(prompts.extended(prompt, (Text(live),)))
        if now.startswith(sent):
            if now != sent:
                yield now[len(sent) :]
            sent = now
        elif last:  # what was said has been rewritten (by a template, or by splitting reasoning off)
            yield now[_n_common(now, sent) :]
        if last:
            break
        yield Pause(stream.signal, lambda: stream.shown is not seen or settled())  # noqa: B023 (waits at once)


def _n_common(a: str, b: str) -> int:
    """The length of the prefix that both have."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
