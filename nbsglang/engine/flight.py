"""A step that was launched and has not landed, and the rows of its logits.

Not here: launching and landing (`core.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import numpy.typing as npt
import torch

from nbsglang.engine.draws import Draws, Scores
from nbsglang.engine.host_copy import HostCopy, to_device
from nbsglang.engine.request import Request


@dataclass(slots=True)
class Flight:
    """A step that was launched and whose results have not reached the host."""

    planned: list[Request]
    n_planned: list[int]
    t_began: float
    plan_s: float
    pack_s: float = 0.0
    run_s: float = 0.0
    commit_s: float = 0.0
    scoring: list[tuple[Request, int]] = field(default_factory=list)  # with how many tokens were scored
    scores: Scores | None = None
    sampling: list[Request] = field(default_factory=list)
    draws: Draws | None = None
    mark: HostCopy | None = None  # the end of a step without either
    ending: list[Request] = field(default_factory=list)  # scored to their ends


def rows_of(logits: torch.Tensor, spans: Sequence[tuple[int, int]]) -> torch.Tensor:
    """The rows of all spans."""
    return some_of(logits, np.concatenate([np.arange(start, stop) for start, stop in spans]))


def some_of(logits: torch.Tensor, rows: npt.NDArray[np.int64]) -> torch.Tensor:
    """Some rows; the logits themselves where that is all of them."""
    return logits if len(rows) == len(logits) else logits[to_device(rows, logits.device)]


def by_row(requests: Sequence[Request]) -> list[Request]:
    """For each row of a request with drafts, the request as it is if the drafts up to there are right."""
    rows: list[Request] = []
    for request, again in groupby(requests):
        if not request.n_draft:
            rows += again
            continue
        assert request.matcher is not None
        matcher = request.matcher.fork()
        for n in range(request.n_draft + 1):
            row = copy(request)
            row.n_tokens, row.n_draft = request.n_tokens - request.n_draft + n, 0
            row.matcher = matcher.fork()
            rows.append(row)
            if n < request.n_draft:
                accepted = matcher.accept(int(request.row[row.n_tokens]))
                assert accepted, "a draft that the constraint does not allow"
    return rows
