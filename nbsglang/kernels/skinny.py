"""Products of a few rows with a layer's weights, bound by the reading of the weights: Triton's form, or torch's.

How they are cut was searched on an H200 for the layers of an 8B model (`benchmarks/gpu_skinny.py`); few cuts are within
one or two percent of the best ones everywhere.

Not here: the kernels (`skinny_triton.py`), products of many rows, which are torch's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

import torch
from torch.nn import functional

from nbsglang.kernels.gated import silu_mul

MOST = 32  # rows; with more of them, torch's products are as near to the memory's speed
MOST_WIDE = 64  # rows, where there are so many outputs that their tiles need not be split
_WIDE = 16_384  # outputs, before a gate
_LEAST = 1 << 20  # weights; with fewer, starting a kernel takes longer than reading them
_DTYPES = (torch.bfloat16, torch.float16)
_PROGRAMS = 128  # about one for each processor of a large device: sums of fewer are split; of more than 16 rows
_PROGRAMS_MANY = 160  # they are split once more, but not those of 96
_DEEP = 512  # columns that are not split further
_FEW = 64  # rows, more than half of it: torch is 3 to 12 % faster at a product with a bias where weights are
_MANY = 1 << 25  # so many
_TILE_ROWS, _TILE_OUTS = 256, 128  # of torch's products of so many rows


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a product is cut: `outs` x `ins` weights a tile, `stages` tiles on their way, sums in `split` parts.

    One row is multiplied without the last two. All but `stages` and `split` are powers of two.
    """

    outs: int
    ins: int
    warps: int = 4
    stages: int = 1
    split: int = 1


def skinny_linear(
    rows: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    wide: bool = False,
    zeros: torch.Tensor | None = None,
) -> torch.Tensor:
    """`rows` [n, n_in] times `weight` [n_out, n_in], transposed, plus `bias` [n_out]: [n, n_out].

    `wide` gives the sums in float32, as they are, where the others are rounded to the dtype of the rows. `zeros`, at
    least n_out of the rows' dtype, are a bias that may be added where that is faster.
    """
    tiles = _tiles(rows, weight, len(weight), gated=False)
    if tiles is None and wide:
        return _torch_wide(rows, weight, bias)
    if tiles is None:
        if bias is None and zeros is not None and _FEW // 2 < len(rows) <= _FEW and weight.numel() >= _MANY:
            bias = zeros[: len(weight)]
        cut = _first_wave(rows, weight) if bias is None else 0
        return _in_two(rows, weight, cut) if cut else functional.linear(rows, weight, bias)
    out = rows.new_empty(len(rows), len(weight), dtype=torch.float32 if wide else rows.dtype)
    return cast(torch.Tensor, cast(Any, _triton()).product(rows, weight, bias, out, tiles))


def _in_two(rows: torch.Tensor, weight: torch.Tensor, cut: int) -> torch.Tensor:
    """torch's product, the outputs up to `cut` by themselves."""
    out = rows.new_empty(len(rows), len(weight))
    for part, there in ((weight[:cut], out[:, :cut]), (weight[cut:], out[:, cut:])):
        torch.mm(rows, part.T, out=there)
    return out


def _first_wave(rows: torch.Tensor, weight: torch.Tensor) -> int:
    """Where torch's product of about 256 rows is to be cut, 0 for nowhere.

    Its tiles have 256 rows and 128 outputs. Where there are more tiles than processors, but not twice as many, the
    second round leaves many idle; of what is left by itself torch makes smaller tiles.
    """
    if not (_TILE_ROWS - 64 < len(rows) <= _TILE_ROWS and rows.is_cuda and weight.dtype in _DTYPES):
        return 0
    if not _is_known(rows.device) or _has_gradient(rows, weight):
        return 0
    wave = _TILE_OUTS * torch.cuda.get_device_properties(rows.device).multi_processor_count
    return wave if wave < len(weight) < 2 * wave else 0


def _torch_wide(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    if rows.dtype == torch.float32 or not rows.is_cuda:
        return functional.linear(rows, weight, bias).float()
    sums: torch.Tensor = torch.mm(rows, weight.T, out_dtype=torch.float32)
    return sums if bias is None else sums + bias


def skinny_gated(
    rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, zeros: torch.Tensor | None = None
) -> torch.Tensor:
    """silu of `rows` [n, n_in] times the gate, times `rows` times up, both of `weight` [2 * width, n_in]: [n, width].

    Both products are rounded before the gate, as if they had been stored. `zeros`: see `skinny_linear`.
    """
    tiles = _tiles(rows, weight, len(weight) // 2, gated=True)
    if tiles is None or bias is not None:
        return silu_mul(skinny_linear(rows, weight, bias, zeros=zeros))
    out = rows.new_empty(len(rows), len(weight) // 2)
    return cast(torch.Tensor, cast(Any, _triton()).product(rows, weight, None, out, tiles, gated=True))


def choose(n: int, n_out: int, n_in: int, gated: bool) -> Tiles | None:
    """The cut for `n` rows and `n_out` outputs, of gated products those after the gate; None where there is none."""
    n_rows = n_out * (1 + gated)  # of weights
    is_wide = n > 16 and n_rows >= _WIDE
    if not 0 < n <= (MOST_WIDE if is_wide else MOST) or n_rows * n_in < _LEAST:
        return None
    if n == 1:
        return Tiles(2, 2048) if n_out > 4096 else Tiles(4, 1024)
    if is_wide:
        return Tiles(128, 64, warps=8 if gated else 4, stages=6)
    outs = 64
    n_tiles = -(-n_rows // outs)
    least = _PROGRAMS if n <= 16 else _PROGRAMS_MANY
    split = 1
    while n_tiles * split < least and 2 * split * _DEEP <= n_in:
        split *= 2
    return None if gated and split > 1 else Tiles(outs, 128, stages=4, split=split)


def _tiles(rows: torch.Tensor, weight: torch.Tensor, n_out: int, gated: bool) -> Tiles | None:
    n, n_in = rows.shape
    if n > MOST_WIDE or not (rows.is_cuda and weight.is_cuda) or not _is_fit(rows) or not _is_fit(weight):
        return None
    if rows.dtype != weight.dtype or n_in % 16 or not _is_known(rows.device) or _triton() is None:
        return None
    return None if _has_gradient(rows, weight) else choose(n, n_out, n_in, gated)


def _has_gradient(rows: torch.Tensor, weight: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and (rows.requires_grad or weight.requires_grad)


def _is_fit(part: torch.Tensor) -> bool:
    """Whether each row starts where 16 bytes can be read at once."""
    return part.dtype in _DTYPES and part.stride(1) == 1 and not part.stride(0) % 8 and not part.data_ptr() % 16


@cache
def _is_known(device: torch.device) -> bool:
    """Whether the kernels were tried on such a device."""
    return torch.cuda.get_device_capability(device)[0] == 9


@cache
def _triton() -> Any | None:
    """The kernels, or None: torch for CPUs comes without Triton."""
    try:
        return import_module("nbsglang.kernels.skinny_triton")
    except ImportError:
        return None
