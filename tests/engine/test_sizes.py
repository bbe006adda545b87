"""The chunk of a CPU's steps follows their time, in bounds."""

from __future__ import annotations

from nbsglang.engine import sizes
from nbsglang.engine.sizes import _CPU_STEP_S, Pace


def test_the_chunk_settles_where_a_step_takes_the_time_it_should():
    """Also with a fixed cost of each step, where a small chunk is nearly as slow as a larger one."""
    for fixed, tokens_per_second in ((0.0, 100.0), (0.1, 700.0), (0.2, 400.0), (0.02, 1200.0)):
        pace = Pace(40)
        for _ in range(60):
            pace.observe(pace.chunk_tokens, fixed + pace.chunk_tokens / tokens_per_second)
        assert abs(fixed + pace.chunk_tokens / tokens_per_second - _CPU_STEP_S) < 0.05


def test_it_halves_or_doubles_at_most_and_has_bounds():
    pace = Pace(128)
    assert pace.observe(128, 30.0) == 64
    assert pace.observe(64, 0.001) == 128
    for _ in range(9):
        pace.observe(pace.chunk_tokens, 0.0001)
    assert pace.chunk_tokens == 1024
    for _ in range(9):
        pace.observe(pace.chunk_tokens, 100.0)
    assert pace.chunk_tokens == 16


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
    pace = Pace(128)
    assert pace.observe(3, 0.5) == 128
