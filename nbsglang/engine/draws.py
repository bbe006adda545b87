"""What a step has chosen or scored, while it is on its way from the device to the host.

Not here: how it is chosen (`sampler.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from nbsglang.calls import TokenLogprob
from nbsglang.engine.host_copy import HostCopy
from nbsglang.errors import BackendError

NOT_NUMBERS = "the model's logits are not numbers (NaN); its weights or its dtype are unfit"


class Sampled(NamedTuple):
    """One row's token, with log probabilities if the request wants them.

    `removed` is the probability that the row's mask took from other tokens; None where it had none.
    """

    id: int
    logprob: TokenLogprob | None = None
    top: tuple[TokenLogprob, ...] = ()
    removed: float | None = None


class Draws:
    """The tokens of a step: `ids` int64 [rows] on the device at once, and on the host when they have come there.

    `removed` [rows] is what masks took away, NaN for rows without one.
    """

    def __init__(
        self,
        ids: torch.Tensor,
        largest: torch.Tensor,
        logprobs: dict[int, Logprobs],
        removed: torch.Tensor | None = None,
    ) -> None:
        self.ids = ids
        columns = [ids, largest] if removed is None else [ids, largest, removed]
        self._copy = HostCopy(torch.stack([column.double() for column in columns]))  # float64 holds every id
        self._logprobs = logprobs

    def fetch(self, alive: Sequence[bool] | None = None) -> list[Sampled]:
        """Each row's token. Raises BackendError if logits of a row that is `alive` were not numbers; None: all are."""
        ids, largest, *masked = self._copy.wait()
        if np.isnan(largest if alive is None else largest[np.array(alive, bool)]).any():
            raise BackendError(NOT_NUMBERS)
        found = [Sampled(token) for token in ids.astype(np.int64).tolist()]
        for row, logprobs in self._logprobs.items():
            found[row] = logprobs.of(found[row].id)
        if masked:
            pairs = zip(found, masked[0].tolist(), strict=True)
            found = [each if math.isnan(removed) else each._replace(removed=removed) for each, removed in pairs]
        return found


class Logprobs:
    """Of the chosen token and the `n_top` likeliest, for one row of the model's own logits [vocabulary]."""

    def __init__(self, row: torch.Tensor, token: torch.Tensor, n_top: int) -> None:
        logprobs = torch.log_softmax(row.float(), -1)
        values, ids = logprobs.topk(min(n_top, len(row)))
        mine = logprobs.gather(0, token[None])
        self._copy = HostCopy(torch.stack([torch.cat([mine, values]).double(), torch.cat([token[None], ids]).double()]))

    def of(self, token: int) -> Sampled:
        """The token with them."""
        values, ids = self._copy.wait()
        each = [TokenLogprob(int(i), float(p)) for i, p in zip(ids, values, strict=True)]
        return Sampled(token, each[0], tuple(each[1:]))


class Scores:
    """Log probabilities of given tokens, on their way to the host."""

    def __init__(self, ids: Sequence[int], values: torch.Tensor) -> None:
        self._ids = ids
        self._copy = HostCopy(values)

    def fetch(self) -> list[TokenLogprob]:
        """One for each given token, in order. Raises BackendError if logits were not numbers."""
        values = self._copy.wait()
        if np.isnan(values).any():
            raise BackendError(NOT_NUMBERS)
        return [TokenLogprob(i, p) for i, p in zip(self._ids, values.tolist(), strict=True)]


def with_drawn(ids: torch.Tensor, places: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """The `ids` [rows] with those of `drawn` at their `places` [rows], where these are not -1; all int64."""
    return torch.where(places < 0, ids, drawn[places.clamp(min=0)])
