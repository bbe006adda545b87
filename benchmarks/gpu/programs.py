"""The programs of the workloads as coroutines over one small interface, the same for every engine.

Each takes a `Session` and an item's arguments, and returns what was generated, in an order that is the same for all.
Branches go through `together`, which an ablation may run one after the other.

Not here: the same programs in our own language (`language.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain

from benchmarks.gpu.session import Session
from benchmarks.gpu.workloads import Work

Ids = list[int]


async def play(work: Work, ask: Session) -> list[list[Ids]]:
    """All programs of a workload; what each of them generated."""
    program = PROGRAMS[work.kind]
    if work.in_turn:
        return [await program(ask, **item) for item in work.items]
    return list(await asyncio.gather(*(program(ask, **item) for item in work.items)))


async def complete(ask: Session, prompt: Ids, n_out: int) -> list[Ids]:
    """One prompt, one text."""
    return [await ask.call(prompt, n_out)]


async def pick(ask: Session, prompt: Ids, choices: list[Ids]) -> list[Ids]:
    """The index of the choice with the best score."""
    scores = await ask.score(prompt, choices)
    return [[max(range(len(choices)), key=scores.__getitem__)]]


async def tree(
    ask: Session, prompt: Ids, instructions: list[Ids], branches: int, n_out: int, temperature: float
) -> list[Ids]:
    """A thought for each branch, then those that follow from it, to the depth of `instructions`; depth first."""
    if not instructions:
        return []
    asked = prompt + instructions[0]

    async def branch() -> list[Ids]:
        out = await ask.call(asked, n_out, temperature)
        return [out, *await tree(ask, asked + out, instructions[1:], branches, n_out, temperature)]

    return list(chain.from_iterable(await ask.together([branch() for _ in range(branches)])))


async def judge(ask: Session, base: Ids, aspects: list[Ids], merge: Ids, n_out: int, n_final: int) -> list[Ids]:
    """A verdict on each aspect side by side, then one after the essay, all verdicts and `merge`."""
    verdicts = await ask.together([ask.call(base + aspect, n_out) for aspect in aspects])
    final = await ask.call(base + list(chain(*verdicts)) + merge, n_final)
    return [*verdicts, final]


async def sample(ask: Session, prompt: Ids, n_samples: int, n_out: int, temperature: float) -> list[Ids]:
    """Texts after one prompt."""
    return list(await ask.together([ask.call(prompt, n_out, temperature) for _ in range(n_samples)]))


async def turns(ask: Session, parts: list[Ids], n_outs: list[int]) -> list[Ids]:
    """What is said, the answer, what is said next: chats, and agents with what they observe."""
    prompt: Ids = []
    outs: list[Ids] = []
    for part, n_out in zip(parts, n_outs, strict=True):
        prompt = prompt + part
        outs.append(await ask.call(prompt, n_out))
        prompt = prompt + outs[-1]
    return outs


async def skeleton(ask: Session, prompt: Ids, points: list[Ids], n_skeleton: int, n_out: int) -> list[Ids]:
    """The skeleton of an answer, then its points side by side."""
    bones = await ask.call(prompt, n_skeleton)
    flesh = await ask.together([ask.call(prompt + bones + point, n_out) for point in points])
    return [bones, *flesh]


async def characters(ask: Session, prompt: Ids, most_out: int, temperature: float) -> list[Ids]:
    """A text in the form of `characters.PATTERN`."""
    return [await ask.constrained(prompt, most_out, temperature)]


PROGRAMS: dict[str, Callable[..., Awaitable[list[Ids]]]] = {
    "complete": complete,
    "pick": pick,
    "tree": tree,
    "judge": judge,
    "sample": sample,
    "turns": turns,
    "skeleton": skeleton,
    "characters": characters,
}
