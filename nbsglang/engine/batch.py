"""One step's work as frozen host arrays, built whole by `pack`.

A row is one token to compute. On a GPU attention reads spans (`contexts.py`). On a CPU it is a list of `Work` items:
queries that read the same keys, or a stack of alike requests with keys of their own. The keys of each row are spread
over one or more items, and the parts are merged by log-sum-exp. Keys that several requests share in the tree are one
item, read once for all of them.

Not here: tensors (`attend.py`) and the choice of what to compute (`scheduler.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nbsglang.engine.contexts import Run, shared_runs, spans
from nbsglang.engine.request import Request
from nbsglang.kernels.spans import Longs, Reads, Spans

Ints = npt.NDArray[np.int32]

_ALONE = 64  # rows; so long a chunk is attention of its own
NOWHERE = 1 << 30  # the position of a padding key: after every query, so that causality hides it


class Work(NamedTuple):
    """Attention of `rows` [b, q] over keys at `slots` [b, k], whose positions are `positions` [b, k].

    Short rows are padded by repeating their last one, short keys with slot 0 at NOWHERE. `level` numbers
    the parts of a row. `sees` is what causality leaves of a line's keys: "all" to every query, "own" where the keys
    are those of the queries themselves, in order, or "some", which the positions tell.
    """

    rows: Ints
    slots: Ints
    positions: Ints
    level: int
    sees: Literal["all", "own", "some"]


class Batch(NamedTuple):
    """The rows of a step. `wanted` are the rows whose logits are needed, in the order of the requests."""

    ids: npt.NDArray[np.int64]  # [rows]
    positions: npt.NDArray[np.int64]  # [rows]
    slots: npt.NDArray[np.int64]  # [rows], where the new keys and values go
    wanted: npt.NDArray[np.int64]  # [wanted]
    work: tuple[Work, ...]
    n_levels: int
    spans: Spans | None = None  # instead of work: what the rows of short chunks read
    reads: Reads | None = None  # what the rows of long chunks read, which come after these
    drawn: npt.NDArray[np.int64] | None = None  # [rows], where an id stands among those drawn last; -1: it is in `ids`


class _Part(NamedTuple):
    """The keys of one request that no other request of the batch reads."""

    rows: Ints
    slots: Ints
    positions: Ints


class Packing(NamedTuple):
    """Whose contexts are spans: those of requests that compute fewer than `n_long` tokens, and all of a step of at most
    `n_rows` rows."""

    n_long: int
    n_rows: int = 0


def pack(requests: Sequence[Request], packing: Packing | None = None) -> Batch:
    """Build the batch of the planned tokens.

    With `packing` its contexts are spans, or whole reads of requests, which then come last. Without it, they are work
    items.
    """
    counts = [r.n_planned for r in requests]
    first = np.array([r.n_computed for r in requests], np.int64)  # positions of each request's first row
    starts = np.cumsum([0, *counts], dtype=np.int64)
    stops = first + counts
    for request, stop in zip(requests, stops.tolist(), strict=True):
        request.make_room(stop)
    of_row = np.repeat(np.arange(len(requests)), counts)
    positions = np.arange(starts[-1]) + (first - starts[:-1])[of_row]
    flat = [(r.row[a:b], r.slots[a:b]) for r, a, b in zip(requests, first.tolist(), stops.tolist(), strict=True)]
    work, n_levels = _work(requests, starts) if packing is None else ((), 0)
    n_short = len(requests)
    if packing is not None and starts[-1] > packing.n_rows:
        n_short = sum(n < packing.n_long for n in counts)
        assert all(n >= packing.n_long for n in counts[n_short:]), "long chunks come last"
    wants = np.array([r.want_from for r in requests])
    return Batch(
        ids=np.concatenate([ids for ids, _ in flat]).astype(np.int64),
        positions=positions,
        slots=np.concatenate([slots for _, slots in flat]).astype(np.int64),
        wanted=np.flatnonzero(positions >= wants[of_row]),
        work=work,
        n_levels=n_levels,
        spans=None if packing is None else spans(requests[:n_short], starts[: n_short + 1], stops[:n_short]),
        reads=_reads(requests[n_short:], starts[n_short:], stops[n_short:]),
        drawn=_drawn(requests, starts[1:] - 1, int(starts[-1])),
    )


def _drawn(requests: Sequence[Request], last: npt.NDArray[np.int64], n_rows: int) -> npt.NDArray[np.int64] | None:
    """Where the ids of the rows `last` stand, of requests whose newest token has not reached the host; else None."""
    places = np.fromiter((r.drawn_at if r.n_pending else -1 for r in requests), np.int64, len(requests))
    if not len(places) or places.max() < 0:
        return None
    drawn = np.full(n_rows, -1, np.int64)
    drawn[last] = places
    return drawn


def _reads(requests: Sequence[Request], starts: Longs, stops: Longs) -> Reads | None:
    if not requests:
        return None
    contexts = np.cumsum([0, *stops.tolist()], dtype=np.int32)
    slots = np.concatenate([r.slots[:stop] for r, stop in zip(requests, stops.tolist(), strict=True)])
    return Reads((starts - starts[0]).astype(np.int32), contexts, slots)


def _work(requests: Sequence[Request], starts: Longs) -> tuple[tuple[Work, ...], int]:
    rows = [np.arange(a, b, dtype=np.int32) for a, b in pairwise(starts.tolist())]
    shared = shared_runs(requests)
    parts = [_own_part(i, r, rows[i], shared) for i, r in enumerate(requests)]
    return _levels([*_shared_work(shared, rows), *_own_work(parts)], int(starts[-1]))


def _shared_work(shared: Sequence[Run], rows: list[Ints]) -> list[Work]:
    work = []
    for run in shared:
        queries = np.concatenate([rows[i] for i in run.requests])
        positions = np.arange(run.start, run.start + len(run.slots), dtype=np.int32)
        work.append(Work(queries[None], run.slots[None], positions[None], 0, "all"))
    return work


def _own_part(i: int, request: Request, rows: Ints, shared: Sequence[Run]) -> _Part:
    """What is left of the context of request `i` without the shared runs, its new tokens included."""
    n_context = request.n_computed + request.n_planned
    own = np.ones(n_context, bool)
    for run in shared:
        if i in run.requests:
            own[run.start : run.start + len(run.slots)] = False
    positions = np.flatnonzero(own).astype(np.int32)
    return _Part(rows, request.slots[positions], positions)


def _own_work(parts: list[_Part]) -> list[Work]:
    """Stack parts of alike size, so that padding at most doubles either side; large ones stay alone."""
    groups: dict[tuple[int, int], list[_Part]] = {}
    work: list[Work] = []
    for part in parts:
        n_rows, n_keys = len(part.rows), len(part.slots)
        if n_rows >= _ALONE:
            work += _past_and_own(part)
        else:
            groups.setdefault((n_rows.bit_length(), max(n_keys, 32).bit_length()), []).append(part)
    return work + [_stack(group) for group in groups.values()]


def _past_and_own(part: _Part) -> list[Work]:
    """A long chunk reads what went before it without a mask, and half of its own square."""
    n_past = len(part.slots) - len(part.rows)
    pieces: list[tuple[slice, Literal["all", "own"]]] = [(slice(n_past, None), "own")]
    if n_past:
        pieces.append((slice(n_past), "all"))
    return [Work(part.rows[None], part.slots[None, at], part.positions[None, at], 0, sees) for at, sees in pieces]


def _stack(parts: list[_Part]) -> Work:
    n_rows = max(len(p.rows) for p in parts)
    n_keys = max(len(p.slots) for p in parts)
    rows = np.stack([np.pad(p.rows, (0, n_rows - len(p.rows)), mode="edge") for p in parts])
    slots = np.zeros((len(parts), n_keys), np.int32)
    positions = np.full((len(parts), n_keys), NOWHERE, np.int32)
    for i, part in enumerate(parts):
        slots[i, : len(part.slots)] = part.slots
        positions[i, : len(part.slots)] = part.positions
    full = n_rows == 1 and all(len(p.slots) == n_keys for p in parts)
    return Work(rows, slots, positions, 0, "all" if full else "some")


def _levels(work: list[Work], n_rows: int) -> tuple[tuple[Work, ...], int]:
    """Number the parts of each row, so that every part has a place of its own to be merged from."""
    used = np.zeros(n_rows, np.int32)
    done = []
    for item in work:
        level = int(used[item.rows].max())
        used[item.rows] = level + 1
        done.append(item._replace(level=level))
    return tuple(done), int(used.max())
