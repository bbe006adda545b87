"""On a CUDA device: exact in float32, a captured decode step, no growth. Skipped elsewhere; results are committed."""

from __future__ import annotations

import pytest
import torch

pytestmark = [pytest.mark.gpu, pytest.mark.smollm2]


def test_greedy_tokens_in_float32_are_the_references() -> None:
    from benchmarks.gpu_check import check_greedy
    from nbsglang.engine.load import load

    reference = load("smollm2", dtype=torch.float32, device="cuda")
    found = check_greedy(reference.module, reference.tokenizer, torch.float32)
    assert found["equal"] + found["ties"] == found["tokens"]


def test_a_captured_decode_step_equals_the_eager_one() -> None:
    from benchmarks.gpu_check import check_graph

    found = check_graph()
    assert found["equal_tokens"] == found["of"]
    assert found["graph_ms"] < found["eager_ms"]


def test_a_users_module_computes_the_same_to_the_bit_beside_an_engine_and_after_it() -> None:
    from benchmarks.gpu_check import check_own_forward

    assert check_own_forward() == {"fused": True, "equal_beside": True, "equal_after": True}


def test_ten_engines_leave_no_memory() -> None:
    from benchmarks.gpu_check import check_open_close

    found = check_open_close()
    assert found["after_last_mb"] - found["before_mb"] < 200
    assert found["after_last_mb"] - found["after_first_mb"] < 50
