"""In which order waiting requests are admitted.

The longest cached prefix first keeps the cache useful where something must be evicted. Where all that waits fits into
free slots, no order changes what is hit. Then whose prompt takes the fewest steps comes first, and of those who
came first: programs go on side by side, and the last steps are as full as the others.

Not here: when one is, and how many (`scheduler.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from nbsglang.engine.config import Policy
from nbsglang.engine.radix import Match, common_prefix
from nbsglang.engine.request import Request


class Order:
    """The order by a policy: "prefix" (see the module), "fcfs", "random" or "dfs_weight"."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._random = random.Random(0)

    def of(
        self,
        waiting: Sequence[Request],
        matches: Mapping[int, Match],
        has_room: Callable[[], bool],
        chunk_tokens: int,
    ) -> list[Request]:
        """The requests, which come by arrival, in their order.

        `matches` has what is cached of each, by its id; `has_room`: nothing has to be evicted for them; a
        step computes up to `chunk_tokens` prompt tokens.
        """
        if self._policy == "random":
            return self._random.sample(waiting, len(waiting))
        if self._policy == "fcfs":
            return list(waiting)
        if self._policy == "dfs_weight":
            return _by_weight(waiting, matches)
        if has_room():
            return sorted(waiting, key=lambda r: (r.goal - matches[r.id].n - 1) // chunk_tokens)
        return sorted(waiting, key=lambda r: -matches[r.id].n)


def _by_weight(waiting: Sequence[Request], matches: Mapping[int, Match]) -> list[Request]:
    """Depth-first through the tree, subtrees with more waiting requests first."""
    paths = {r.id: matches[r.id].node.path() for r in waiting}
    weight: dict[int, int] = {}
    for path in paths.values():
        for node in path:
            weight[node.id] = weight.get(node.id, 0) + 1

    def key(request: Request) -> tuple[tuple[int, int], ...]:
        return (*((-weight[node.id], node.id) for node in paths[request.id]), (1, 0))

    return sorted(waiting, key=key)


def waits_for_prefix(request: Request, n_matched: int, leaders: Sequence[Request]) -> bool:
    """One of `leaders`, which compute their prompts, is computing a longer prefix of the request than the tree has."""
    tokens = request.tokens[: request.want_from]
    if n_matched >= len(tokens):
        return False
    for leader in leaders:
        prompt = leader.row[: leader.n_prompt]
        differs_at_once = n_matched >= len(prompt) or prompt[n_matched] != tokens[n_matched]
        if not differs_at_once and common_prefix(prompt, tokens) > n_matched:
            return True
    return False
