"""Attention by spans, on the host: which rows read which keys, cut into items of work for a GPU's programs.

A span is a run of keys at consecutive positions with all rows that read it: a prefix that requests share is one span of
many rows, a request's own tail one of few. What a row reads in several items is merged by log-sum-exp. A row sees the
keys up to its own position, and with a window only the last of these.

Not here: what computes a plan (`spans_torch.py`, `spans_runner.py`), who shares what (`engine/contexts.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
UNIT = 64  # keys; spans are cut at multiples of so many
N_FIELDS = 8  # of an item, as many as fill 32 bytes


class Reads(NamedTuple):
    """What requests read, each by itself: int32 `slots` of all contexts, one after the other, of which request i has
    those from `starts[i]` to `starts[i + 1]`; its rows are those from `rows[i]` to `rows[i + 1]`."""

    rows: Ints
    starts: Ints
    slots: Ints


class SpanForm(NamedTuple):
    """What is computed: heads and widths, factor of the scores, window in tokens, bound of the scores by tanh."""

    n_heads: int
    n_kv: int
    k_dim: int
    v_dim: int
    scale: float
    window: int | None = None
    softcap: float | None = None


class Spans(NamedTuple):
    """The reads of a step, all int32.

    Span i has the `slots` from `key_starts[i]` to `key_starts[i + 1]`, of which the first is at position `firsts[i]`;
    it is read by the rows that `rows` names from `row_starts[i]` to `row_starts[i + 1]`. `positions` has every row's.
    """

    slots: Ints
    key_starts: Ints
    rows: Ints
    row_starts: Ints
    firsts: Ints
    positions: Ints


class Cut(NamedTuple):
    """How to cut. `lines` are the most rows of an item, by class of items, ascending. A class is to have about
    `n_programs` programs, one for each item and key head, but none for fewer than `min_keys` keys."""

    lines: tuple[int, ...]
    n_kv: int
    n_programs: int
    min_keys: int = UNIT


class Plan(NamedTuple):
    """Items of a step and where their results go, all int32.

    `items` [items, 8]: first key in `slots`, keys, first entry, rows, position of the first key, whether all rows see
    all keys; the rest is unused. Class c has those from `classes[c]` to `classes[c + 1]`, longest first.
    An entry is a row of an item: `entry_rows` its number, `places` where its partial result goes, -1 where it is the
    row's only one and so the result itself. `lists` [rows, 2]: first place of a row's partial results, and how many.
    """

    items: Ints
    classes: Ints
    entry_rows: Ints
    places: Ints
    lists: Ints
    positions: Ints
    slots: Ints
    n_partials: int


def spans_of_reads(reads: Reads) -> Spans:
    """Each request's context as one span of the request's rows, the last of the context."""
    n_lines, n_keys = np.diff(reads.rows), np.diff(reads.starts)
    n_rows = int(reads.rows[-1])
    rows = np.arange(n_rows, dtype=np.int32)
    positions = rows + np.repeat(n_keys - reads.rows[1:], n_lines)
    firsts = np.zeros(len(n_keys), np.int32)
    return Spans(reads.slots, reads.starts, rows, reads.rows, firsts, positions.astype(np.int32))


def spans_of_tree(parts: Sequence[tuple[Ints, Ints, int]], positions: Ints) -> Spans:
    """Spans from (slots, rows, position of the first slot); `positions` int32 are those of the step's rows."""
    sizes = np.array([(0, 0, 0), *((len(slots), len(rows), first) for slots, rows, first in parts)], np.int32)
    return Spans(
        slots=np.concatenate([np.zeros(0, np.int32), *(slots for slots, _, _ in parts)]),
        key_starts=np.cumsum(sizes[:, 0], dtype=np.int32),
        rows=np.concatenate([np.zeros(0, np.int32), *(rows for _, rows, _ in parts)]),
        row_starts=np.cumsum(sizes[:, 1], dtype=np.int32),
        firsts=sizes[1:, 2],
        positions=positions,
    )


def plan_spans(spans: Spans, cut: Cut, window: int | None = None) -> Plan:
    """Cut spans into items: their rows by what a program takes, their keys so that the programs fill the device."""
    items, kinds = _items(spans, cut, window)
    # Longest first, so that the last programs to start are short; equal ones stay beside those that read the same keys.
    order = np.argsort((kinds << 32) - items[:, 1], kind="stable")
    items = items[order]
    classes = np.searchsorted(kinds[order], np.arange(len(cut.lines) + 1))
    n_lines = items[:, 3]
    row_at, first_entry = items[:, 2].copy(), np.cumsum(n_lines) - n_lines
    items[:, 2] = first_entry
    n_entries = int(n_lines.sum())
    entry_rows = spans.rows[np.repeat(row_at - first_entry, n_lines) + np.arange(n_entries)]
    places, lists, n_partials = _places(entry_rows, len(spans.positions))
    return Plan(
        items.astype(np.int32),
        classes.astype(np.int32),
        entry_rows,
        places,
        lists,
        spans.positions,
        spans.slots,
        n_partials,
    )


def _items(spans: Spans, cut: Cut, window: int | None) -> tuple[Longs, Longs]:
    """Items [items, 8], with the first row's place in `spans.rows` for the first entry, and the class of each."""
    n_keys, n_lines = np.diff(spans.key_starts).astype(np.int64), np.diff(spans.row_starts).astype(np.int64)
    kinds = np.minimum(np.searchsorted(cut.lines, n_lines), len(cut.lines) - 1)
    n_blocks = -(-n_lines // cut.lines[-1])
    block_size = -(-n_lines // np.maximum(n_blocks, 1))
    piece_size = _piece_sizes(n_keys, n_blocks, kinds, cut)
    n_items = -(-n_keys // piece_size) * n_blocks
    span = np.repeat(np.arange(len(n_items)), n_items)
    number = np.arange(len(span)) - np.repeat(np.cumsum(n_items) - n_items, n_items)
    piece = number // n_blocks[span]  # the blocks of rows that read the same keys follow each other
    block = number - piece * n_blocks[span]
    row_from = block * block_size[span]
    row_to = np.minimum(row_from + block_size[span], n_lines[span]) + spans.row_starts[span]
    row_from = row_from + spans.row_starts[span]
    key_from = piece * piece_size[span]
    key_to = np.minimum(key_from + piece_size[span], n_keys[span])

    first = spans.firsts[span]
    low, high = _extremes(spans.positions[spans.rows], row_from, row_to)
    key_to = np.minimum(key_to, high + 1 - first)
    sees_all = low >= first + key_to - 1
    if window is not None:
        key_from = np.maximum(key_from, low - window + 1 - first)
        sees_all &= high - (first + key_from) < window
    items = np.zeros((len(span), N_FIELDS), np.int64)
    columns = (spans.key_starts[span] + key_from, key_to - key_from, row_from, row_to - row_from, first + key_from)
    for i, column in enumerate((*columns, sees_all)):
        items[:, i] = column
    kept = items[:, 1] > 0
    return (items, kinds[span]) if kept.all() else (items[kept], kinds[span][kept])


def _piece_sizes(n_keys: Longs, n_blocks: Longs, kinds: Longs, cut: Cut) -> Longs:
    """How many keys of each span make an item: so many that a class has its programs, and no odd piece is left."""
    work = np.bincount(kinds, n_keys * n_blocks, len(cut.lines)) * cut.n_kv
    most = np.maximum(np.ceil(work / cut.n_programs), cut.min_keys).astype(np.int64)
    n_pieces = np.maximum(-(-n_keys // _rounded(most)[kinds]), 1)
    return np.maximum(_rounded(-(-n_keys // n_pieces)), UNIT)


def _rounded(sizes: Longs) -> Longs:
    return -(-sizes // UNIT) * UNIT


def _extremes(positions: Ints, starts: Longs, stops: Longs) -> tuple[Longs, Longs]:
    """The lowest and the highest position of each range."""
    if len(starts) == 0:
        return starts, starts
    if (stops - starts == 1).all():
        return (alone := positions[starts].astype(np.int64)), alone
    bounds = np.stack([starts, stops], 1).reshape(-1)
    guarded = np.append(positions, 0).astype(np.int64)  # a range may stop at the end
    return np.minimum.reduceat(guarded, bounds)[::2], np.maximum.reduceat(guarded, bounds)[::2]


def _places(entry_rows: Ints, n_rows: int) -> tuple[Ints, Ints, int]:
    """Places of entries, lists of rows, and how many places there are; a row's places follow each other."""
    counts = np.bincount(entry_rows, minlength=n_rows)
    places = np.full(len(entry_rows), -1, np.int32)
    lists = np.zeros((n_rows, 2), np.int32)
    lists[:, 1] = counts
    several = np.where(counts > 1, counts, 0)
    n_partials = int(several.sum())
    if n_partials:
        lists[:, 0] = np.cumsum(several) - several
        merged = np.flatnonzero(counts[entry_rows] > 1)
        rows = entry_rows[merged]
        by_row = np.argsort(rows.astype(np.uint16) if n_rows < 1 << 16 else rows, kind="stable")  # by radix if short
        places[merged[by_row]] = np.arange(n_partials, dtype=np.int32)
    return places, lists, n_partials
