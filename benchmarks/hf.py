"""What the contestants that use transformers directly share: ids and texts, padding, the choice by score, first tokens.

Not here: how they generate (`loop.py`, `batched.py`, `by_hand.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from transformers.generation.streamers import BaseStreamer


class FirstToken(BaseStreamer):  # type: ignore[misc]  # transformers' class has no types
    """Notes when the first token was generated, in seconds since this object was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._puts = 0
        self.seconds: float | None = None

    def put(self, value: object) -> None:
        """Called with the prompt, then with each token."""
        self._puts += 1
        if self._puts == 2:
            self.seconds = time.perf_counter() - self._start

    def note(self) -> None:
        """The first token is there, for loops without `generate`."""
        if self.seconds is None:
            self.seconds = time.perf_counter() - self._start

    def end(self) -> None:
        """Called at the end of each generate."""


class Words:
    """Text to ids and back."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def ids(self, text: str, start: bool = True) -> list[int]:
        """The ids of a text; `start`: with the special tokens that the tokenizer puts before it."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=start).input_ids
        return ids

    def texts(self, rows: torch.Tensor) -> list[str]:
        """Generated ids [rows, n] as texts, special tokens left out."""
        texts: list[str] = self.tokenizer.batch_decode(rows, skip_special_tokens=True)
        return texts

    def boundary(self, prompt: str, choices: Sequence[str]) -> tuple[list[list[int]], int]:
        """The ids of prompt + choice for each choice, and how many of them all of these and the prompt share."""
        full = [self.ids(prompt + choice) for choice in choices]
        alone = self.ids(prompt)
        return full, min(min(common(alone, ids), len(ids) - 1) for ids in full)


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """The length of the common prefix."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def left_padded(rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and attention mask, int64 [rows, longest]; padding is at the left."""
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + list(row) for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids, mask


def mean_logprob(logits: torch.Tensor, ids: Sequence[int]) -> float:
    """The mean log probability of `ids`, each after the row of `logits` [len(ids), vocabulary] at its place."""
    picked = logits.float().gather(1, torch.tensor(ids)[:, None])[:, 0]
    return float((picked - torch.logsumexp(logits.float(), -1)).mean())


def best(choices: Sequence[str], scores: Sequence[float]) -> str:
    """The choice with the highest score, the first one of equals."""
    return choices[max(range(len(choices)), key=scores.__getitem__)]


def sampling(new: int, temperature: float) -> dict[str, Any]:
    """Arguments of `generate` for exactly `new` tokens."""
    how = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    return {"max_new_tokens": new, "min_new_tokens": new, **how}
