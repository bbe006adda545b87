"""The ablation "no tree": our engine with a flat table of whole sequences instead of a tree of shared prefixes.

A prompt finds an earlier sequence only if all of that sequence begins it: a whole earlier prompt, with or without what
was generated after it. Questions that share their shots, but not a whole prompt, share nothing then. The engine has no
such mode and needs none: the policy is laid over its scheduler from outside, for the time of a comparison. Memory
stays shared in the tree beneath, so the hit rate is that of a table, the room taken is not.

Not here: other ablations (`ablation.py`), which the engine's own options can do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nbsglang.engine.engine import Engine
from nbsglang.engine.radix import Ints
from nbsglang.engine.request import Request

_NAMES = ("_cacheable", "_next", "finish", "flush")


class Table:
    """Sequences by their length and content."""

    def __init__(self) -> None:
        self._by_length: dict[int, set[bytes]] = {}

    def add(self, ids: Ints) -> None:
        """A sequence ended."""
        self._by_length.setdefault(len(ids), set()).add(ids.tobytes())

    def longest(self, ids: Ints) -> int:
        """The length of the longest earlier sequence that begins `ids`, 0 if none does."""
        lengths = sorted((n for n in self._by_length if n <= len(ids)), reverse=True)
        return next((n for n in lengths if ids[:n].tobytes() in self._by_length[n]), 0)

    def clear(self) -> None:
        """Forget all."""
        self._by_length.clear()


@contextmanager
def flat_table(engine: Engine) -> Iterator[Table]:
    """While it lasts, the engine looks for whole earlier sequences only, and no request waits for another's prefix."""
    scheduler: Any = engine._loop._core.scheduler  # as in `benchmarks/overhead.py`: worth no public way in
    missing = [name for name in _NAMES if not hasattr(scheduler, name)]
    assert not missing, f"the scheduler has no {missing} any more: this ablation must follow"
    table, finish, flush = Table(), scheduler.finish, scheduler.flush

    def cacheable(request: Request) -> Ints:
        return request.tokens[: table.longest(request.tokens[: request.want_from])]

    def finished(request: Request) -> None:
        for n in {min(request.n_prompt, request.n_computed), request.n_computed} - {0}:
            table.add(request.tokens[:n])
        finish(request)

    def flushed() -> int:
        table.clear()
        return int(flush())

    patches = (cacheable, lambda order, matched, n_later: order[0], finished, flushed)
    for name, patch in zip(_NAMES, patches, strict=True):
        setattr(scheduler, name, patch)
    try:
        yield table
    finally:
        for name in _NAMES:
            delattr(scheduler, name)
