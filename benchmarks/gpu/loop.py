"""transformers as the workloads use it: one `generate` after the other, nothing shared, nothing batched.

Not here: batches and prefix caches by hand (`benchmarks/batched.py`, `benchmarks/by_hand.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Ids = list[int]


class Loop:
    """A loop over model.generate. A call blocks the event loop: there is nothing to be gained by doing otherwise."""

    name = "transformers"

    def __init__(self, module: Any) -> None:
        self._module = module
        self._device = next(module.parameters()).device
        self._n_computed = 0
        self.firsts: list[float] = []

    async def call(self, ids: Ids, n_out: int, temperature: float = 0.0) -> Ids:
        """The module is one in which nothing ends a text."""
        self._n_computed += len(ids)
        prompt = torch.tensor([ids], device=self._device)
        how: dict[str, Any] = {"do_sample": False}
        if temperature:
            how = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        with torch.inference_mode():
            out = self._module.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=n_out, pad_token_id=0, **how
            )
        made: Ids = out[0, len(ids) :].tolist()
        return made

    async def score(self, ids: Ids, choices: Sequence[Ids]) -> list[float]:
        """Mean log probabilities, a forward pass for each choice."""
        return [self._score(ids, choice) for choice in choices]

    @torch.inference_mode()
    def _score(self, ids: Ids, choice: Ids) -> float:
        self._n_computed += len(ids) + len(choice) - 1
        row = torch.tensor([[*ids, *choice[:-1]]], device=self._device)
        logits = self._module(row, use_cache=False, logits_to_keep=len(choice)).logits[0]
        wanted = torch.tensor(choice, device=self._device)[:, None]
        return float(torch.log_softmax(logits.float(), -1).gather(1, wanted).mean())

    async def reset(self) -> None:
        """It keeps nothing."""
        self._n_computed = 0

    def computed(self) -> int:
        """All of every prompt."""
        return self._n_computed

    def close(self) -> None:
        """The module is its caller's."""
