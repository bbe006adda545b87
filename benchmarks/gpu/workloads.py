"""The workloads of the GPU step as plain data: random token ids from a seed, and how many tokens each call makes.

A `Work` has a kind, which names its program (`programs.py`, `language.py`), and an item of keyword arguments for each
program. The sizes are those of the design's tables; `scale` makes numbers of programs and samples, and all lengths,
smaller together, and leaves the shape (levels, branches, turns, steps, points) as it is.

Sampled with temperature 1 are `tree_of_thought` (its branches have the same prompt, so greedy ones would be one text),
`self_consistency` and `json`; all else is greedy. Questions of few_shot and rag come in turns from all groups, so an
engine has to order them itself.

Not here: the programs, the optimum, times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """Programs of one kind that start at once, or one after the other where `in_turn`."""

    name: str
    kind: str
    items: tuple[Item, ...]
    in_turn: bool = False

    @property
    def n_calls(self) -> int:
        """Prompts that an engine gets: a generation is one, each choice of a select is one."""
        return sum(_size(self.kind, item)[0] for item in self.items)

    @property
    def n_out(self) -> int:
        """Tokens that are generated in all (of json: at most)."""
        return sum(_size(self.kind, item)[1] for item in self.items)


class Maker:
    """Makes ids and sizes; two seeds have no ids in common but by chance."""

    def __init__(self, n_vocab: int, seed: int, scale: float) -> None:
        self._random = np.random.default_rng(seed)
        self._n_vocab, self._scale = n_vocab, scale

    def n(self, n: int) -> int:
        """A number, scaled; at least 1."""
        return max(1, round(n * self._scale))

    def between(self, low: int, high: int) -> int:
        """A scaled number between two, both included."""
        return self.n(int(self._random.integers(low, high + 1)))

    def ids(self, n: int) -> list[int]:
        """So many ids, scaled."""
        return self.exactly(self.n(n))

    def exactly(self, n: int) -> list[int]:
        """So many ids, whatever the scale."""
        return list(map(int, self._random.integers(0, self._n_vocab, n)))


def build(name: str, n_vocab: int, seed: int = 0, scale: float = 1.0) -> Work:
    """The workload `name`. Raises KeyError for another name than those of `NAMES`."""
    kind, items, in_turn = _WORKS[name]
    return Work(name, kind, tuple(items(Maker(n_vocab, seed, scale))), in_turn)


def greedy(work: Work) -> Work:
    """The same with temperature 0 throughout, to compare outputs."""
    items = (({**item, "temperature": 0.0} if "temperature" in item else item) for item in work.items)
    return replace(work, items=tuple(items))


# --------------------------------------------------------------------------------------------- the items


def _few_shot(make: Maker) -> list[Item]:
    shots = [make.ids(600) for _ in range(10)]
    return [{"prompt": shots[i % 10] + make.ids(80), "n_out": 1} for i in range(make.n(1000))]


def _select4(make: Maker) -> list[Item]:
    shots = make.ids(1500)
    return [{"prompt": shots + make.ids(80), "choices": [make.ids(25) for _ in range(4)]} for _ in range(make.n(200))]


def _trees(n: int) -> Callable[[Maker], list[Item]]:
    def items(make: Maker) -> list[Item]:
        shared, instructions = make.ids(300), [make.ids(40) for _ in range(3)]
        rest = {"instructions": instructions, "branches": 3, "n_out": make.n(128), "temperature": 1.0}
        return [{"prompt": shared + make.ids(100), **rest} for _ in range(n or make.n(32))]

    return items


def _judges(n: int) -> Callable[[Maker], list[Item]]:
    def items(make: Maker) -> list[Item]:
        shared, aspects, merge = make.ids(200), [make.ids(40) for _ in range(5)], make.ids(20)
        rest = {"aspects": aspects, "merge": merge, "n_out": make.n(128), "n_final": make.n(64)}
        return [{"base": shared + make.ids(1500), **rest} for _ in range(n or make.n(64))]

    return items


def _self_consistency(make: Maker) -> list[Item]:
    rest = {"n_samples": make.n(64), "n_out": make.n(128), "temperature": 1.0}
    return [{"prompt": make.ids(8000), **rest} for _ in range(make.n(4))]


def _agents(make: Maker) -> list[Item]:
    shots, items = make.ids(1800), []
    for _ in range(make.n(100)):
        seen = [make.ids(150) for _ in range(5)]
        items.append({"parts": [shots + make.ids(50), *seen], "n_outs": [make.n(60)] * 6})
    return items


def _chats(low: int, high: int) -> Callable[[Maker], list[Item]]:
    def items(make: Maker) -> list[Item]:
        system, made = make.ids(50), []
        for _ in range(make.n(64)):
            turns = [make.exactly(make.between(256, 512)) for _ in range(4)]
            outs = [make.between(low, high) for _ in range(4)]
            made.append({"parts": [system + turns[0], *turns[1:]], "n_outs": outs})
        return made

    return items


def _plain(make: Maker) -> list[Item]:
    return [{"prompt": make.ids(512), "n_out": make.n(256)} for _ in range(make.n(256))]


def _single(make: Maker) -> list[Item]:
    return [{"prompt": make.ids(1024), "n_out": make.n(128)} for _ in range(4)]


def _rag(make: Maker) -> list[Item]:
    groups = [[token for _ in range(10) for token in make.ids(800)] for _ in range(make.n(8))]
    return [{"prompt": groups[i % len(groups)] + make.ids(60), "n_out": make.n(100)} for i in range(make.n(40))]


def _skeleton(make: Maker) -> list[Item]:
    shared, points = make.ids(200), [make.ids(30) for _ in range(8)]
    rest = {"points": points, "n_skeleton": make.n(80), "n_out": make.n(100)}
    return [{"prompt": shared + make.ids(60), **rest} for _ in range(make.n(32))]


def _json(make: Maker) -> list[Item]:
    shared = make.ids(600)
    return [{"prompt": shared + make.ids(40), "most_out": 400, "temperature": 1.0} for _ in range(make.n(64))]


_WORKS: dict[str, tuple[str, Callable[[Maker], list[Item]], bool]] = {
    "few_shot": ("complete", _few_shot, False),
    "select4": ("pick", _select4, False),
    "tree_of_thought": ("tree", _trees(0), False),
    "judge": ("judge", _judges(0), False),
    "self_consistency": ("sample", _self_consistency, False),
    "agents": ("turns", _agents, False),
    "chat_short": ("turns", _chats(4, 8), False),
    "chat_long": ("turns", _chats(256, 512), False),
    "plain": ("complete", _plain, False),
    "single": ("complete", _single, True),
    "rag": ("complete", _rag, False),
    "skeleton": ("skeleton", _skeleton, False),
    "judge_one": ("judge", _judges(4), True),
    "tree_one": ("tree", _trees(2), True),
    "json": ("characters", _json, False),
}
NAMES = tuple(_WORKS)
DEFAULT = NAMES[:-1]  # json needs a real vocabulary and constraints: it runs when it is asked for


def _size(kind: str, item: Item) -> tuple[int, int]:
    """Prompts and generated tokens of one program."""
    if kind == "complete":
        return 1, item["n_out"]
    if kind == "pick":
        return len(item["choices"]), 0
    if kind == "tree":
        n = sum(item["branches"] ** level for level in range(1, len(item["instructions"]) + 1))
        return n, n * item["n_out"]
    if kind == "judge":
        n = len(item["aspects"])
        return n + 1, n * item["n_out"] + item["n_final"]
    if kind == "sample":
        return item["n_samples"], item["n_samples"] * item["n_out"]
    if kind == "turns":
        return len(item["n_outs"]), sum(item["n_outs"])
    if kind == "skeleton":
        n = len(item["points"])
        return n + 1, item["n_skeleton"] + n * item["n_out"]
    return 1, item["most_out"]
