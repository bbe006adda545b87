"""The chunk of a CPU's steps follows their time, in bounds."""

from __future__ import annotations

import torch

from nbsglang.engine import sizes
from nbsglang.engine.config import Config
from nbsglang.engine.sizes import _CPU_STEP_S, Pace, pace


def on_a_cpu(chunk_tokens: int) -> Pace:
    made = pace(Config(), torch.device("cpu"), chunk_tokens)
    assert made is not None
    return made


def test_the_chunk_settles_where_a_step_takes_the_time_it_should():
    """Also with a fixed cost of each step, where a small chunk is nearly as slow as a larger one."""
    for fixed, tokens_per_second in ((0.0, 100.0), (0.1, 700.0), (0.2, 400.0), (0.02, 1200.0)):
        chunks = on_a_cpu(40)
        for _ in range(60):
            chunks.observe(chunks.chunk_tokens, fixed + chunks.chunk_tokens / tokens_per_second)
        assert abs(fixed + chunks.chunk_tokens / tokens_per_second - _CPU_STEP_S) < 0.05


def test_it_halves_or_doubles_at_most_and_has_bounds():
    chunks = on_a_cpu(128)
    assert chunks.observe(128, 30.0) == 64
    assert chunks.observe(64, 0.001) == 128
    for _ in range(9):
        chunks.observe(chunks.chunk_tokens, 0.0001)
    assert chunks.chunk_tokens == 1024
    for _ in range(9):
        chunks.observe(chunks.chunk_tokens, 100.0)
    assert chunks.chunk_tokens == 16


def test_a_containers_limit_bounds_the_pool(tmp_path, monkeypatch):
    """Of either version of control groups; no limit is none."""
    monkeypatch.setattr(sizes, "_CONTAINER_LIMITS", (tmp_path / "a", tmp_path / "b"))
    assert sizes._container_room() > 1 << 50
    (tmp_path / "a").write_text("max\n")
    assert sizes._container_room() > 1 << 50
    (tmp_path / "b").write_text(f"{1 << 40}\n")
    assert 0 < (1 << 40) - sizes._container_room() < 1 << 36
    (tmp_path / "a").write_text("1000\n")
    assert sizes._container_room() == 0


def test_small_steps_tell_nothing():
    chunks = on_a_cpu(128)
    assert chunks.observe(3, 0.5) == 128


def test_steps_that_left_rows_out_to_fill_tiles_still_tell():
    chunks = Pace(1000, 1.0, (100, 5000), tile=256)
    assert chunks.observe(744, 0.1) == 1000
    assert chunks.observe(768, 0.384) == 2000


def test_of_several_steps_the_second_slowest_counts():
    """Steps differ by the contexts that they read; one that was slow for another reason is not followed."""
    chunks = Pace(1000, 1.0, (100, 5000), recent=4)
    for cost in (0.5, 0.6, 0.9, 1.0):
        chunks.observe(chunks.chunk_tokens, cost * chunks.chunk_tokens / 1000)
    assert chunks.chunk_tokens == int(1000 / 0.9)
    chunks.observe(chunks.chunk_tokens, 9.0 * chunks.chunk_tokens / 1000)  # a hiccup
    assert chunks.chunk_tokens == int(1000 / 1.0)
    for _ in range(4):
        chunks.observe(chunks.chunk_tokens, 0.5 * chunks.chunk_tokens / 1000)
    assert chunks.chunk_tokens == 2000
