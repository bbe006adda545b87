"""Contestant (a): a loop over `model.generate`, one prompt at a time; a select is one forward per prompt and choice.

Not here: batches (`batched.py`).
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.hf import FirstToken, Words, best, mean_logprob, sampling
from benchmarks.workloads import FewShot, Judge, Outcome, Plain, SelfConsistency


class Loop:
    """model.generate in a loop."""

    name = "loop"

    def __init__(self, module: Any, tokenizer: Any) -> None:
        self._module, self._words = module, Words(tokenizer)

    def reset(self) -> None:
        """It keeps nothing."""

    def self_consistency(self, work: SelfConsistency) -> Outcome:
        """One call for each sample."""
        return self._all([work.context] * work.n, work.new, work.temperature)

    def plain(self, work: Plain) -> Outcome:
        """One call for each prompt."""
        return self._all(work.prompts, work.new, 0.0)

    def judge(self, work: Judge) -> Outcome:
        """One call for each verdict, then one for the final text."""
        first = FirstToken()
        texts: list[str] = []
        for essay in work.essays:
            base = work.instruction + essay
            verdicts = [self._one(base + aspect, work.new, 0.0, first) for aspect in work.aspects]
            texts += [*verdicts, self._one(base + "".join(verdicts) + work.merge, work.new, 0.0, first)]
        return Outcome(tuple(texts), len(texts) * work.new, first.seconds)

    @torch.inference_mode()
    def few_shot(self, work: FewShot) -> Outcome:
        """One forward for each question and choice."""
        picks = []
        for question in work.questions:
            full, start = self._words.boundary(work.shots + question, work.choices)
            scores = []
            for ids in full:
                rows = self._module(torch.tensor([ids[:-1]]), use_cache=False, logits_to_keep=len(ids) - start)
                scores.append(mean_logprob(rows.logits[0], ids[start:]))
            picks.append(best(work.choices, scores))
        return Outcome(tuple(picks), 0)

    def _all(self, prompts: Any, new: int, temperature: float) -> Outcome:
        first = FirstToken()
        texts = [self._one(prompt, new, temperature, first) for prompt in prompts]
        return Outcome(tuple(texts), len(texts) * new, first.seconds)

    def _one(self, prompt: str, new: int, temperature: float, first: FirstToken) -> str:
        ids = torch.tensor([self._words.ids(prompt)])
        out = self._module.generate(
            ids, attention_mask=torch.ones_like(ids), streamer=first, **sampling(new, temperature)
        )
        made = out[:, ids.shape[1] :]
        assert made.shape[1] == new
        return self._words.texts(made)[0]
