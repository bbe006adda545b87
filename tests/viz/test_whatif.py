"""What if: replays of a real engine's logs hit what was recorded, and nothing hits more than the optimum."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from copy import copy
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.engine.config import Config
from nbsglang.engine.core import Core
from nbsglang.engine.scheduler import Limits
from nbsglang.events import EventLog, Ready, Snapshot
from nbsglang.viz.caches import NodeCache, Wish
from nbsglang.viz.farthest import FarthestCache
from nbsglang.viz.record import Act, Record, Use, record
from nbsglang.viz.whatif import NO_LIMIT, POLICIES, replay, usual_sizes, what_if, whatif_display
from tests.engine.drive import Job, drive, model, words


def _prompts(seed: int, n: int) -> list[tuple[int, ...]]:
    """Prompts that share beginnings of several lengths."""
    rng = random.Random(seed)
    stems = [tuple(rng.randrange(97, 123) for _ in range(rng.randrange(4, 20))) for _ in range(4)]
    prompts: list[tuple[int, ...]] = []
    for _ in range(n):
        stem = rng.choice(stems + prompts[-3:])
        prompts.append(
            (*stem[: rng.randrange(2, len(stem) + 1)], *(rng.randrange(97, 101) for _ in range(rng.randrange(1, 9))))
        )
    return prompts


def make_core(n_slots: int) -> tuple[Core, EventLog]:
    """An engine's core whose logits are random, so that they take no time."""
    log = EventLog()
    log.emit("e", Ready("e", "dice", "cpu", "float32", n_slots))

    def emit(body: Any) -> None:
        log.emit("e", body)

    def throw(batch: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        generator = torch.Generator().manual_seed(int(batch.positions.sum()))
        return torch.rand(len(batch.wanted), dice.n_vocab, generator=generator)

    dice = copy(model("llama"))
    dice.run = throw  # type: ignore[method-assign]
    return Core(dice, words(), n_slots, Limits(8, 8, 1), Config(), emit), log


@cache
def recorded(seed: int, n_slots: int, *, at_once: bool) -> tuple[EventLog, int]:
    """The log of a real engine, and how many prompt tokens it found in its tree."""
    core, log = make_core(n_slots)
    rng = random.Random(seed)
    jobs = [Job(prompt, max_new=rng.randrange(0, 6)) for prompt in _prompts(seed, 30)]
    if at_once:
        for n, job in enumerate(jobs):
            job.arrives = n // 2
        drive(core, log, jobs, check=False)
    else:
        for n, job in enumerate(jobs):
            drive(core, log, [job], check=False)
            if n == 20:
                core.flush("asked")
    return log, core.totals.cached_tokens


@pytest.mark.parametrize("n_slots", [60, 90, 400])
@pytest.mark.parametrize("seed", range(4))
def test_one_after_the_other_the_recorded_pool_hits_exactly_as_it_did(seed: int, n_slots: int) -> None:
    log, n_cached = recorded(seed, n_slots, at_once=False)
    found = record(log.since())
    assert (len(found.uses), found.is_sequential, found.is_whole, found.n_slots) == (30, True, True, n_slots)
    again = replay(found, n_slots)
    assert (found.n_hit, again.n_hit, again.n_evicted) == (n_cached, n_cached, found.n_evicted)
    assert again.n_over == 0
    assert n_slots == 400 or found.n_evicted > 60


@pytest.mark.parametrize("seed", range(4))
def test_side_by_side_without_eviction_hits_are_exact_too(seed: int) -> None:
    log, n_cached = recorded(seed, 600, at_once=True)
    found = record(log.since())
    assert not found.is_sequential
    assert replay(found, 600).n_hit == replay(found, NO_LIMIT).n_hit == n_cached > 0


@pytest.mark.parametrize("n_slots", [60, 90])
@pytest.mark.parametrize("seed", range(4))
def test_side_by_side_with_eviction_hits_differ_by_a_few_points_at_most(seed: int, n_slots: int) -> None:
    log, n_cached = recorded(seed, n_slots, at_once=True)
    found = record(log.since())
    assert found.n_evicted > 60
    assert abs(replay(found, n_slots).hit_rate - n_cached / found.n_prompt) < 0.05


# ------------------------------------------------------------------------------------------------- the optimum


def sequence(wishes: list[Wish]) -> Record:
    """Requests one after the other."""
    uses = [Use(n, f"c{n}", len(w.tokens), tuple(w.tokens), w.n_cacheable, 0, True) for n, w in enumerate(wishes)]
    acts: list[Act] = []
    for n, wish in enumerate(wishes):
        acts += [Act(kind, n, len(wish.tokens)) for kind in ("begin", "reserve", "share", "end")]
    return Record(tuple(uses), tuple(acts), 0, True, 0)


def best_by_trying_all(wishes: list[Wish], n_slots: int) -> int:
    """The most hits of any choice of what to keep: after each request, any set of prefixes that is closed upwards."""

    @cache
    def best(n: int, cached: frozenset[tuple[int, ...]]) -> int:
        if n == len(wishes):
            return 0
        tokens, n_cacheable = wishes[n]
        path = [tuple(tokens[:k]) for k in range(1, len(tokens) + 1)]
        n_hit = len(list(itertools.takewhile(cached.__contains__, path[:n_cacheable])))
        rest = cached.difference(path[:n_hit])
        most = max(
            best(n + 1, frozenset([*path, *kept]))
            for kept in closed(rest, set(path[:n_hit]))
            if len(kept) + len(tokens) <= n_slots
        )
        return n_hit + most

    return best(0, frozenset())


def closed(prefixes: frozenset[tuple[int, ...]], there: set[tuple[int, ...]]) -> Iterator[set[tuple[int, ...]]]:
    """All choices of these prefixes that hold, with each, the one before it, unless that is there anyway."""
    ordered = sorted(prefixes, key=len)

    def choose(at: int, kept: set[tuple[int, ...]]) -> Iterator[set[tuple[int, ...]]]:
        if at == len(ordered):
            yield set(kept)
            return
        yield from choose(at + 1, kept)
        above = ordered[at][:-1]
        if not above or above in kept or above in there:
            yield from choose(at + 1, kept | {ordered[at]})

    return choose(0, set())


_prompt = st.lists(st.sampled_from([1, 2]), min_size=1, max_size=4)
_wish = st.builds(lambda tokens, full: Wish(tuple(tokens), len(tokens) - (not full)), _prompt, st.booleans())


@settings(max_examples=300)
@given(st.lists(_wish, min_size=1, max_size=6), st.integers(0, 3))
def test_farthest_first_hits_as_much_as_anything_could(wishes: list[Wish], spare: int) -> None:
    n_slots = max(len(wish.tokens) for wish in wishes) + spare
    found = sequence(wishes)
    hits = {policy: replay(found, n_slots, policy).n_hit for policy in POLICIES}
    assert hits["optimal"] == best_by_trying_all(wishes, n_slots)
    assert hits["optimal"] >= max(hits.values())


@pytest.mark.parametrize("seed", range(4))
def test_a_larger_pool_and_the_optimum_never_hit_less(seed: int) -> None:
    log, _ = recorded(seed, 60, at_once=False)
    found = record(log.since())
    outcomes = {(o.policy, o.n_slots): o.n_hit for o in what_if(found, (40, 60, 90, NO_LIMIT), POLICIES)}
    for n_slots in (40, 60, 90):
        assert outcomes["optimal", n_slots] >= max(outcomes["lru", n_slots], outcomes["fifo", n_slots])
        assert outcomes["optimal", n_slots] <= outcomes["lru", NO_LIMIT]
    assert outcomes["lru", NO_LIMIT] == outcomes["fifo", NO_LIMIT] == outcomes["optimal", NO_LIMIT]
    assert outcomes["lru", 40] < outcomes["lru", NO_LIMIT]


def test_first_in_first_out_forgets_what_is_used_again_and_again() -> None:
    chat = Wish((1, 2, 3, 4), 4)
    wishes = [wish for n in range(6) for wish in (chat, Wish((10 * n + 10, 8, 9), 2))]
    found = sequence(wishes)
    assert replay(found, 8, "lru").n_hit == 5 * 4
    assert replay(found, 8, "fifo").n_hit < 5 * 4


# ------------------------------------------------------------------------------------------------- what is told


def test_the_picture_tells_the_recorded_rate_beside_the_others() -> None:
    log, n_cached = recorded(0, 60, at_once=True)
    found = record(log.since())
    picture = whatif_display(found, what_if(found, usual_sizes(found), POLICIES))
    assert f"{n_cached / found.n_prompt:.1%}" in picture.text
    assert "several ran at once" in picture.text
    assert "no limit" in picture.text
    for policy in POLICIES:
        assert policy in picture.text
        assert policy in picture.html


def test_a_log_that_has_lost_its_beginning_starts_at_a_snapshot() -> None:
    log, _ = recorded(1, 400, at_once=False)
    events = log.since()
    half = next(n for n, e in enumerate(events) if n > len(events) // 2 and type(e.body).__name__ == "Step")
    whole = record(events)
    cut = record(events[half:])
    assert (cut.uses, cut.is_whole) == ((), False)
    nodes = _tree_before(events[:half])
    late = record([events[half - 1]._replace(body=nodes), *events[half:]])
    assert 0 < len(late.uses) < len(whole.uses)
    assert not late.is_whole
    assert "has lost events" in whatif_display(late, what_if(late, [NO_LIMIT], ["lru"])).text


def _tree_before(events: Any) -> Snapshot:
    from nbsglang.viz.fold import fold

    return Snapshot(fold(events).tree_as_tuples())


def test_a_pool_that_is_too_small_at_once_says_so() -> None:
    found = sequence([Wish((1, 2, 3, 4, 5), 4)])
    assert replay(found, 3).n_over == 2
    assert replay(found, 5).n_over == 0
    assert "would not all fit at once" in whatif_display(found, what_if(found, [3], ["lru", "optimal"])).text


@pytest.mark.parametrize("cache", [NodeCache(10), FarthestCache(10, [Wish((1, 2), 1), Wish((1, 3), 1)])])
def test_twins_give_their_slots_back(cache: Any) -> None:
    for request, wish in enumerate((Wish((1, 2), 1), Wish((1, 3), 1))):
        assert cache.begin(request, wish) == 0  # side by side: the second has not seen the first
        cache.reserve(request, 2)
    for request in (0, 1):
        cache.share(request, 2)
        cache.end(request)
    assert cache._n_free == 10 - 3
