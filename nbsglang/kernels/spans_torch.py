"""Attention by spans in torch: what the GPU's kernels are compared with.

Not here: the plan (`spans.py`), the kernels (`spans_triton.py`).
"""

from __future__ import annotations

import torch

from nbsglang.kernels.spans import Cut, Plan, SpanForm


class TorchSpans:
    """`SpanAttention` in torch, on any device."""

    def __init__(self, form: SpanForm) -> None:
        self.form = form
        self.cut = Cut((4, 16), form.n_kv, 64)
        self._plan: Plan | None = None

    def plan(self, plan: Plan) -> None:
        """Get ready for a step."""
        self._plan = plan

    def run(
        self, query: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor, sinks: torch.Tensor | None = None
    ) -> torch.Tensor:
        """See `attend_spans`."""
        assert self._plan is not None
        return attend_spans(query, k_pool, v_pool, self._plan, self.form, sinks)


def attend_spans(
    query: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    plan: Plan,
    form: SpanForm,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend `query` [rows, heads, k_dim] over pools [slots, kv, dim] by the items of a plan, one after the other.

    Returns [rows, heads, v_dim] in the query's dtype, computed in float32, or in float64 where the query has it. Rows
    without keys give 0. `sinks` [heads] are scores without a value that join each softmax.
    """
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    n_rows, n_heads, _ = query.shape
    out = torch.zeros(n_rows, n_heads, form.v_dim, dtype=wide, device=query.device)
    total = torch.full((n_rows, n_heads), float("-inf"), dtype=wide, device=query.device)
    slots, entry_rows, positions = (
        torch.from_numpy(part).to(query.device, torch.int64) for part in (plan.slots, plan.entry_rows, plan.positions)
    )
    for start, n_keys, entry, n_lines, first, sees_all in plan.items[:, :6].tolist():
        rows, mine = entry_rows[entry : entry + n_lines], slots[start : start + n_keys]
        visible = None if sees_all else _visible(positions[rows], first, n_keys, form.window)
        value, lse = _item(query[rows].to(wide), k_pool[mine].to(wide), v_pool[mine].to(wide), form, visible)
        before = total[rows]
        after = torch.logaddexp(before, lse)
        out[rows] = out[rows] * _weight(before, after) + value * _weight(lse, after)
        total[rows] = after
    if sinks is not None:
        out = out * _weight(total, torch.logaddexp(total, sinks.to(wide)))
    return out.to(query.dtype)


def _item(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, form: SpanForm, visible: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values [rows, heads, v_dim] of one item by itself, and log-sum-exp [rows, heads]."""
    group = form.n_heads // form.n_kv
    keys, values = keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
    scores = torch.einsum("rhd,khd->rhk", query, keys) * form.scale
    if form.softcap is not None:
        scores = torch.tanh(scores / form.softcap) * form.softcap
    if visible is not None:
        scores = scores.masked_fill(~visible[:, None], float("-inf"))
    lse = torch.logsumexp(scores, -1)
    return torch.einsum("rhk,khd->rhd", _weight(scores, lse[..., None])[..., 0], values), lse


def _visible(positions: torch.Tensor, first: int, n_keys: int, window: int | None) -> torch.Tensor:
    """Whether each row, by its position, sees each key: [rows, keys]."""
    keys = torch.arange(first, first + n_keys, device=positions.device)
    seen = keys <= positions[:, None]
    return seen if window is None else seen & (keys > positions[:, None] - window)


def _weight(part: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    """exp(part - whole) with an axis added; 0 where there is nothing in either."""
    return torch.where(part == float("-inf"), 0.0, torch.exp(part - whole))[..., None]
