"""Our engine as the workloads use it: ids in, ids out, through `agenerate` and `submit`.

Not here: the same workloads in our language (`language.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import nbsglang as sgl
from benchmarks.gpu.alphabet import text_of
from nbsglang.calls import ChoiceScore, Failure, Generated, Reply, ScoreCall
from nbsglang.engine.engine import Engine, Output
from nbsglang.engine.inbox import Awaiting

Ids = list[int]


class Meter:
    """Prompt tokens that an engine computed between two readings of its counters."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._before: Mapping[str, float] = {}
        self.start()

    def start(self) -> None:
        """From now on."""
        self._before = self._engine.stats()

    def computed(self) -> int:
        """Until now. Hints and what preemption cost are in it."""
        return int(self._engine.stats()["prefilled_tokens"] - self._before["prefilled_tokens"])


class Ours:
    """nbsglang."""

    name = "ours"

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.firsts: list[float] = []
        self._meter = Meter(engine)
        self._call_ids = itertools.count()

    async def call(self, ids: Ids, n_out: int, temperature: float = 0.0) -> Ids:
        """Through the public coroutine."""
        out = await self.engine.agenerate(ids, max_tokens=n_out, temperature=temperature, ignore_eos=True)
        return self._taken(out)

    async def score(self, ids: Ids, choices: Sequence[Ids]) -> list[float]:
        """Mean log probabilities, as a select of the language has them."""
        inbox = Awaiting()
        call_id = f"score-{id(self):x}-{next(self._call_ids)}"
        texts = tuple(map(text_of, choices))
        self.engine.submit(ScoreCall(call_id, (Generated("", tuple(ids)),), texts), inbox)
        item = await inbox.get()
        if isinstance(item, Failure):
            raise item.error
        assert isinstance(item, Reply)
        return [mean(score) for score in item.scores]

    async def constrained(self, ids: Ids, pattern: str, most_out: int, temperature: float) -> tuple[Ids, str]:
        """A text that matches the pattern, or the beginning of one where `most_out` tokens were not enough."""
        out = await self.engine.agenerate(ids, max_tokens=most_out, temperature=temperature, regex=pattern)
        assert isinstance(out, Output)
        return self._taken(out), out.text

    def _taken(self, out: Output | list[Output]) -> Ids:
        assert isinstance(out, Output)
        if out.usage.first_token_s is not None:
            self.firsts.append(out.usage.first_token_s)
        return list(out.ids)

    async def reset(self) -> None:
        """Empty the cache."""
        self.engine.flush_cache()
        self.firsts = []
        self._meter.start()

    def computed(self) -> int:
        """From the engine's counters."""
        return self._meter.computed()

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()


def open_engine(module: object, tokenizer: object, **options: object) -> Engine:
    """An engine around a module, with an event log of its own."""
    return Engine(module, tokenizer=tokenizer, log=sgl.EventLog(), **options)  # type: ignore[arg-type]


def mean(score: ChoiceScore) -> float:
    """The mean log probability of a choice's tokens."""
    return sum(token.logprob for token in score.tokens) / len(score.tokens)
