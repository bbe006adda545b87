"""Forward passes over the planned requests of a step, in halves where memory does not hold them.

Not here: the model (`model.py`), the batch (`batch.py`), what becomes of the logits (`flight.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from nbsglang.engine.batch import pack
from nbsglang.engine.flight import Flight
from nbsglang.engine.model import Model
from nbsglang.engine.pool import KVPool
from nbsglang.engine.request import Request
from nbsglang.errors import OutOfMemory


class Passes:
    """Launches passes of one model over its pool. `drawn` int64 [max_batch] has the ids that were drawn last."""

    def __init__(self, model: Model, pool: KVPool, max_batch: int) -> None:
        self._model = model
        self._pool = pool
        self.drawn = torch.zeros(max_batch, dtype=torch.int64, device=model.device)

    def run(self, flight: Flight) -> torch.Tensor:
        """Logits [wanted, vocabulary] of a step, on the device, to be used before the next pass.

        Raises Abandoned where nobody wants the step any more, OutOfMemory, and whatever the model raises.
        """
        start = time.perf_counter()
        batch = pack(flight.planned, self._model.packing)
        flight.pack_s = time.perf_counter() - start
        start = time.perf_counter()
        try:
            return self._model.run(
                batch, self._pool, lambda: not all(r.unwanted for r in flight.planned), drawn=self.drawn
            )
        except torch.OutOfMemoryError:
            if len(flight.planned) == 1:
                raise _too_much(flight.planned[0]) from None
        finally:
            flight.run_s = time.perf_counter() - start
        return self._run_halves(flight.planned)

    def _run_halves(self, planned: Sequence[Request]) -> torch.Tensor:
        """The pass when memory ran out: one half of the requests after the other."""
        torch.cuda.empty_cache()
        half = len(planned) // 2
        logits = []
        for part in (planned[:half], planned[half:]):
            try:
                batch = pack(part, self._model.packing)
                logits.append(self._model.run(batch, self._pool, drawn=self.drawn).clone())
                continue
            except torch.OutOfMemoryError:
                if len(part) == 1:
                    raise _too_much(part[0]) from None
            logits.append(self._run_halves(part))  # not in the handler: the error holds the failed pass's tensors
        return torch.cat(logits)

    def release(self) -> None:
        """Drop what is on the device; it is of no use afterwards."""
        self.drawn = self.drawn[:0].clone()


def _too_much(request: Request) -> OutOfMemory:
    numbers = f"{request.n_planned} tokens in one step"
    return OutOfMemory(f"out of memory with {numbers}; use a smaller chunk_tokens or kv_memory")
