"""The order in which leaves are evicted, against a plain search; and what it remembers stays small.

Not here: eviction as a whole (`test_radix.py`).
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.engine.leaves import Leaves
from nbsglang.engine.radix_node import RadixNode

NOTHING = np.empty(0, np.int32)
ROOT = RadixNode(0, NOTHING, NOTHING, None, 0)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["use", "lock", "pop"]), st.integers(0, 5)), max_size=200))
def test_the_least_recently_used_free_leaf_comes_first(steps):
    leaves, nodes = Leaves(), [RadixNode(n + 1, NOTHING, NOTHING, ROOT, 0) for n in range(6)]
    for node in nodes:
        leaves.offer(node)
    for tick, (step, n) in enumerate(steps, 1):
        node = nodes[n]
        if step == "use":
            node.tick, node.locks = tick, 0
            leaves.offer(node)
        elif step == "lock":
            node.locks = 1
        else:
            expected = min((n for n in nodes if n.is_free_leaf), key=lambda n: (n.tick, n.id), default=None)
            assert leaves.pop() is expected
            if expected is not None:
                expected.parent = None  # evicted


def test_what_is_used_again_and_again_takes_no_memory():
    leaves, nodes = Leaves(), [RadixNode(n + 1, NOTHING, NOTHING, ROOT, 0) for n in range(100)]
    for tick in range(1, 10_001):
        nodes[tick % 100].tick = tick
        leaves.offer(nodes[tick % 100])
    assert len(leaves._heap) <= 2 * len(nodes) + 65
    assert leaves.pop() is nodes[1]
