"""The hit rate of a run, and the best that any cache could do, both from counts of tokens.

What counts. Each gen has one prompt; each choice of a select is a prompt of its own. Tokens are counted that must be
in the KV cache before the answer is known: all of a gen's prompt, all but the last token of a choice (which is only
looked up). Hints for a common prefix are no prompts. A token whose logits are needed is computed by every prompt that
needs them, even if its KV is cached: the last token of a gen's prompt, and a choice from the last token before it on.

optimum: the prompts enter an unlimited trie one after the other; what is not in the trie yet, or needs logits, is
computed, all else is a hit. hit rate: 1 - (prompt tokens that the engine computed, hints and recomputation after a
preemption included) / (prompt tokens as above). Both are hits / all, so they can be compared.

Not here: times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.hf import Words
from benchmarks.workloads import FewShot, Judge, Outcome, Plain, SelfConsistency, Workload


class Needed(NamedTuple):
    """One prompt: `ids` that must be computed or cached, logits needed from index `wanted` on."""

    ids: tuple[int, ...]
    wanted: int


def needed(workload: Workload, outcome: Outcome, tokenizer: Any) -> list[Needed]:
    """The prompts of a workload; some depend on what was generated."""
    words = Words(tokenizer)
    if isinstance(workload, SelfConsistency):
        return [_to_continue(words.ids(workload.context))] * workload.n
    if isinstance(workload, Plain):
        return [_to_continue(words.ids(prompt)) for prompt in workload.prompts]
    if isinstance(workload, Judge):
        return _of_judge(workload, outcome, words)
    return _of_few_shot(workload, words)


def optimum(prompts: list[Needed]) -> float:
    """The hit rate with perfect sharing."""
    trie: dict[int, Any] = {}
    n_hit = 0
    for prompt in prompts:
        n_hit += min(_add(trie, prompt.ids), prompt.wanted)
    return n_hit / n_tokens(prompts)


def n_tokens(prompts: list[Needed]) -> int:
    """All prompt tokens, as the module says what counts."""
    return sum(len(prompt.ids) for prompt in prompts)


def hit_rate(counters: tuple[Mapping[str, float], Mapping[str, float]], prompts: list[Needed], n_gens: int) -> float:
    """The hit rate between two readings of the engine's counters.

    `computed_tokens` also has the generated ones, each but the last of its text, which is never computed.
    """
    before, after = counters
    n_generated = after["generated_tokens"] - before["generated_tokens"]
    n_computed = after["computed_tokens"] - before["computed_tokens"] - (n_generated - n_gens)
    return 1 - n_computed / n_tokens(prompts)


def n_gens(workload: Workload) -> int:
    """How many texts are generated."""
    return 0 if isinstance(workload, FewShot) else workload.n_generated // workload.new


def _to_continue(ids: list[int]) -> Needed:
    return Needed(tuple(ids), len(ids) - 1)


def _of_judge(work: Judge, outcome: Outcome, words: Words) -> list[Needed]:
    prompts, n = [], len(work.aspects)
    for i, essay in enumerate(work.essays):
        base = work.instruction + essay
        verdicts = outcome.texts[i * (n + 1) : i * (n + 1) + n]
        prompts += [_to_continue(words.ids(base + aspect)) for aspect in work.aspects]
        prompts.append(_to_continue(words.ids(base + "".join(verdicts) + work.merge)))
    return prompts


def _of_few_shot(work: FewShot, words: Words) -> list[Needed]:
    prompts = []
    for question in work.questions:
        full, start = words.boundary(work.shots + question, work.choices)
        prompts += [Needed(tuple(ids[:-1]), start - 1) for ids in full]
    return prompts


def _add(trie: dict[int, Any], ids: tuple[int, ...]) -> int:
    """Put ids into the trie; how many leading ones were there."""
    n, node, known = 0, trie, True
    for token in ids:
        known = known and token in node
        n += known
        node = node.setdefault(token, {})
    return n
