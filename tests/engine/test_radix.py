"""The radix tree against a plain set of prefixes, and its rules for locks, order and ownership."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.engine.radix import RadixTree, common_prefix
from nbsglang.engine.slots import SlotList

texts = st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple)


def ints(values) -> np.ndarray:
    return np.array(values, np.int32)


def put(tree: RadixTree, slots: SlotList, text: tuple[int, ...], request: int) -> None:
    node, known = tree.lock_prefix(ints(text), request)
    n = len(known)
    own = slots.take(len(text) - n)
    node, canonical = tree.insert(node, ints(text[n:]), own, request)
    slots.give(own[own != canonical])
    tree.unlock(node)


@settings(max_examples=200)
@given(st.lists(st.one_of(texts, st.integers(1, 30)), max_size=25))
def test_matches_what_was_put_and_not_evicted(steps):
    """Numbers evict so many tokens; what the tree says it has must be a prefix-closed part of what was put."""
    tree, slots = RadixTree(), SlotList(1000)
    contents: dict[tuple[int, ...], int] = {}  # prefix -> slot of its last token
    for request, step in enumerate(steps):
        if isinstance(step, int):
            before = tree.n_tokens
            freed = tree.evict(step)
            slots.give(freed)
            assert before - tree.n_tokens == len(freed) >= min(step, before)
            gone = set(freed.tolist())
            contents = {prefix: slot for prefix, slot in contents.items() if slot not in gone}
            continue
        put(tree, slots, step, request)
        node, row = tree.lock_prefix(ints(step))
        tree.unlock(node)
        assert len(row) == len(step)
        for n in range(1, len(step) + 1):
            assert contents.setdefault(step[:n], int(row[n - 1])) == row[n - 1], "a token has moved"
    assert tree.n_tokens == len(contents)
    assert tree.n_locked == 0
    assert slots.n_free == 1000 - len(contents)
    for prefix in contents:
        assert tree.match(ints(prefix)).n == len(prefix)


def test_the_least_recently_used_leaf_goes_first():
    tree, slots = RadixTree(), SlotList(100)
    put(tree, slots, (1, 2, 3), 1)
    put(tree, slots, (4, 5), 2)
    node, _ = tree.lock_prefix(ints((1, 2, 3)))
    tree.unlock(node)
    assert len(tree.evict(1)) == 2
    assert tree.match(ints((4, 5))).n == 0
    assert tree.match(ints((1, 2, 3))).n == 3


def test_a_locked_path_is_never_evicted():
    tree, slots = RadixTree(), SlotList(100)
    put(tree, slots, (1, 2, 3, 4), 1)
    node, _ = tree.lock_prefix(ints((1, 2)))
    assert len(tree.evict(100)) == 2
    assert tree.match(ints((1, 2, 3))).n == 2
    assert tree.n_evictable == 0
    tree.unlock(node)
    assert len(tree.evict(100)) == 2


def test_a_request_extends_its_own_leaf_but_not_anothers():
    tree, slots = RadixTree(), SlotList(100)
    node, _ = tree.lock_prefix(ints((1,)), 7)
    node, _ = tree.insert(node, ints((1, 2)), slots.take(2), 7)
    first = node.id
    node, _ = tree.insert(node, ints((3,)), slots.take(1), 7)
    assert node.id == first
    tree.unlock(node)
    node, _ = tree.lock_prefix(ints((1, 2, 3)), 8)
    node, _ = tree.insert(node, ints((4,)), slots.take(1), 8)
    assert node.id != first
    assert [n.key.tolist() for n in node.path()] == [[1, 2, 3], [4]]


def test_inserting_what_is_there_gives_the_trees_slots():
    tree, slots = RadixTree(), SlotList(100)
    put(tree, slots, (1, 2, 3, 4), 1)
    node, _ = tree.lock_prefix(ints((9,)))  # a request that started when nothing was there
    own = slots.take(5)
    node, canonical = tree.insert(node, ints((1, 2, 3, 5, 6)), own, 2)
    assert canonical[:3].tolist() != own[:3].tolist()
    assert canonical[3:].tolist() == own[3:].tolist()
    assert [n.key.tolist() for n in node.path()] == [[1, 2, 3], [5, 6]]


@given(st.lists(st.integers(0, 1), max_size=8), st.lists(st.integers(0, 1), max_size=8))
def test_common_prefix(a, b):
    expected = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert common_prefix(ints(a), ints(b)) == expected


def test_slots_are_handed_out_as_runs_and_never_twice():
    slots = SlotList(10)
    a, b = slots.take(4), slots.take(3)
    assert a.tolist() == [1, 2, 3, 4]
    slots.give(a)
    assert sorted([*slots.take(7).tolist(), *b.tolist()]) == list(range(1, 11))
    with pytest.raises(AssertionError):
        slots.take(1)
    with pytest.raises(AssertionError):
        slots.give(np.arange(1, 12, dtype=np.int32))
