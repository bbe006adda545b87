"""The workloads as programs of our own language: text, gen, select, fork, join.

The ids are text in the benchmarks' alphabet (`alphabet.py`), so the prompts are the same to the token as those of
`programs.py`, and so is the order of what the programs return.

Not here: json, whose vocabulary is a real one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nbsglang as sgl
from benchmarks.gpu.alphabet import ids_of, text_of
from benchmarks.gpu.workloads import Work

Ids = list[int]


def gen(name: str, n_out: int, temperature: float = 0.0) -> Any:
    """A generation of exactly `n_out` tokens."""
    return sgl.gen(name, max_tokens=n_out, temperature=temperature, ignore_eos=True)


@sgl.function
def complete(s: Any, prompt: str, n_out: int) -> list[str]:
    """One prompt, one text."""
    s += prompt + gen("text", n_out)
    return [s["text"]]


@sgl.function
def pick(s: Any, prompt: str, choices: list[str]) -> list[int]:
    """The index of the choice with the best score."""
    s += prompt
    s += sgl.select("choice", choices=choices)
    return [choices.index(s["choice"])]


@sgl.function
def tree(s: Any, prompt: str, instructions: list[str], branches: int, n_out: int, temperature: float) -> list[str]:
    """A thought for each branch, then those that follow from it; nothing is read before all has been asked."""
    s += prompt
    groups: list[Any] = []
    level: list[Any] = [s]
    for instruction in instructions:
        for state in level:
            forks = state.fork(branches)
            forks += instruction + gen("thought", n_out, temperature)
            groups.append(forks)
        level = [branch for forks in groups[-len(level) :] for branch in forks]
    below = {id(forks): groups[branches * n + 1 : branches * (n + 1) + 1] for n, forks in enumerate(groups)}
    thoughts = _depth_first(groups[0], below)
    for forks in reversed(groups):
        forks.join()
    return thoughts


def _depth_first(forks: Any, below: dict[int, list[Any]]) -> list[str]:
    """The thoughts in the order of `programs.tree`. Group n's branches have the groups from n * branches + 1 on."""
    thoughts: list[str] = []
    for n, branch in enumerate(forks):
        thoughts.append(branch["thought"])
        deeper = below[id(forks)]
        if deeper:
            thoughts += _depth_first(deeper[n], below)
    return thoughts


@sgl.function
def judge(s: Any, base: str, aspects: list[str], merge: str, n_out: int, n_final: int) -> list[str]:
    """A verdict on each aspect side by side, then one after the essay, all verdicts and `merge`."""
    s += base
    forks = s.fork(len(aspects))
    forks += list(aspects)
    forks += gen("verdict", n_out)
    forks.join()
    s += "".join(s["verdict"]) + merge
    s += gen("final", n_final)
    return [*s["verdict"], s["final"]]


@sgl.function
def sample(s: Any, prompt: str, n_samples: int, n_out: int, temperature: float) -> list[str]:
    """Texts after one prompt."""
    s += prompt
    forks = s.fork(n_samples)
    forks += gen("answer", n_out, temperature)
    forks.join()
    answers: list[str] = s["answer"]
    return answers


@sgl.function
def turns(s: Any, parts: list[str], n_outs: list[int]) -> list[str]:
    """What is said, the answer, what is said next; each answer is read before the next part is said."""
    answers = []
    for n, (part, n_out) in enumerate(zip(parts, n_outs, strict=True)):
        s += part + gen(f"answer{n}", n_out)
        answers.append(s[f"answer{n}"])
    return answers


@sgl.function
def skeleton(s: Any, prompt: str, points: list[str], n_skeleton: int, n_out: int) -> list[str]:
    """The skeleton of an answer, then its points side by side."""
    s += prompt + gen("bones", n_skeleton)
    forks = s.fork(len(points))
    forks += list(points)
    forks += gen("flesh", n_out)
    forks.join()
    return [s["bones"], *s["flesh"]]


PROGRAMS: dict[str, Any] = {
    "complete": complete,
    "pick": pick,
    "tree": tree,
    "judge": judge,
    "sample": sample,
    "turns": turns,
    "skeleton": skeleton,
}


def prepared(work: Work, backend: Any) -> Callable[[], list[list[Ids]]]:
    """A function that runs all programs of a workload and returns what `programs.play` would. Texts are made here."""
    program = PROGRAMS[work.kind]
    items = [{key: _argument(key, value) for key, value in item.items()} for item in work.items]

    def run() -> list[list[Ids]]:
        if work.in_turn:
            states = [program.run(**item, backend=backend) for item in items]
        else:
            states = program.run_batch(items, backend=backend)
        return [[_as_ids(value) for value in state.ret_value] for state in states]

    return run


def _argument(key: str, value: Any) -> Any:
    """Ids, and lists of ids, as text; numbers (and lists of them, which are named n_...) as they are."""
    if key.startswith("n_") or not isinstance(value, list):
        return value
    return [text_of(ids) for ids in value] if isinstance(value[0], list) else text_of(value)


def _as_ids(value: str | int) -> Ids:
    return [value] if isinstance(value, int) else ids_of(value)
