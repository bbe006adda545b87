"""Rotary positions and the KV store in one pass over a layer's merged projection: torch's reference.

Not here: Triton's form (`rope_triton.py`), the angles, which are the model's own (`engine/fused.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class HeadNorms(NamedTuple):
    """Norms of each query and key head before the rotation, as Qwen3 has them: weights [dim]."""

    query: torch.Tensor
    key: torch.Tensor
    eps: float


def rope_store(
    rows: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    slots: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    norms: HeadNorms | None = None,
) -> torch.Tensor:
    """Split `rows` [n, (heads + 2 * kv) * dim] into queries, keys and values; turn the first two; store the last two.

    `cos` and `sin` are float32 [n, dim], `slots` int64 [n], pools [slots, kv, dim]. Returns queries [n, heads, dim];
    the keys are turned in `rows` too, where attention to a step's own rows finds them side by side.
    """
    if rows.is_cuda:
        from nbsglang.kernels.rope_triton import rope_store_triton  # torch for CPUs comes without Triton

        return rope_store_triton(rows, cos, sin, slots, k_pool, v_pool, norms)
    return rope_store_torch(rows, cos, sin, slots, k_pool, v_pool, norms)


def rope_store_torch(
    rows: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    slots: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    norms: HeadNorms | None,
) -> torch.Tensor:
    """The reference of `rope_store`."""
    n_kv, dim = k_pool.shape[1:]
    heads = rows.view(len(rows), -1, dim)
    query, key, value = heads.split_with_sizes([heads.shape[1] - 2 * n_kv, n_kv, n_kv], 1)
    if norms is not None:
        query, key = _normed(query, norms.query, norms.eps), _normed(key, norms.key, norms.eps)
    turned = _turned(key, cos, sin)
    k_pool.index_copy_(0, slots, turned.to(k_pool.dtype))
    v_pool.index_copy_(0, slots, value.to(v_pool.dtype))
    turned_query = _turned(query, cos, sin)
    heads[:, -2 * n_kv : -n_kv] = turned
    return turned_query


def _normed(heads: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = heads.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(heads.dtype)


def _turned(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    low, high = heads.float().chunk(2, -1)
    turned = heads.float() * cos[:, None] + torch.cat([-high, low], -1) * sin[:, None]
    return turned.to(heads.dtype)
