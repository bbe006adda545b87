"""Times a player on a workload: a warm-up with other tokens, an empty cache, then the run; the median of several.

Not here: which player, which workloads (`__main__.py`).
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu.characters import n_valid
from benchmarks.gpu.optimum import optimum
from benchmarks.gpu.players import Played, Player
from benchmarks.gpu.workloads import Work, build


@dataclass(frozen=True, slots=True)
class Result:
    """One workload. Rates are a second's; `ttft` is the median over calls; None is what the engine does not say."""

    seconds: float
    runs: tuple[float, ...]
    programs_s: float
    out_s: float
    hit_rate: float | None
    optimum: float
    n_unique: int  # tokens that a cache without limits holds at the end
    n_longest: int  # tokens of the longest request with its answer
    n_prompts: int
    peak: int  # generations under way at once
    ttft: float | None = None
    valid: int | None = None  # of json: texts that match in full

    def for_json(self) -> dict[str, Any]:
        """Plain values; what is None is left out."""
        plain = {
            "seconds": round(self.seconds, 4),
            "programs_s": round(self.programs_s, 3),
            "out_s": round(self.out_s, 1),
            "hit_rate": None if self.hit_rate is None else round(self.hit_rate, 6),
            "optimum": round(self.optimum, 6),
            "ttft": None if self.ttft is None else round(self.ttft, 5),
            "runs": [round(seconds, 4) for seconds in self.runs],
            "prompts": self.n_prompts,
            "peak": self.peak,
            "valid": self.valid,
        }
        return {key: value for key, value in plain.items() if value is not None}


def measure(
    player: Player, name: str, n_vocab: int, scale: float = 1.0, runs: int = 1, warm_up: float | None = None
) -> Result:
    """One workload. The warm-up has the same size, or `warm_up` as its scale (0: none).

    Raises ValueError when not as many tokens are generated as the workload asks for.
    """
    warm_scale = scale if warm_up is None else warm_up
    if warm_scale:
        play(player, build(name, n_vocab, 1, warm_scale))
    work = build(name, n_vocab, 0, scale)
    timed = [play(player, work) for _ in range(runs)]
    return result_of(work, timed)


def play(player: Player, work: Work) -> tuple[float, Played]:
    """Once, from an empty cache: the seconds from the start of all programs to the end of the last, and the rest."""
    player.reset()
    run = player.prepared(work)
    gc.collect()
    start = time.perf_counter()
    played = run()
    seconds = time.perf_counter() - start
    _check(work, played, player.name)
    return seconds, played


def result_of(work: Work, timed: Sequence[tuple[float, Played]]) -> Result:
    """The median run as a result."""
    times = [seconds for seconds, _ in timed]
    seconds = statistics.median_low(times)
    played = timed[times.index(seconds)][1]
    notes = played.notes()
    best = optimum(notes)
    return Result(
        seconds=seconds,
        runs=tuple(times),
        programs_s=len(work.items) / seconds,
        out_s=notes.n_out / seconds,
        hit_rate=None if played.computed is None else 1 - played.computed / notes.n_prompt_tokens,
        optimum=best.hit_rate,
        n_unique=best.n_unique,
        n_longest=best.n_longest,
        n_prompts=notes.n_prompts,
        peak=notes.peak,
        ttft=statistics.median(played.firsts) if played.firsts else None,
        valid=n_valid(played.texts) if work.name == "json" else None,
    )


def _check(work: Work, played: Played, who: str) -> None:
    """Every prompt was asked and every token made; an engine that cannot score made one token for each choice."""
    notes = played.notes()
    wanted = {work.n_out, work.n_calls} if work.kind == "pick" else {work.n_out}
    if notes.n_prompts != work.n_calls or (work.name != "json" and notes.n_out not in wanted):
        raise ValueError(
            f"{who} got {notes.n_prompts} prompts and made {notes.n_out} tokens of {work.name}, "
            f"not {work.n_calls} and {work.n_out}"
        )
