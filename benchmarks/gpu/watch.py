"""Our engine as a backend that notes the calls of programs, and may hide that it takes prefix hints.

Not here: what the notes are for (`optimum.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.gpu.alphabet import ids_of
from benchmarks.gpu.optimum import Notes
from nbsglang.calls import (
    Call,
    Capabilities,
    Chunk,
    Failure,
    GenCall,
    Generated,
    Inbox,
    Prompt,
    Reply,
    ScoreCall,
    Text,
)
from nbsglang.engine.engine import Engine


class Watched:
    """The Backend protocol around an engine; `notes`, `firsts` and `n_hints` are those since `reset`.

    While the clock runs, prompts and replies are only kept; `notes` makes ids of them afterwards.
    """

    def __init__(self, engine: Engine, hint: bool = True) -> None:
        self._engine = engine
        self._hint = hint
        self.reset()

    def reset(self) -> None:
        """Forget what was noted."""
        self.kept: list[ScoreCall | GenCall | tuple[GenCall, Reply]] = []
        self.firsts: list[float] = []
        self.n_hints = 0

    def notes(self) -> Notes:
        """What was asked and made, in order."""
        notes = Notes()
        for item in self.kept:
            if isinstance(item, ScoreCall):
                ids = prompt_ids(item.prompt)
                for choice in item.choices:
                    notes.scored(ids, ids_of(choice))
            elif isinstance(item, GenCall):
                notes.asked(prompt_ids(item.prompt))
            else:
                call, reply = item
                notes.made(prompt_ids(call.prompt), reply.completions[0].ids)
        return notes

    @property
    def capabilities(self) -> Capabilities:
        """The engine's, hints apart."""
        return replace(self._engine.capabilities, prefix_hint=self._hint)

    def render(self, prompt: Prompt) -> str:
        """The engine's."""
        return self._engine.render(prompt)

    @property
    def renderer(self) -> Callable[[Prompt], str]:
        """The engine's."""
        return self._engine.renderer

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Note it and pass it on."""
        if isinstance(call, GenCall) and call.sampling.max_tokens == 0:
            self.n_hints += 1
        else:
            self.kept.append(call)
        if isinstance(call, GenCall) and call.sampling.max_tokens > 0:
            inbox = _Listening(self, call, inbox)
        self._engine.submit(call, inbox)

    def cancel(self, call_id: str) -> None:
        """The engine's."""
        self._engine.cancel(call_id)

    def flush(self) -> None:
        """The engine's."""
        self._engine.flush()

    def stats(self) -> Mapping[str, float]:
        """The engine's."""
        return self._engine.stats()

    def close(self) -> None:
        """The engine is its owner's."""


class _Listening:
    """An inbox that keeps a generation's reply before it passes it on."""

    def __init__(self, watched: Watched, call: GenCall, inbox: Inbox) -> None:
        self._watched, self._call, self._inbox = watched, call, inbox

    def put(self, item: Chunk | Reply | Failure, /) -> None:
        """On the engine's thread."""
        if isinstance(item, Reply):
            self._watched.kept.append((self._call, item))
            if item.usage.first_token_s is not None:
                self._watched.firsts.append(item.usage.first_token_s)
        self._inbox.put(item)


def prompt_ids(prompt: Prompt) -> list[int]:
    """The ids of a prompt without roles, in the benchmarks' alphabet."""
    ids: list[int] = []
    for part in prompt:
        assert isinstance(part, (Text, Generated)), part
        ids += part.ids if isinstance(part, Generated) and part.ids else ids_of(part.text)
    return ids
