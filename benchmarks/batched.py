"""Contestant (b): batched `model.generate` with left padding; a select is one padded batch of a question's choices.

Not here: reuse of a prefix (`by_hand.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.hf import FirstToken, Words, best, left_padded, mean_logprob, sampling
from benchmarks.workloads import FewShot, Judge, Outcome, Plain, SelfConsistency


class Batched:
    """model.generate on whole batches."""

    name = "batch"

    def __init__(self, module: Any, tokenizer: Any) -> None:
        self._module, self._words = module, Words(tokenizer)

    def reset(self) -> None:
        """It keeps nothing."""

    def self_consistency(self, work: SelfConsistency) -> Outcome:
        """All samples in one batch."""
        first = FirstToken()
        texts = self._generate([work.context] * work.n, work.new, work.temperature, first)
        return Outcome(tuple(texts), work.n_generated, first.seconds)

    def plain(self, work: Plain) -> Outcome:
        """All prompts in one batch."""
        first = FirstToken()
        texts = self._generate(work.prompts, work.new, 0.0, first)
        return Outcome(tuple(texts), work.n_generated, first.seconds)

    def judge(self, work: Judge) -> Outcome:
        """All verdicts of all programs in one batch, then all final texts in another."""
        first, n = FirstToken(), len(work.aspects)
        bases = [work.instruction + essay for essay in work.essays]
        verdicts = self._generate([base + aspect for base in bases for aspect in work.aspects], work.new, 0.0, first)
        groups = [verdicts[i * n : (i + 1) * n] for i in range(len(bases))]
        merged = [base + "".join(group) + work.merge for base, group in zip(bases, groups, strict=True)]
        finals = self._generate(merged, work.new, 0.0, first)
        texts = [text for group, final in zip(groups, finals, strict=True) for text in (*group, final)]
        return Outcome(tuple(texts), work.n_generated, first.seconds)

    @torch.inference_mode()
    def few_shot(self, work: FewShot) -> Outcome:
        """One batch for each question: its rows are the choices."""
        picks = []
        for question in work.questions:
            full, start = self._words.boundary(work.shots + question, work.choices)
            ids, mask = left_padded([row[:-1] for row in full])
            positions = (mask.cumsum(1) - 1).clamp(min=0)
            n_kept = max(map(len, full)) - start
            out = self._module(ids, attention_mask=mask, position_ids=positions, use_cache=False, logits_to_keep=n_kept)
            scores = [
                mean_logprob(logits[-(len(row) - start) :], row[start:])
                for row, logits in zip(full, out.logits, strict=True)
            ]
            picks.append(best(work.choices, scores))
        return Outcome(tuple(picks), 0)

    def _generate(self, prompts: Sequence[str], new: int, temperature: float, first: FirstToken) -> list[str]:
        ids, mask = left_padded([self._words.ids(prompt) for prompt in prompts])
        out = self._module.generate(ids, attention_mask=mask, streamer=first, **sampling(new, temperature))
        made = out[:, ids.shape[1] :]
        assert made.shape[1] == new
        return self._words.texts(made)
