"""Contestant (c): what an expert writes with transformers for each workload: shared prefixes are prefilled once, their
KV cache is repeated for the branches, and these are decoded as a batch.

Not here: anything general; each method knows its workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

from benchmarks.hf import FirstToken, Words, best, common, left_padded, mean_logprob
from benchmarks.workloads import FewShot, Judge, Outcome, Plain, SelfConsistency

_QUESTIONS_AT_ONCE = 4  # of 1, 2, 4 and 8 the best or near it, on a busy machine


class ByHand:
    """Hand-written prefix reuse and batched decoding."""

    name = "by_hand"

    def __init__(self, module: Any, tokenizer: Any) -> None:
        self._module, self._words = module, Words(tokenizer)
        eos = module.generation_config.eos_token_id
        self._eos = eos if isinstance(eos, list) else [eos]

    def reset(self) -> None:
        """It keeps nothing."""

    @torch.inference_mode()
    def self_consistency(self, work: SelfConsistency) -> Outcome:
        """The context once, then a batch of samples."""
        first, cache = FirstToken(), DynamicCache()
        logits = self._forward(cache, torch.tensor([self._words.ids(work.context)]))[:, -1]
        cache.batch_repeat_interleave(work.n)
        made = self._decode(cache, logits.repeat(work.n, 1), work.new, work.temperature, first)
        return Outcome(tuple(self._words.texts(made)), made.numel(), first.seconds)

    @torch.inference_mode()
    def plain(self, work: Plain) -> Outcome:
        """One batch; all prompts are of one length."""
        first, cache = FirstToken(), DynamicCache()
        logits = self._forward(cache, torch.tensor([self._words.ids(prompt) for prompt in work.prompts]))[:, -1]
        made = self._decode(cache, logits, work.new, 0.0, first)
        return Outcome(tuple(self._words.texts(made)), made.numel(), first.seconds)

    @torch.inference_mode()
    def judge(self, work: Judge) -> Outcome:
        """The instruction once, the essays as a batch, then all branches, then all merges."""
        first, base, n = FirstToken(), DynamicCache(), len(work.aspects)
        self._forward(base, torch.tensor([self._words.ids(work.instruction)]))
        base.batch_repeat_interleave(len(work.essays))
        self._forward(base, self._suffixes(work.essays))
        branches = repeated(base, n)
        logits = self._forward(branches, self._suffixes(work.aspects).repeat(len(work.essays), 1))[:, -1]
        made = self._decode(branches, logits, work.new, 0.0, first)
        verdicts = self._words.texts(made)
        groups = [verdicts[i * n : (i + 1) * n] for i in range(len(work.essays))]
        finals = self._merge(work, base, groups, first)
        texts = [text for group, final in zip(groups, finals, strict=True) for text in (*group, final)]
        return Outcome(tuple(texts), made.numel() + len(finals) * work.new, first.seconds)

    def _merge(self, work: Judge, base: DynamicCache, groups: list[list[str]], first: FirstToken) -> list[str]:
        starts = [work.instruction + essay for essay in work.essays]
        full = [
            self._words.ids(start + "".join(group) + work.merge) for start, group in zip(starts, groups, strict=True)
        ]
        # The seam may have become one token: the cache is cut to what is still true of all rows.
        kept = min(common(self._words.ids(start), ids) for start, ids in zip(starts, full, strict=True))
        kept = min(kept, base.get_seq_length())
        base.crop(kept - base.get_seq_length())
        ids, seen = left_padded([row[kept:] for row in full])
        mask = torch.cat([torch.ones(len(full), kept, dtype=torch.int64), seen], 1)
        logits = self._forward(base, ids, mask)[:, -1]
        return self._words.texts(self._decode(base, logits, work.new, 0.0, first, mask))

    @torch.inference_mode()
    def few_shot(self, work: FewShot) -> Outcome:
        """The shots once, a batch of questions after them, a batch of all their choices after these."""
        shots = DynamicCache()
        self._forward(shots, torch.tensor([self._words.ids(work.shots)]))
        choices = [self._words.ids(choice, start=False) for choice in work.choices]
        picks: list[str] = []
        for at in range(0, len(work.questions), _QUESTIONS_AT_ONCE):
            questions = work.questions[at : at + _QUESTIONS_AT_ONCE]
            cache = repeated(shots, len(questions))
            heads = self._forward(cache, self._suffixes(questions))[:, -1:]
            cache.batch_repeat_interleave(len(choices))
            longest = max(map(len, choices)) - 1
            rows = torch.tensor([ids[:-1] + [0] * (longest - len(ids) + 1) for ids in choices])  # seen by none before
            tails = self._forward(cache, rows.repeat(len(questions), 1), n_kept=longest)
            tails = tails.view(len(questions), len(choices), longest, -1)
            for head, tail in zip(heads, tails, strict=True):
                pairs = zip(choices, tail, strict=True)
                scores = [mean_logprob(torch.cat([head, row[: len(ids) - 1]]), ids) for ids, row in pairs]
                picks.append(best(work.choices, scores))
        return Outcome(tuple(picks), 0)

    # ------------------------------------------------------------------------------------------ the model

    def _suffixes(self, texts: Sequence[str]) -> torch.Tensor:
        """Ids [rows, n] of texts that go on after others and are of one length."""
        return torch.tensor([self._words.ids(text, start=False) for text in texts])

    def _forward(
        self, cache: DynamicCache, ids: torch.Tensor, mask: torch.Tensor | None = None, n_kept: int = 1
    ) -> torch.Tensor:
        """Logits [rows, n_kept, vocabulary] of `ids` [rows, n] after the cache, which takes them in."""
        more: dict[str, torch.Tensor] = {}
        if mask is not None:
            positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            more = {"attention_mask": mask, "position_ids": positions}
        out = self._module(ids, past_key_values=cache, use_cache=True, logits_to_keep=n_kept, **more)
        logits: torch.Tensor = out.logits
        return logits

    def _decode(
        self,
        cache: DynamicCache,
        logits: torch.Tensor,
        n: int,
        temperature: float,
        first: FirstToken,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """`n` tokens for each row of `logits` [rows, vocabulary]: ids [rows, n], none of them the end."""
        made = []
        while True:
            logits[:, self._eos] = float("-inf")
            token = _draw(logits, temperature)
            first.note()
            made.append(token)
            if len(made) == n:
                return torch.cat(made, 1)
            if mask is not None:
                mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
            logits = self._forward(cache, token, mask)[:, -1]


def repeated(cache: DynamicCache, n: int) -> DynamicCache:
    """A new cache in which each row of `cache` stands `n` times; `cache` stays as it is."""
    result = DynamicCache()
    for layer, source in enumerate(cache.layers):
        result.update(source.keys.repeat_interleave(n, 0), source.values.repeat_interleave(n, 0), layer)
    return result


def _draw(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    if not temperature:
        return logits.argmax(-1, keepdim=True)
    return torch.multinomial(torch.softmax(logits / temperature, -1), 1)
