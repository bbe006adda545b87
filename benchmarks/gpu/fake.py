"""An engine of a few lines for tests: tokens that follow from the prompt, and a cache without limits.

Not here: any model.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence

import numpy as np

Ids = list[int]


class Fake:
    """Answers at the next turn of the event loop. `calls` has (prompt, n_out) of each call."""

    name = "fake"

    def __init__(self, n_vocab: int) -> None:
        self.calls: list[tuple[Ids, int]] = []
        self.scored: list[tuple[Ids, Ids]] = []
        self.firsts: list[float] = []
        self._n_vocab = n_vocab

    async def call(self, ids: Ids, n_out: int, temperature: float = 0.0) -> Ids:
        """The same prompt gives the same tokens at temperature 0, others above."""
        self.calls.append((ids, n_out))
        await asyncio.sleep(0)
        return self._made(ids, n_out, len(self.calls) if temperature else 0)

    async def score(self, ids: Ids, choices: Sequence[Ids]) -> list[float]:
        """Some number for each choice."""
        self.scored += [(ids, choice) for choice in choices]
        return [float(self._made([*ids, *choice], 1, 0)[0]) for choice in choices]

    async def constrained(self, ids: Ids, pattern: str, most_out: int, temperature: float) -> tuple[Ids, str]:
        """Ids and a text that have nothing to do with the pattern."""
        return await self.call(ids, most_out, temperature), "no character"

    async def reset(self) -> None:
        """Forget the calls."""
        self.calls, self.scored = [], []

    def computed(self) -> None:
        """It computes nothing."""
        return

    def close(self) -> None:
        """Nothing is held."""

    def _made(self, ids: Ids, n: int, seed: int) -> Ids:
        start = zlib.crc32(np.array([seed, *ids], np.int64).tobytes())
        return np.random.default_rng(start).integers(0, self._n_vocab, n).tolist()
