"""A step under way: what it computes, the rows of its logits that want a token, and what is coming to the host.

Its forward pass is launched first; tokens are chosen from its logits later, when all is known that the choice needs.

Not here: in which order steps are launched and landed (`core.py`), the forward pass (`passes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from nbsglang.engine.clock import StepClock
from nbsglang.engine.draws import Draws, Scores
from nbsglang.engine.host_copy import HostCopy, to_device
from nbsglang.engine.request import Request
from nbsglang.engine.sampler import sample, score
from nbsglang.engine.scheduler import Scheduler


@dataclass(slots=True)
class Flight:
    """A step that was launched and whose results have not reached the host."""

    planned: list[Request]
    n_planned: list[int]
    n_prefilled: int  # of these tokens, those of prompts, and what is computed anew after a preemption
    plan_s: float
    clock: StepClock
    pack_s: float = 0.0
    run_s: float = 0.0
    commit_s: float = 0.0
    scoring: list[tuple[Request, int]] = field(default_factory=list)  # with how many tokens were scored
    scores: Scores | None = None
    wanting: list[tuple[Request, range]] = field(default_factory=list)  # a next token, with their rows of the logits
    logits: torch.Tensor | None = None  # until tokens are chosen from them
    sampling: list[Request] = field(default_factory=list)  # for each row of `draws`
    draws: Draws | None = None
    has_drafts: bool = False  # the tokens decide which rows count, and the device cannot hand them on
    mark: HostCopy | None = None  # the end of a step without either
    ending: list[Request] = field(default_factory=list)  # scored to their ends

    @property
    def needs_text(self) -> bool:
        """Whether a choice has to wait for tokens of the step before, which the host has not seen."""
        return any(request.needs_text and request.n_pending for request, _ in self.wanting)

    @property
    def lets_next(self) -> bool:
        """Whether the next step goes ahead of its tokens.

        Not where they decide which drafts count, nor where all its texts are likely to jump: that pass would be lost.
        """
        if self.has_drafts:
            return False
        return not self.sampling or not all(request.leaps for request in self.sampling)

    def advance(self, scheduler: Scheduler, logits: torch.Tensor) -> list[Request]:
        """Count what was launched as computed, and score given tokens: whatever is queued on the device later finds
        it done. Returns the requests that are at their ends with that.
        """
        done: list[Request] = []
        scored: list[tuple[int, int]] = []
        follow: list[int] = []
        at = 0
        for request in self.planned:
            start = max(request.want_from, request.n_computed)
            scheduler.computed(request)
            n_wanted = max(request.n_computed - start, 0)
            at += n_wanted
            if request.n_draft and n_wanted:
                request.drop_drafts(request.n_missing)  # which the chunk cut off
            elif (n_scored := min(n_wanted, request.n_known - 1 - start)) > 0:  # rows before the last known token
                follow += request.row[start + 1 : start + 1 + n_scored].tolist()
                scored.append((at - n_wanted, at - n_wanted + n_scored))
                self.scoring.append((request, n_scored))
            request.want_from = max(request.want_from, request.n_computed)
            if request.n_missing:
                continue
            if request.max_new:
                self.wanting.append((request, range(at - 1 - request.n_draft, at)))
            else:
                (self.ending if request.scores_only else done).append(request)
        if scored:
            self.scores = score(_some_of(logits, np.concatenate([np.arange(*span) for span in scored])), follow)
        self.logits = logits
        return done

    @torch.inference_mode()
    def choose(self, drawn: torch.Tensor, fail: Callable[[Request, Exception], object]) -> None:
        """Choose the next tokens, whose ids go to the front of `drawn`; once, and before the next forward pass.

        Those are left out that want none any more, by what the step before has brought. A request whose constraint has
        no next token is given to `fail`.
        """
        assert self.logits is not None
        logits, self.logits = self.logits, None
        rows: list[int] = []
        states: list[Request] = []
        for request, places in self.wanting:
            if request.ended or request.n_missing:
                continue
            try:
                states += by_row(request)
            except Exception as error:  # the neighbours are not to blame
                fail(request, error)
                continue
            rows += places
            self.sampling += [request] * len(places)
        if rows:
            self._draw(_some_of(logits, np.array(rows)), states, drawn)
        elif self.scores is None:
            self.mark = HostCopy(logits[:0])

    def _draw(self, logits: torch.Tensor, states: Sequence[Request], drawn: torch.Tensor) -> None:
        self.draws = sample(logits, states)
        self.has_drafts = any(request.n_draft for request in self.sampling)
        if not self.has_drafts:  # else the next step waits until this one has landed
            drawn[: len(states)] = self.draws.ids
        for place, request in enumerate(self.sampling):
            request.drawn_at = place
            request.n_pending += 1


def _some_of(logits: torch.Tensor, rows: npt.NDArray[np.int64]) -> torch.Tensor:
    """Some rows; the logits themselves where that is all of them."""
    return logits if len(rows) == len(logits) else logits[to_device(rows, logits.device)]


def by_row(request: Request) -> list[Request]:
    """The request as it is for each of its rows, if the drafts up to there are right.

    Each has a next token: their masks are made here. Raises what a matcher raises where one has not.
    """
    if not request.n_draft:
        if request.matcher is not None:
            request.matcher.mask()
        return [request]
    assert request.matcher is not None
    matcher = request.matcher.fork()
    rows: list[Request] = []
    for n in range(request.n_draft + 1):
        row = copy(request)
        row.n_tokens, row.n_draft = request.n_tokens - request.n_draft + n, 0
        row.matcher = matcher.fork()
        row.matcher.mask()
        rows.append(row)
        if n < request.n_draft:
            accepted = matcher.accept(int(request.row[row.n_tokens]))
            assert accepted, "a draft that the constraint does not allow"
    return rows
