"""Attention by spans: the plan, the torch reference against plain softmax attention, the kernels against the reference.

The kernels run on a CUDA device, or in Triton's interpreter where TRITON_INTERPRET is set.
"""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pytest
import torch

from nbsglang.kernels.spans import Cut, Plan, Reads, SpanForm, Spans, plan_spans, spans_of_reads, spans_of_tree
from nbsglang.kernels.spans_torch import attend_spans

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and importlib.util.find_spec("triton") is not None
DEVICE = "cpu" if INTERPRETED else "cuda"
NAMES = ["decode", "chunks", "tree", "gaps"]
FORMS = [
    SpanForm(8, 2, 16, 16, 0.25),
    SpanForm(6, 2, 12, 20, 0.3, window=37),
    SpanForm(4, 4, 32, 16, 0.2, softcap=5.0),
    SpanForm(16, 1, 16, 16, 0.25, window=100, softcap=3.0),
    SpanForm(5, 1, 64, 64, 0.125),
    SpanForm(8, 2, 128, 128, 0.09),
    SpanForm(9, 3, 64, 64, 0.125, window=37),
    SpanForm(16, 2, 128, 128, 0.09, window=100),
]


def on_kernels(test):
    """A test of the kernels: on the device, or in the interpreter."""
    return test if INTERPRETED else pytest.mark.gpu(test)


def flat(rng: np.random.Generator, lines: list[int], contexts: list[int], n_slots: int) -> Reads:
    """Requests that share nothing; each context is somewhere in the pool."""
    starts, rows = (np.cumsum([0, *sizes]).astype(np.int32) for sizes in (contexts, lines))
    slots = [rng.permutation(n_slots - 1)[:n].astype(np.int32) + 1 for n in contexts]
    return Reads(rows, starts, np.concatenate(slots))


def tree(rng: np.random.Generator, n_groups: int, n_rows: int, n_shared: int, n_own: int, n_slots: int) -> Spans:
    """Groups of rows below a prefix of their own, and all below one common root; rows in an order of their own."""
    free = iter(np.array_split(rng.permutation(n_slots - 1).astype(np.int32) + 1, n_slots - 1))
    take = lambda n: np.concatenate([next(free) for _ in range(n)])  # noqa: E731
    total = n_groups * n_rows
    order = rng.permutation(total).astype(np.int32)
    parts = [(take(50), order, 0)]
    for i in range(n_groups):
        mine = order[i * n_rows : (i + 1) * n_rows]
        parts.append((take(n_shared), mine, 50))
        parts += [(take(n_own), row[None], 50 + n_shared) for row in mine]
    return spans_of_tree(parts, np.full(total, 50 + n_shared + n_own - 1, np.int32))


def cases(name: str) -> Spans:
    rng = np.random.default_rng(len(name))
    if name == "decode":
        return spans_of_reads(flat(rng, [1] * 5, [3, 300, 1, 64, 200], 400))
    if name == "chunks":
        return spans_of_reads(flat(rng, [1, 70, 1, 33, 150], [90, 200, 1, 33, 180], 400))
    if name == "tree":
        return tree(rng, 3, 7, 130, 20, 1200)
    return spans_of_tree([(np.arange(1, 9, dtype=np.int32), np.array([2], np.int32), 0)], np.array([0, 0, 7], np.int32))


def cut_for(form: SpanForm, n_programs: int = 40) -> Cut:
    group = form.n_heads // form.n_kv
    return Cut((16 // group, 64 // group), form.n_kv, n_programs)


def plain(query, k_pool, v_pool, spans: Spans, form: SpanForm, sinks) -> torch.Tensor:
    """Each row by itself over all its keys, in float64."""
    out = torch.zeros(len(query), form.n_heads, form.v_dim, dtype=torch.float64)
    for row, position in enumerate(spans.positions.tolist()):
        slots: list[int] = []
        for i, first in enumerate(spans.firsts.tolist()):
            if row in spans.rows[spans.row_starts[i] : spans.row_starts[i + 1]]:
                mine = spans.slots[spans.key_starts[i] : spans.key_starts[i + 1]].tolist()
                low = 0 if form.window is None else position - form.window + 1
                slots += [slot for at, slot in enumerate(mine, first) if low <= at <= position]
        if not slots:
            continue
        group = form.n_heads // form.n_kv
        keys, values = (pool[slots].double().repeat_interleave(group, 1) for pool in (k_pool, v_pool))
        scores = torch.einsum("hd,khd->hk", query[row].double(), keys) * form.scale
        if form.softcap is not None:
            scores = torch.tanh(scores / form.softcap) * form.softcap
        if sinks is not None:
            scores = torch.cat([scores, sinks.double()[:, None]], 1)
        out[row] = torch.einsum("hk,khd->hd", torch.softmax(scores, 1)[:, : len(slots)], values)
    return out


def tensors(spans: Spans, form: SpanForm, dtype: torch.dtype, with_sinks: bool):
    torch.manual_seed(0)
    n_slots = int(spans.slots.max()) + 1
    query = torch.randn(len(spans.positions), form.n_heads, form.k_dim).to(dtype) * 2
    k_pool = torch.randn(n_slots, form.n_kv, form.k_dim).to(dtype)
    v_pool = torch.randn(n_slots, form.n_kv, form.v_dim).to(dtype)
    return query, k_pool, v_pool, torch.randn(form.n_heads) if with_sinks else None


@pytest.mark.parametrize("with_sinks", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_equals_plain_attention(name, form, with_sinks):
    spans = cases(name)
    query, k_pool, v_pool, sinks = tensors(spans, form, torch.float64, with_sinks)
    plan = plan_spans(spans, cut_for(form), form.window)
    found = attend_spans(query, k_pool, v_pool, plan, form, sinks)
    assert (found - plain(query, k_pool, v_pool, spans, form, sinks)).abs().max() < 1e-12


def reads_of(plan: Plan) -> dict[int, list[tuple[int, int]]]:
    """What each row reads by a plan: ranges of `slots`."""
    found: dict[int, list[tuple[int, int]]] = {}
    for start, n_keys, entry, n_lines in plan.items[:, :4].tolist():
        for row in plan.entry_rows[entry : entry + n_lines].tolist():
            found.setdefault(row, []).append((start, start + n_keys))
    return found


@pytest.mark.parametrize("n_programs", [1, 40, 100_000])
@pytest.mark.parametrize("name", NAMES)
def test_a_plan_covers_each_rows_keys_once(name, n_programs):
    spans = cases(name)
    cut = Cut((4, 16), 2, n_programs)
    plan = plan_spans(spans, cut)
    n_lines = np.diff(spans.row_starts)
    for row, ranges in reads_of(plan).items():
        mine = np.concatenate([np.arange(*bounds) for bounds in ranges])
        assert len(set(mine)) == len(mine)
        visible = []
        for i, first in enumerate(spans.firsts):
            if row in spans.rows[spans.row_starts[i] : spans.row_starts[i + 1]]:
                keys = np.arange(spans.key_starts[i], spans.key_starts[i + 1])
                visible.append(keys[first + np.arange(len(keys)) <= spans.positions[row]])
        assert set(np.concatenate(visible)) <= set(mine)
    for kind in range(len(cut.lines)):
        items = plan.items[plan.classes[kind] : plan.classes[kind + 1]]
        assert (items[:, 3] <= cut.lines[kind]).all()
        assert (np.diff(items[:, 1]) <= 0).all()
        if kind == 0:
            assert (items[:, 3] > 0).all()
    assert n_lines.max() <= cut.lines[0] or plan.classes[1] < plan.classes[2]


@pytest.mark.parametrize("name", NAMES)
def test_the_places_of_a_row_follow_each_other(name):
    plan = plan_spans(cases(name), Cut((4, 16), 2, 40))
    used = np.sort(plan.places[plan.places >= 0])
    np.testing.assert_array_equal(used, np.arange(plan.n_partials))
    for row, (start, count) in enumerate(plan.lists.tolist()):
        mine = np.sort(plan.places[plan.entry_rows == row])
        assert len(mine) == count
        np.testing.assert_array_equal(mine, [-1] if count == 1 else np.arange(start, start + count))


def test_long_contexts_are_cut_only_where_programs_are_few():
    rng = np.random.default_rng(0)
    few = plan_spans(spans_of_reads(flat(rng, [1], [8000], 9000)), Cut((4, 16), 8, 528))
    assert 400 <= len(few.items) * 8 <= 528
    many = plan_spans(spans_of_reads(flat(rng, [1] * 256, [1024] * 256, 2000)), Cut((4, 16), 8, 528))
    assert len(many.items) == 256
    assert many.n_partials == 0


def test_a_window_leaves_out_what_no_row_sees():
    spans = spans_of_reads(flat(np.random.default_rng(0), [1, 40], [1000, 1000], 2000))
    plan = plan_spans(spans, Cut((4, 64), 2, 4), 100)
    assert plan.items[:, 1].sum() == 100 + 139


def off(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The size of the difference, relative to that of the expected values."""
    return float((found.cpu().double() - expected).norm() / expected.norm())


@on_kernels
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 2e-6), (torch.float16, 1e-3), (torch.bfloat16, 6e-3)])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_kernels_equal_the_reference(name, form, dtype, limit):
    from nbsglang.kernels.spans_runner import Room, SpanAttention

    if INTERPRETED and dtype == torch.bfloat16:
        pytest.skip("numpy, in which the interpreter computes, has no bfloat16")
    spans = cases(name)
    with_sinks = form.softcap is not None or form.window == 100
    query, k_pool, v_pool, sinks = tensors(spans, form, dtype, with_sinks)
    there = [tensor.to(DEVICE) if tensor is not None else None for tensor in (query, k_pool, v_pool, sinks)]
    grows = SpanAttention(form, dtype, torch.device(DEVICE), n_programs=40)
    plan = plan_spans(spans, grows.cut, form.window)
    expected = attend_spans(query.double(), k_pool, v_pool, plan, form, sinks)
    grows.plan(plan)
    assert off(grows.run(*there), expected) < limit
    room = Room(len(query) + 3, tuple(n + 2 for n in Room.of(plan).items), 2000, 2000, 5000)
    fixed = SpanAttention(form, dtype, torch.device(DEVICE), room, n_programs=40)
    fixed.plan(plan)
    longer = torch.cat([there[0], there[0][:3]])
    found = fixed.run(longer, *there[1:])
    assert off(found[:-3], expected) < limit
    assert not found[-3:].any()


@on_kernels
def test_other_tiles_and_parts_in_16_bits():
    from nbsglang.kernels.spans_runner import SpanAttention, Tile

    form, spans = FORMS[0], cases("tree")
    query, k_pool, v_pool, _ = tensors(spans, form, torch.float16, False)
    tiles = (Tile(16, 32, 4, 3), Tile(64, 16, 4, 2))
    attention = SpanAttention(form, torch.float16, torch.device(DEVICE), None, tiles, 400, torch.float16)
    plan = plan_spans(spans, attention.cut)
    attention.plan(plan)
    found = attention.run(query.to(DEVICE), k_pool.to(DEVICE), v_pool.to(DEVICE))
    assert off(found, attend_spans(query.double(), k_pool, v_pool, plan, form)) < 1e-3


@on_kernels
def test_what_does_not_fit_into_fixed_room_is_refused():
    from nbsglang.kernels.spans_runner import Room, SpanAttention

    attention = SpanAttention(FORMS[0], torch.float16, torch.device(DEVICE), Room(4, (4, 4), 50, 50, 500))
    with pytest.raises(ValueError, match="does not fit"):
        attention.plan(plan_spans(cases("decode"), attention.cut))


@pytest.mark.gpu
def test_few_rows_of_common_models_keep_keys_in_registers():
    from nbsglang.kernels.spans_runner import default_tiles

    cuda = torch.device("cuda")
    is_direct = lambda form, dtype: default_tiles(form, dtype, cuda)[0].direct  # noqa: E731
    assert is_direct(SpanForm(32, 8, 128, 128, 0.09), torch.bfloat16)
    assert is_direct(SpanForm(14, 2, 64, 64, 0.125, window=99), torch.float16)
    assert not is_direct(SpanForm(32, 8, 128, 128, 0.09), torch.float32)
    assert not is_direct(SpanForm(32, 8, 128, 128, 0.09, softcap=9.0), torch.bfloat16)
    assert not is_direct(SpanForm(32, 2, 128, 128, 0.09), torch.bfloat16)
    assert not is_direct(SpanForm(8, 8, 80, 80, 0.1), torch.bfloat16)


@pytest.mark.gpu
def test_a_captured_graph_follows_the_plan():
    from nbsglang.kernels.spans_runner import Room, SpanAttention

    form = SpanForm(8, 2, 64, 64, 0.125)
    attention = SpanAttention(form, torch.bfloat16, torch.device("cuda"), Room(21, (99, 99), 999, 999, 9999))
    query, k_pool, v_pool, _ = (
        t.cuda() if t is not None else t for t in tensors(cases("tree"), form, torch.bfloat16, 0)
    )
    attention.plan(plan_spans(cases("tree"), attention.cut))
    attention.run(query, k_pool, v_pool)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = attention.run(query, k_pool, v_pool)
    for name in ("decode", "tree"):
        spans = cases(name)
        plan = plan_spans(spans, attention.cut)
        attention.plan(plan)
        out.fill_(float("nan"))
        graph.replay()
        n = len(spans.positions)
        expected = attend_spans(query[:n].double(), k_pool, v_pool, plan, form).cpu()
        assert off(out[:n], expected) < 6e-3
        assert not out[n:].any()
