"""Contestant (d): guidance with its transformers backend on the same live module, and its cache of the last prompt.

Its select decodes under a grammar of the choices instead of scoring each of them, so its picks may differ.

Not here: a repair of anything but what stops it from running at all, see `_Cache`.
"""

from __future__ import annotations

import warnings
from typing import Any

from transformers import DynamicCache

from benchmarks.workloads import FewShot, Judge, Outcome, Plain, SelfConsistency


class Unavailable(Exception):
    """guidance cannot take part; the message says why."""


class _Cache(DynamicCache):  # type: ignore[misc]  # transformers' class has no types
    """guidance 0.3 crops to a length, which transformers 5 does not take any more: it wants the number to remove."""

    def crop(self, tokens_to_remove: int) -> None:
        """Keep so many tokens."""
        super().crop(min(tokens_to_remove - self.get_seq_length(), 0))


class Guided:
    """guidance programs."""

    name = "guidance"

    def __init__(self, module: Any, tokenizer: Any) -> None:
        try:
            import guidance
        except ImportError as error:
            raise Unavailable(f"guidance is not installed ({error})") from None
        self._guidance = guidance
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # its advice about chat templates, which no workload uses
                self._lm = guidance.models.Transformers(module, tokenizer, echo=False, enable_monitoring=False)
            self._engine = self._lm._interpreter.engine
            if tokenizer("a").input_ids[:1] != [tokenizer.bos_token_id]:
                self._engine.tokenizer._bos_token_id = None  # it would begin each prompt with a token of its own
            self.reset()
            self._gen("a text", 2, 0.0)
        except Exception as error:  # whatever a version that does not fit raises
            raise Unavailable(f"guidance cannot take the module: {type(error).__name__}: {error}") from None

    def reset(self) -> None:
        """Forget the last prompt."""
        self._engine._past_key_values = _Cache()
        self._engine._cached_token_ids = []
        self._engine._cached_logits = None

    def self_consistency(self, work: SelfConsistency) -> Outcome:
        """Sample by sample after the context."""
        return _outcome([self._gen(work.context, work.new, work.temperature) for _ in range(work.n)])

    def plain(self, work: Plain) -> Outcome:
        """Prompt by prompt."""
        return _outcome([self._gen(prompt, work.new, 0.0) for prompt in work.prompts])

    def judge(self, work: Judge) -> Outcome:
        """Essay by essay, aspect by aspect."""
        made: list[tuple[str, int]] = []
        for essay in work.essays:
            base = work.instruction + essay
            verdicts = [self._gen(base + aspect, work.new, 0.0) for aspect in work.aspects]
            merged = base + "".join(text for text, _ in verdicts) + work.merge
            made += [*verdicts, self._gen(merged, work.new, 0.0)]
        return _outcome(made)

    def few_shot(self, work: FewShot) -> Outcome:
        """Question by question."""
        select = self._guidance.select
        states = [self._lm + (work.shots + q) + select(list(work.choices), name="pick") for q in work.questions]
        return Outcome(tuple(str(state["pick"]) for state in states), 0)

    def _gen(self, prompt: str, new: int, temperature: float) -> tuple[str, int]:
        """`new` tokens and their number. The pattern keeps the end token away, as no text is so long.

        Their number is taken from guidance's own limit: its passes are more by one or two for each text, as it takes
        the prompt's last token back and generates it anew. Fewer passes mean that it ended too soon.
        """
        gen = self._guidance.gen("text", regex=rf"(?s:.{{{40 * new},}})", max_tokens=new, temperature=temperature)
        state = self._lm + prompt + gen
        n_passes = int(state._get_usage().output_tokens)
        return str(state["text"]), min(new, n_passes)


def _outcome(made: list[tuple[str, int]]) -> Outcome:
    return Outcome(tuple(text for text, _ in made), sum(n for _, n in made))
