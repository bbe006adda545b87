"""The chunk of a CPU's steps follows their time, in bounds."""

from __future__ import annotations

from nbsglang.engine.sizes import Pace


def test_the_chunk_settles_where_a_step_takes_the_time_it_should():
    for tokens_per_second in (100.0, 700.0, 3000.0):
        pace = Pace(128)
        for _ in range(12):
            pace.observe(pace.chunk_tokens, pace.chunk_tokens / tokens_per_second)
        assert abs(pace.chunk_tokens / tokens_per_second - 0.3) < 0.16
        assert pace.chunk_tokens <= 1024


def test_it_shrinks_at_once_and_grows_by_doubling():
    pace = Pace(128)
    assert pace.observe(128, 3.0) == 16
    assert pace.observe(16, 0.001) == 32


def test_small_steps_tell_nothing():
    pace = Pace(128)
    assert pace.observe(3, 0.5) == 128
