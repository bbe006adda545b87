"""Order, waiting for a prefix, fairness and budgets, step by step on counts."""

from __future__ import annotations

import pytest

from nbsglang.events import Admitted, NodeAdded, Step
from tests.engine.drive import Job, drive, make_core

SHARED = tuple(range(100, 140))


def admissions(log) -> list[tuple[int, int]]:
    """(request, hit) in order."""
    return [(e.body.request, e.body.n_hit) for e in log.since() if isinstance(e.body, Admitted)]


def test_a_shared_prefix_is_computed_once_when_all_arrive_together():
    core, log = make_core(n_slots=1000, chunk_tokens=16)
    jobs = [Job((*SHARED, i), 2) for i in range(6)]
    drive(core, log, jobs)
    assert [hit for _, hit in admissions(log)] == [0, *[len(SHARED)] * 5]
    assert core.totals.computed_tokens == len(SHARED) + 6 + 6  # and one generated token each
    added = [e.body for e in log.since() if isinstance(e.body, NodeAdded)]
    assert sum(len(body.tokens) for body in added) < 2 * len(SHARED)


def test_the_longest_cached_prefix_goes_first_where_not_all_have_room():
    core, log = make_core(n_slots=50, max_batch=1)
    drive(core, log, [Job(SHARED, 1)])
    order = [Job(tuple(range(1, 21)), 1), Job((*SHARED[:10], *range(20)), 1), Job((*SHARED, 9), 1)]
    drive(core, log, order)
    hits = admissions(log)[1:]
    assert [hit for _, hit in hits] == [40, 10, 0]


def test_where_all_have_room_fewer_steps_go_first_then_who_came_first():
    core, log = make_core(n_slots=1000, max_batch=1, chunk_tokens=16)
    drive(core, log, [Job(SHARED, 1)])
    two_steps, cold = Job(tuple(range(1, 31)), 1), Job(tuple(range(50, 60)), 1)
    drive(core, log, [two_steps, cold, Job((*SHARED[:10], 7), 1), Job((*SHARED, 9), 1)])
    assert [hit for _, hit in admissions(log)[1:]] == [0, 10, 40, 0]
    assert admissions(log)[-1][0] == two_steps.request.id


def test_fcfs_keeps_the_order_of_arrival():
    core, log = make_core(n_slots=1000, max_batch=1, policy="fcfs")
    drive(core, log, [Job(SHARED, 1)])
    drive(core, log, [Job((1, 2, 3), 1), Job((*SHARED[:10], 7), 1), Job((*SHARED, 9), 1)])
    assert [hit for _, hit in admissions(log)[1:]] == [0, 10, 40]


def test_a_cached_prefix_that_waits_is_not_evicted_for_what_came_before_it():
    core, log = make_core(n_slots=100, max_batch=1)
    drive(core, log, [Job(SHARED, 1)])
    drive(core, log, [Job(tuple(range(1, 50)), 1)])  # younger in the cache, which is full now
    drive(core, log, [Job(tuple(range(150, 190)), 1), Job((*SHARED, 7), 1)])
    assert [hit for _, hit in admissions(log)[2:]] == [40, 0]


def test_without_a_cache_requests_are_taken_as_they_come():
    core, log = make_core(n_slots=400, max_batch=1, caching=False)
    jobs = [Job(tuple(range(40)), 1), Job((7, 8), 1)]
    drive(core, log, jobs)
    assert [request for request, _ in admissions(log)] == [job.request.id for job in jobs]


@pytest.mark.parametrize("policy", ["prefix", "dfs_weight", "random"])
def test_nobody_is_passed_over_more_than_64_times(policy):
    """One cold request among a stream of hot ones, one at a time, of which not all have room."""
    core, log = make_core(n_slots=52, max_batch=1, policy=policy)
    drive(core, log, [Job(SHARED, 1)])
    cold = Job((1, 2, 3), 1)
    hot = [Job((*SHARED, i % 250, 0), 1, arrives=i // 3) for i in range(200)]
    drive(core, log, [cold, *hot], check=False)
    order = [request for request, _ in admissions(log)]
    overtaken = order.index(cold.request.id) - 1
    assert overtaken <= 64
    if policy == "prefix":
        assert overtaken == 64, "and no earlier than needed"


def test_running_streams_go_on_while_a_long_prompt_is_computed():
    core, log = make_core(n_slots=2000, chunk_tokens=10)
    stream = Job(tuple(range(5)), 40)
    drive(core, log, [stream, Job(tuple(i % 251 for i in range(300)), 1, arrives=5)])
    mixed = [e.body for e in log.since() if isinstance(e.body, Step) and e.body.n_prefill]
    assert all(step.n_prefill <= 10 for step in mixed)
    assert sum(step.n_decode == 1 and step.n_prefill > 0 for step in mixed) >= 25


@pytest.mark.parametrize("chunk_tokens", [9, 17, 24])
def test_steps_with_more_to_come_fill_whole_tiles(chunk_tokens):
    core, log = make_core(n_slots=2000, chunk_tokens=chunk_tokens, tile=8)
    streams = [Job((i, *range(5)), 60) for i in range(3)]
    drive(core, log, [*streams, *(Job((10 + i, *range(200)), 1, arrives=5) for i in range(2))])
    steps = [e.body for e in log.since() if isinstance(e.body, Step)]
    mixed = [(step.n_prefill, step.n_decode) for step in steps if step.n_decode == 3]
    mixed = [rows for rows in mixed if rows[0] >= chunk_tokens - 8]
    assert len(mixed) >= 8
    assert all(n_prefill <= chunk_tokens for n_prefill, _ in mixed)
    assert all((n_prefill + n_decode) % 8 == 0 for n_prefill, n_decode in mixed[:-2]), "but for the ends of the prompts"


def test_no_more_run_at_once_than_allowed():
    core, log = make_core(n_slots=2000, max_batch=3)
    drive(core, log, [Job((i, i + 1), 5) for i in range(9)])
    assert max(e.body.n_running for e in log.since() if isinstance(e.body, Step)) == 3


def test_without_caching_nothing_is_shared_and_nothing_is_kept():
    core, log = make_core(n_slots=1000, caching=False)
    drive(core, log, [Job((*SHARED, i), 2) for i in range(3)])
    assert [hit for _, hit in admissions(log)] == [0, 0, 0]
    assert core.tree.n_tokens == 0


def test_a_preempted_request_is_admitted_again_before_later_ones():
    core, log = make_core(n_slots=50, max_batch=4, lookahead=1, chunk_tokens=64)
    jobs = [Job(tuple(range(i, i + 12)), 16) for i in (0, 50, 100)]
    late = Job(tuple(range(200, 212)), 16, arrives=1)
    drive(core, log, [*jobs, late])
    order = [request for request, _ in admissions(log)]
    again = [r for i, r in enumerate(order) if r in order[:i]]
    assert again, "this pool must force a preemption"
    assert order[-1] == late.request.id
