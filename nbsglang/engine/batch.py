"""One step's work as frozen host arrays, built whole by `pack`.

A row is one token to compute. Attention is a list of `Work` items: queries that read the same keys, or
a stack of alike requests with keys of their own. The keys of each row are spread over one or more items,
and the parts are merged by log-sum-exp. Keys that several requests share in the tree are one item, read
once for all of them.

Not here: tensors (`attend.py`) and the choice of what to compute (`scheduler.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nbsglang.engine.request import Request
from nbsglang.kernels.paged import Reads

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
    reads: Reads | None = None  # instead of work, where each request's context is read by itself


class _Part(NamedTuple):
    """The keys of one request that no other request of the batch reads."""

    rows: Ints
    slots: Ints
    positions: Ints


class _Run(NamedTuple):
    """Keys that several requests of the batch read, from position `start` on: int32 [n] slots."""

    start: int
    slots: Ints
    requests: tuple[int, ...]


def pack(requests: Sequence[Request], min_shared: int = 32, *, flat: bool = False) -> Batch:
    """Build the batch of the planned tokens. Shared runs shorter than `min_shared` tokens are read apart.

    A `flat` batch has the reads of each request instead of work that requests share.
    """
    if flat and all(r.n_planned == 1 for r in requests):
        return _decode_batch(requests)
    spans = [(r.n_computed, r.n_computed + r.n_planned) for r in requests]
    starts = np.cumsum([0, *(stop - start for start, stop in spans)])
    rows = [np.arange(starts[i], starts[i + 1], dtype=np.int32) for i in range(len(requests))]
    work, n_levels = ((), 0) if flat else _work(requests, rows, min_shared)
    return Batch(
        ids=np.concatenate([r.row[a:b] for r, (a, b) in zip(requests, spans, strict=True)]).astype(np.int64),
        positions=np.concatenate([np.arange(a, b) for a, b in spans]).astype(np.int64),
        slots=np.concatenate([r.slots[a:b] for r, (a, b) in zip(requests, spans, strict=True)]).astype(np.int64),
        wanted=np.concatenate([rows[i][max(r.want_from - r.n_computed, 0) :] for i, r in enumerate(requests)]).astype(
            np.int64
        ),
        work=work,
        n_levels=n_levels,
        reads=_reads(requests, spans, starts) if flat else None,
    )


def _decode_batch(requests: Sequence[Request]) -> Batch:
    """One row for each request, as nearly always: in few calls, since each is paid for every request and token."""
    n = len(requests)
    positions = np.fromiter((r.n_computed for r in requests), np.int64, n)
    slots = np.concatenate([r.slots[: r.n_computed + 1] for r in requests])
    contexts = np.zeros(n + 1, np.int32)
    np.cumsum(positions + 1, out=contexts[1:])
    return Batch(
        ids=np.fromiter((r.row[r.n_computed] for r in requests), np.int64, n),
        positions=positions,
        slots=slots[contexts[1:] - 1].astype(np.int64),
        wanted=np.flatnonzero([r.want_from <= r.n_computed for r in requests]),
        work=(),
        n_levels=0,
        reads=Reads(np.arange(n + 1, dtype=np.int32), contexts, slots),
    )


def _reads(requests: Sequence[Request], spans: list[tuple[int, int]], starts: npt.NDArray[np.int64]) -> Reads:
    contexts = np.cumsum([0, *(stop for _, stop in spans)])
    slots = np.concatenate([r.slots[:stop] for r, (_, stop) in zip(requests, spans, strict=True)])
    return Reads(starts.astype(np.int32), contexts.astype(np.int32), slots)


def _work(requests: Sequence[Request], rows: list[Ints], min_shared: int) -> tuple[tuple[Work, ...], int]:
    shared = _shared_runs(requests, min_shared)
    parts = [_own_part(i, r, rows[i], shared) for i, r in enumerate(requests)]
    n_rows = sum(map(len, rows))
    return _levels([*_shared_work(shared, rows), *_own_work(parts)], n_rows)


def _shared_runs(requests: Sequence[Request], min_shared: int) -> list[_Run]:
    """The runs of tree nodes that the same two or more requests read, if long enough, parents before children."""
    paths = [r.node.path() if r.node else [] for r in requests]
    readers: dict[int, list[int]] = {}
    for i, path in enumerate(paths):
        for node in path:
            readers.setdefault(node.id, []).append(i)
    runs = []
    for i, path in enumerate(paths):
        position = 0
        # Readers only become fewer on the way down, so neighbours with as many have the same; the first describes it.
        for n, nodes in groupby(path, key=lambda node: len(readers[node.id])):
            chain = list(nodes)
            slots = np.concatenate([node.slots for node in chain])
            if n > 1 and readers[chain[0].id][0] == i and len(slots) >= min_shared:
                runs.append(_Run(position, slots, tuple(readers[chain[0].id])))
            position += len(slots)
    return runs


def _shared_work(shared: list[_Run], rows: list[Ints]) -> list[Work]:
    work = []
    for run in shared:
        queries = np.concatenate([rows[i] for i in run.requests])
        positions = np.arange(run.start, run.start + len(run.slots), dtype=np.int32)
        work.append(Work(queries[None], run.slots[None], positions[None], 0, "all"))
    return work


def _own_part(i: int, request: Request, rows: Ints, shared: list[_Run]) -> _Part:
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
