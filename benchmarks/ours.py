"""Our contestant: the workloads as programs in the decorator language, on an engine around the live module.

Not here: the workloads' texts (`workloads.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nbsglang as sgl
from benchmarks.workloads import FewShot, Judge, Outcome, Plain, SelfConsistency


@sgl.function
def sample_many(s: Any, context: str, n: int, new: int, temperature: float) -> None:
    """`n` samples after a context."""
    s += context
    forks = s.fork(n)
    forks += sgl.gen("answer", max_tokens=new, min_tokens=new, temperature=temperature)
    forks.join()


@sgl.function
def answer_one(s: Any, shots: str, question: str, choices: tuple[str, ...]) -> None:
    """One question after the shots."""
    s += shots + question
    s += sgl.select("answer", choices=choices)


@sgl.function
def judge_essay(s: Any, instruction: str, essay: str, aspects: tuple[str, ...], merge: str, new: int) -> None:
    """A verdict on each aspect side by side, then the final one."""
    s += instruction + essay
    forks = s.fork(len(aspects))
    forks += list(aspects)
    forks += sgl.gen("verdict", max_tokens=new, min_tokens=new)
    forks.join()
    s += "".join(s["verdict"]) + merge
    s += sgl.gen("final", max_tokens=new, min_tokens=new)


@sgl.function
def complete(s: Any, prompt: str, new: int) -> None:
    """One prompt, one text."""
    s += prompt
    s += sgl.gen("text", max_tokens=new, min_tokens=new)


class Ours:
    """nbsglang. `reset` gives a cold cache."""

    name = "ours"

    def __init__(self, engine: sgl.Engine) -> None:
        self.engine = engine
        self.counters: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})  # before and after the last run

    def reset(self) -> None:
        """Empty the KV cache."""
        self.engine.flush_cache()

    def self_consistency(self, work: SelfConsistency) -> Outcome:
        """One program that forks."""
        before = self.engine.stats()
        state = sample_many.run(work.context, work.n, work.new, work.temperature, backend=self.engine, seed=1)
        return self._outcome(before, tuple(state["answer"]), state.stats["first_token_seconds"])

    def few_shot(self, work: FewShot) -> Outcome:
        """A batch of programs, one for each question."""
        before = self.engine.stats()
        items = [(work.shots, question, work.choices) for question in work.questions]
        states = answer_one.run_batch(items, backend=self.engine)
        return self._outcome(before, tuple(state["answer"] for state in states))

    def judge(self, work: Judge) -> Outcome:
        """A batch of programs, one for each essay, each of which forks."""
        before = self.engine.stats()
        items = [(work.instruction, essay, work.aspects, work.merge, work.new) for essay in work.essays]
        states = judge_essay.run_batch(items, backend=self.engine, temperature=0.0)
        texts = tuple(text for state in states for text in (*state["verdict"], state["final"]))
        return self._outcome(before, texts, states[0].stats["first_token_seconds"])

    def plain(self, work: Plain) -> Outcome:
        """A batch of programs of one call each."""
        before = self.engine.stats()
        items = [(prompt, work.new) for prompt in work.prompts]
        states = complete.run_batch(items, backend=self.engine, temperature=0.0)
        return self._outcome(before, tuple(state["text"] for state in states), states[0].stats["first_token_seconds"])

    def _outcome(self, before: Mapping[str, float], texts: tuple[str, ...], first: float | None = None) -> Outcome:
        after = self.engine.stats()
        self.counters = (before, after)
        return Outcome(texts, int(after["generated_tokens"] - before["generated_tokens"]), first)
