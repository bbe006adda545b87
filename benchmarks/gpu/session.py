"""What the programs of one run ask an engine through: it checks and notes every call.

Not here: engines (`adapter.py`), what follows from the notes (`optimum.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from benchmarks.gpu.characters import PATTERN
from benchmarks.gpu.optimum import Notes

Ids = list[int]
T = TypeVar("T")


class Adapter(Protocol):
    """An engine as the workloads use it.

    Further methods that it may have: `score(ids, choices) -> list[float]` (mean log probabilities, best is highest)
    and `constrained(ids, pattern, most_out, temperature) -> (ids, text)`. `firsts` are the seconds to the first token
    of each call since the last reset, empty where the engine does not say.
    """

    name: str
    firsts: list[float]

    async def call(self, ids: Ids, n_out: int, temperature: float = 0.0) -> Ids:
        """Exactly `n_out` tokens after `ids`, whatever they are."""
        ...

    async def reset(self) -> None:
        """Empty the cache and the counters."""
        ...

    def computed(self) -> int | None:
        """Prompt tokens that were computed since the last reset; None where the engine does not say."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class Session:
    """One run on an adapter. With `parallel` false, branches of a program go one after the other."""

    def __init__(self, adapter: Adapter, parallel: bool = True) -> None:
        self.notes = Notes()
        self.texts: list[str] = []  # of constrained calls
        self._adapter = adapter
        self._parallel = parallel

    async def call(self, ids: Ids, n_out: int, temperature: float = 0.0) -> Ids:
        """`n_out` tokens after `ids`. Raises ValueError when the engine makes fewer or more."""
        self.notes.asked(ids)
        out = await self._adapter.call(ids, n_out, temperature)
        if len(out) != n_out:
            raise ValueError(f"{self._adapter.name} made {len(out)} tokens of {n_out}")
        self.notes.made(ids, out)
        return out

    async def score(self, ids: Ids, choices: Sequence[Ids]) -> list[float]:
        """A score for each choice. An engine that cannot score makes one token after each choice instead."""
        score = getattr(self._adapter, "score", None)
        if score is None:
            outs = await self.together([self.call(ids + choice, 1) for choice in choices])
            return [0.0] * len(outs)
        for choice in choices:
            self.notes.scored(ids, choice)
        scores: list[float] = await score(ids, choices)
        return scores

    async def constrained(self, ids: Ids, most_out: int, temperature: float) -> Ids:
        """A text in the form of `characters.PATTERN`; it is in `texts` too."""
        ask = getattr(self._adapter, "constrained", None)
        if ask is None:
            raise NotImplementedError(f"the adapter of {self._adapter.name} has no constraints")
        self.notes.asked(ids)
        out, text = await ask(ids, PATTERN, most_out, temperature)
        self.notes.made(ids, out)
        self.texts.append(text)
        return list(out)

    async def together(self, branches: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """The results of the branches, in order."""
        if self._parallel:
            return list(await asyncio.gather(*branches))
        return [await branch for branch in branches]
