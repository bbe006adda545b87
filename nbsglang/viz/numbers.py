"""The figures of a run, and of an engine: tokens by kind, hit rate, times, the pool.

Not here: how they are laid out.
"""

from __future__ import annotations

from typing import NamedTuple

from nbsglang.viz.fold import View
from nbsglang.viz.scene import Scene, seconds
from nbsglang.viz.state import StreamView


class Figure(NamedTuple):
    """A name and a value, such as ("hit rate", "80%")."""

    name: str
    value: str


def run_figures(scene: Scene) -> list[Figure]:
    """What the run of a scene has cost so far."""
    streams = scene.streams
    cached, computed = sum(s.n_cached for s in streams), sum(s.n_computed for s in streams)
    generated, first = sum(s.n_generated for s in streams), _first_token_s(streams)
    if not cached + computed:  # the backend logs no requests: what its replies said
        stats = scene.stats
        cached, computed = int(stats.get("cached_tokens") or 0), int(stats.get("computed_tokens") or 0)
        generated, first = int(stats.get("generated_tokens") or 0), stats.get("first_token_seconds")
    figures = [
        Figure("cached", f"{cached:,}"),
        Figure("prefilled", f"{computed:,}"),
        Figure("generated", f"{generated:,}"),
        Figure("hit rate", f"{cached / (cached + computed):.0%}" if cached + computed else "–"),
    ]
    if first is not None:
        figures.append(Figure("first token", seconds(first)))
    if (speed := _tokens_per_s(streams)) is not None:
        figures.append(Figure("speed", f"{speed:.1f} tok/s" if speed < 100 else f"{speed:.0f} tok/s"))
    return figures + pool_figures(scene.view)


def engine_figures(view: View) -> list[Figure]:
    """What an engine has done so far, with the tokens of the requests that still run; and what runs and waits."""
    totals = view.totals
    running = [request for request in view.requests.values() if not request.ended]
    cached = totals.n_cached + sum(request.n_cached for request in running)
    prompt = totals.n_prompt + sum(request.n_cached + request.n_computed for request in running)
    generated = totals.n_generated + sum(len(request.generated) for request in running)
    figures = [
        Figure("hit rate", f"{cached / prompt if prompt else 0.0:.0%}"),
        Figure("prompt tokens", f"{prompt:,}, {cached:,} of them cached"),
        Figure("generated", f"{generated:,}"),
    ]
    if view.step is not None:
        figures.append(
            Figure(f"step {view.step.step}", f"{view.step.n_running} running, {view.step.n_waiting} waiting")
        )
    if totals.n_evicted or totals.n_preempted:
        figures.append(Figure("memory", f"{totals.n_evicted:,} tokens evicted, {totals.n_preempted} preempted"))
    return figures + pool_figures(view)


def pool_figures(view: View) -> list[Figure]:
    """The pool after the latest step, and whether events are missing."""
    figures = []
    if (step := view.step) is not None:
        parts = step.n_locked, step.n_evictable, step.n_free
        if view.complete and not view.nodes and not step.n_running:  # it was emptied after the step
            parts = 0, 0, sum(parts)
        figures.append(Figure("pool", "{:,} locked, {:,} evictable, {:,} free".format(*parts)))
    if view.n_lost:
        figures.append(Figure("log", f"{view.n_lost:,} events were lost"))
    return figures


def line(figures: list[Figure]) -> str:
    """The figures in one line of text."""
    return " · ".join(f"{figure.name} {figure.value}" for figure in figures)


def _first_token_s(streams: tuple[StreamView, ...]) -> float | None:
    """From the beginning of the run to the first token of any call."""
    firsts = [call.first_ns for s in streams for call in s.calls.values() if call.first_ns is not None]
    return (min(firsts) - min(s.began_ns for s in streams)) / 1e9 if firsts else None


def _tokens_per_s(streams: tuple[StreamView, ...]) -> float | None:
    """Generated tokens of all streams together, per second between the first and the last of them."""
    calls = [call for s in streams for call in s.calls.values()]
    times = [(call.first_ns, call.last_ns) for call in calls if call.first_ns is not None and call.last_ns is not None]
    span = max(last for _, last in times) - min(first for first, _ in times) if times else 0
    return (sum(s.n_generated for s in streams) - 1) / (span / 1e9) if span > 0 else None
