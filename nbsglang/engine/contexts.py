"""What the requests of a step read: runs of the tree that several of them share, and the rest of each context.

Not here: the rows of the step (`batch.py`), how spans are computed (`kernels/spans.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbsglang.engine.radix_node import RadixNode
from nbsglang.engine.request import Request
from nbsglang.engine.slots import Ints
from nbsglang.kernels.spans import Longs, Reads, Spans, spans_of_reads, spans_of_tree

_SPAN_LEAST = 64  # keys of a shared span, and keys that sharing saves: less does not pay for merging one part more
_SPAN_SAVES = 512
_LEAST_ROWS = 6  # of a step that shares: with fewer, what is saved is less than a launch for spans of many rows


class Run(NamedTuple):
    """Keys that several requests of the step read, from position `start` on: int32 [n] slots."""

    start: int
    slots: Ints
    requests: tuple[int, ...]


def shared_runs(requests: Sequence[Request], least: int = 32, saves: int = 0) -> list[Run]:
    """The runs of tree nodes that the same two or more requests read, of at least `least` keys each.

    A run is left out where sharing it would save fewer than `saves` keys.
    """
    paths = [r.node.path() if r.node else [] for r in requests]
    readers: dict[int, list[int]] = {}
    for i, path in enumerate(paths):
        for node in path:
            readers.setdefault(node.id, []).append(i)
    if len(readers) == sum(map(len, paths)):
        return []
    runs: list[Run] = []
    for i, path in enumerate(paths):
        position, chain = 0, list[RadixNode]()
        for node in path:
            who = readers[node.id]
            if who[0] != i or len(who) == 1:  # another one brings it, or nobody shares it
                if len(who) == 1:
                    break
                position += len(node.slots)
                continue
            # Readers only become fewer on the way down, so neighbours with as many have the same.
            if chain and len(readers[chain[0].id]) != len(who):
                position = _add(runs, position, chain, readers, least, saves)
                chain = []
            chain.append(node)
        _add(runs, position, chain, readers, least, saves)
    return runs


def _add(
    runs: list[Run], start: int, chain: list[RadixNode], readers: dict[int, list[int]], least: int, saves: int
) -> int:
    """Add the run of a chain if it is worth it. Returns the position after it."""
    if not chain:
        return start
    who = readers[chain[0].id]
    slots = chain[0].slots if len(chain) == 1 else np.concatenate([node.slots for node in chain])
    if len(slots) >= least and len(slots) * (len(who) - 1) >= saves:
        runs.append(Run(start, slots, tuple(who)))
    return start + len(slots)


def spans(requests: Sequence[Request], starts: Longs, stops: Longs) -> Spans:
    """What the rows from `starts[i]` to `starts[i + 1]` of request i read: its context up to `stops[i]`."""
    rows = starts.astype(np.int32)
    ends = stops.tolist()
    runs = shared_runs(requests, _SPAN_LEAST, _SPAN_SAVES) if starts[-1] >= _LEAST_ROWS else []
    if not runs:
        slots = [r.slots[:end] for r, end in zip(requests, ends, strict=True)]
        contexts = np.cumsum([0, *ends], dtype=np.int32)
        return spans_of_reads(Reads(rows, contexts, np.concatenate([np.zeros(0, np.int32), *slots])))
    every = np.arange(rows[-1], dtype=np.int32)
    bounds = rows.tolist()
    of_request = [every[bounds[i] : bounds[i + 1]] for i in range(len(requests))]
    parts = [(run.slots, np.concatenate([of_request[i] for i in run.requests]), run.start) for run in runs]
    covered: list[list[tuple[int, int]]] = [[] for _ in requests]
    for run in runs:
        for i in run.requests:
            covered[i].append((run.start, run.start + len(run.slots)))
    for i, request in enumerate(requests):
        at = 0
        for start, stop in (*sorted(covered[i]), (ends[i], ends[i])):
            if start > at:
                parts.append((request.slots[at:start], of_request[i], at))
            at = stop
    counts = np.diff(rows)
    positions = every + np.repeat(stops.astype(np.int32) - rows[1:], counts)
    return spans_of_tree(parts, positions.astype(np.int32))
