"""Attention by spans on a device: buffers for a plan, and the launches of each layer.

Not here: how a plan is made (`spans.py`), the kernels (`spans_triton.py`).
"""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from nbsglang.kernels.spans import N_FIELDS, Cut, Ints, Plan, SpanForm
from nbsglang.kernels.spans_triton import merge_kernel, spans_kernel

LOG2E = math.log2(math.e)
_ALIGNED = 32  # int32s; Triton compiles other code where an array does not start at a multiple of 16 bytes


class Tile(NamedTuple):
    """A class of items: `lines` x query heads of a group and keys of one turn, both filled up to powers of two; warps;
    stages of the loop. `direct` ones are `spans_gluon`'s, where all but the first is fixed."""

    block_m: int
    block_n: int
    warps: int
    stages: int
    direct: bool = False


class Room(NamedTuple):
    """Capacities: rows, items of each class (a class without room is not launched), entries, partial results, keys."""

    rows: int
    items: tuple[int, ...]
    entries: int
    partials: int
    keys: int

    @staticmethod
    def of(plan: Plan) -> Room:
        """What one plan takes."""
        items = tuple(np.diff(plan.classes).tolist())
        return Room(len(plan.positions), items, len(plan.places), plan.n_partials, len(plan.slots))

    def holds(self, plan: Plan) -> bool:
        """Whether a plan fits."""
        need = Room.of(plan)
        pairs = zip((*self.items, *self[:1], *self[2:]), (*need.items, *need[:1], *need[2:]), strict=True)
        return all(have >= want for have, want in pairs)

    def grown(self, plan: Plan) -> Room:
        """Room for this plan as well, with some to spare where it must grow."""
        need = Room.of(plan)
        items = tuple(_grown(*pair) for pair in zip(self.items, need.items, strict=True))
        rows, entries, partials, keys = (
            _grown(have, want) for have, want in zip((*self[:1], *self[2:]), (*need[:1], *need[2:]), strict=True)
        )
        return Room(rows, items, entries, partials, keys)


def default_tiles(form: SpanForm, dtype: torch.dtype, device: torch.device) -> tuple[Tile, ...]:
    """Classes that suit a model: few rows, and many."""
    group = form.n_heads // form.n_kv
    width = (_padded(form.k_dim) + _padded(form.v_dim)) * dtype.itemsize
    small = max(16, _power(group))
    if dtype == torch.float32:  # without tensor cores, which would round
        keys = max(16, min(32, (32 << 10) // width))
        return Tile(small, keys, 8, 3), Tile(max(32, small), 16, 8, 2)
    keys = max(16, min(32, (16 << 10) // width))
    gluon = _gluon()
    if gluon is not None and gluon.is_for(form, dtype, device):
        return Tile(gluon.LINES, gluon.KEYS, 1, 1, direct=True), Tile(64, keys, 4, 4)
    return Tile(small, keys, 4, 4), Tile(max(64, small), keys, 4, 4)


class SpanAttention:
    """Plans and runs, one step at a time.

    With `room` its launches never change, as a CUDA graph needs; `buffers` of at least this room may be those of other
    attentions, if none of them runs at the same time.
    """

    def __init__(
        self,
        form: SpanForm,
        dtype: torch.dtype,
        device: torch.device,
        room: Room | None = None,
        tiles: tuple[Tile, ...] | None = None,
        n_programs: int | None = None,
        partial_dtype: torch.dtype = torch.float32,
        buffers: SpanBuffers | None = None,
    ) -> None:
        self.form = form
        self._device = device
        self._tiles = tiles or default_tiles(form, dtype, device)
        on_gpu = device.type == "cuda"
        n_sm = torch.cuda.get_device_properties(device).multi_processor_count if on_gpu else 4
        group = form.n_heads // form.n_kv
        lines = tuple(tile.block_m // group for tile in self._tiles)
        fill = 6 if self._tiles[0].direct else 4  # programs that wait for memory at a time: smaller ones, more of them
        self.cut = Cut(lines, form.n_kv, n_programs or fill * n_sm)
        self._fixed = room is not None
        self._partial_dtype = partial_dtype
        self._room = room or Room(0, (0,) * len(lines), 0, 0, 0)
        self._buffers = buffers or SpanBuffers(self._room, form, partial_dtype, device)
        self._merges = True

    def has_room(self, plan: Plan) -> bool:
        """Whether a plan fits into a fixed room."""
        return self._room.holds(plan)

    def plan(self, plan: Plan) -> None:
        """Upload a plan made with `cut` and the window. Raises ValueError where it does not fit into a fixed room."""
        if self._fixed and not self._room.holds(plan):
            raise ValueError(f"{Room.of(plan)} does not fit into {self._room}")
        if not self._buffers.room.holds(plan):
            self._buffers = SpanBuffers(self._buffers.room.grown(plan), self.form, self._partial_dtype, self._device)
        self._buffers.put(plan)
        if not self._fixed:
            self._room = Room.of(plan)
            self._merges = bool((plan.lists[:, 1] != 1).any())

    def run(
        self,
        query: torch.Tensor,
        k_pool: torch.Tensor,
        v_pool: torch.Tensor,
        sinks: torch.Tensor | None = None,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """One layer's `query` [rows, heads, k_dim] over its pools [slots, kv, dim]: `out` [rows, heads, v_dim].

        With `room` it has as many rows as that; those past the plan's give 0.
        """
        form, there = self.form, self._buffers
        assert query.stride(1) == form.k_dim
        assert k_pool.stride(1) == form.k_dim
        assert v_pool.stride(1) == form.v_dim
        if out is None:
            out = query.new_empty(len(query), form.n_heads, form.v_dim)
        marks = sinks if sinks is not None else query  # something to point to
        options = {"v_dim": form.v_dim, "v_pad": _padded(form.v_dim), "has_sinks": sinks is not None}
        for kind, (tile, n_items) in enumerate(zip(self._tiles, self._room.items, strict=True)):
            if n_items:
                self._launch(kind, tile, n_items, (query, k_pool, v_pool, marks, out), options)
        if self._room.rows and (self._room.partials or self._merges):
            n_tiles = self._room.rows * form.n_heads
            block_p, block_h, warps = (16, 1, 4) if n_tiles < 2048 else (4, min(4, _power(form.n_heads)), 2)
            grid = (len(query), -(-form.n_heads // block_h))
            sizes = {"n_heads": form.n_heads, "block_p": block_p, "block_h": block_h, "num_warps": warps}
            merge_kernel[grid](there.partials, there.lses, marks, there.lists, out, **options, **sizes)
        return out

    def _launch(
        self, kind: int, tile: Tile, n_items: int, tensors: tuple[torch.Tensor, ...], options: dict[str, int | bool]
    ) -> None:
        form, there = self.form, self._buffers
        query, k_pool, v_pool, _, _ = tensors
        plan = (there.counts, there.items[kind], there.entry_rows, there.places, there.positions, there.slots)
        strides = query.stride(0), k_pool.stride(0), v_pool.stride(0)
        arguments = (*tensors, there.partials, there.lses, *plan, form.scale * LOG2E, *strides)
        grid, n_kv, window = (n_items * form.n_kv,), form.n_kv, form.window or 0
        sizes = {"kind": kind, "n_kv": n_kv, "group": form.n_heads // n_kv, "window": window}
        gluon = _gluon()
        if tile.direct:
            assert gluon is not None, "asked for by `default_tiles`"
            sizes |= {"dim": form.k_dim, "has_sinks": options["has_sinks"], **gluon.layouts(form.k_dim)}
            gluon.spans_direct_kernel[grid](*arguments, **sizes, num_warps=1, maxnreg=gluon.REGISTERS)
            return
        sizes |= {"k_dim": form.k_dim, "k_pad": _padded(form.k_dim), "block_m": tile.block_m, "block_n": tile.block_n}
        spans_kernel[grid](
            *arguments,
            softcap=form.softcap or 0.0,
            precision="ieee",
            num_warps=tile.warps,
            num_stages=tile.stages,
            **sizes,
            **options,
        )


class SpanBuffers:
    """The arrays of a plan in one buffer on the device, and pinned on the host; and where partial results go."""

    def __init__(self, room: Room, form: SpanForm, dtype: torch.dtype, device: torch.device) -> None:
        self.room = room
        items = [n * N_FIELDS for n in room.items]
        sizes = [len(items) + 1, *items, room.entries, room.entries, room.rows, 2 * room.rows, room.keys]
        starts = np.cumsum([0, *(-(-size // _ALIGNED) * _ALIGNED for size in sizes)]).tolist()
        there = torch.zeros(starts[-1], dtype=torch.int32, device=device)
        here = torch.zeros(starts[-1], dtype=torch.int32)
        self._there, self._here = there, here.pin_memory() if device.type == "cuda" else here
        self._parts = [(start, size) for start, size in zip(starts, sizes, strict=False)]
        views = [there[start : start + size] for start, size in self._parts]
        self.counts, self.items = views[0], views[1 : 1 + len(items)]
        self.entry_rows, self.places, self.positions, self.lists, self.slots = views[1 + len(items) :]
        self.partials = torch.empty(room.partials, form.n_heads, form.v_dim, dtype=dtype, device=device)
        self.lses = torch.empty(room.partials, form.n_heads, dtype=torch.float32, device=device)
        self._sent = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def put(self, plan: Plan) -> None:
        """Send a plan, in one copy of all up to its last slot; waits until the device has fetched the one before."""
        if self._sent is not None:
            self._sent.synchronize()
        here = self._here.numpy()
        bounds = plan.classes.tolist()
        items = [plan.items[a:b].reshape(-1) for a, b in pairwise(bounds)]
        arrays: list[Ints] = [np.diff(plan.classes), *items]
        arrays += [plan.entry_rows, plan.places, plan.positions, plan.lists.reshape(-1), plan.slots]
        for (start, size), array in zip(self._parts, arrays, strict=True):
            here[start : start + len(array)] = array
            if array.base is plan.lists:  # rows past the plan's read nothing
                here[start + len(array) : start + size] = 0
        used = self._parts[-1][0] + len(plan.slots)
        self._there[:used].copy_(self._here[:used], non_blocking=True)
        if self._sent is not None:
            self._sent.record(torch.cuda.current_stream(self._there.device))


@cache
def _gluon() -> Any | None:
    """The kernel that keeps keys and values in registers, or None: not every Triton has Gluon."""
    try:
        return import_module("nbsglang.kernels.spans_gluon")
    except ImportError:
        return None


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _padded(dim: int) -> int:
    return max(16, _power(dim))


def _grown(have: int, want: int) -> int:
    return have if have >= want else want + want // 2
