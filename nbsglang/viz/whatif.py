"""What if the pool had another size, or another rule decided what is evicted: the requests of a log, replayed.

The requests are those of the log, in its order and with its answers; only the cache is another one. With the recorded
size and the engine's own rule, requests one after the other hit exactly as they did. Where several ran at once, slots
were taken in an order that a log does not tell to the last token: then hits differ a little once something is evicted.

Not here: the caches (`caches.py`), reading a log (`record.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import NamedTuple

from nbsglang.viz.caches import Cache, NodeCache, Wish
from nbsglang.viz.farthest import FarthestCache
from nbsglang.viz.page import page
from nbsglang.viz.picture import Picture
from nbsglang.viz.record import Record

Make = Callable[[int, list[Wish]], Cache]
POLICIES: Mapping[str, Make] = MappingProxyType(
    {
        "lru": lambda n_slots, wishes: NodeCache(n_slots),
        "fifo": lambda n_slots, wishes: NodeCache(n_slots, first_in=True),
        "optimal": FarthestCache,
    }
)
WORDS: Mapping[str, str] = MappingProxyType(
    {"lru": "least recently used first", "fifo": "oldest first", "optimal": "wanted last of all first"}
)
NO_LIMIT = 1 << 40


class Outcome(NamedTuple):
    """What a pool of `n_slots` under a policy would give. `n_over`: by how many slots it was too small at worst."""

    policy: str
    n_slots: int
    n_prompt: int
    n_hit: int
    n_evicted: int
    n_over: int

    @property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that came from the cache."""
        return self.n_hit / self.n_prompt if self.n_prompt else 0.0


def replay(found: Record, n_slots: int, policy: str = "lru") -> Outcome:
    """The requests of a record under another pool and policy (a key of POLICIES)."""
    wishes = [Wish(use.tokens, use.n_cacheable) for use in found.uses]
    cache = POLICIES[policy](n_slots, wishes)
    hits: dict[int, int] = {}
    for act in found.acts:
        match act.kind:
            case "begin":
                again = act.use in hits  # after a preemption, with all that it knows
                wish = wishes[act.use]._replace(n_cacheable=act.upto - 1) if again else wishes[act.use]
                hits.setdefault(act.use, cache.begin(act.use, wish))
            case "reserve":
                cache.reserve(act.use, act.upto)
            case "share":
                cache.share(act.use, act.upto)
            case "end" | "preempt":
                cache.share(act.use, act.upto)
                cache.end(act.use)
            case "flush":
                cache.flush()
    n_hit = sum(hits[n] for n, use in enumerate(found.uses) if use.finished)
    return Outcome(policy, n_slots, found.n_prompt, n_hit, cache.n_evicted, cache.n_over)


def what_if(found: Record, sizes: Iterable[int], policies: Iterable[str]) -> list[Outcome]:
    """An outcome for each size under each policy."""
    return [replay(found, size, policy) for size in sizes for policy in policies]


def n_distinct(found: Record) -> int:
    """How many tokens a cache holds that keeps all of them."""
    known: dict[tuple[int, int], int] = {}
    for use in found.uses:
        at = 0
        for token in use.tokens:
            at = known.setdefault((at, token), len(known) + 1)
    return len(known)


def usual_sizes(found: Record) -> list[int]:
    """A quarter and a half of what it takes to keep everything (at most of the pool), the pool, and no limit."""
    n = min(found.n_slots or NO_LIMIT, n_distinct(found))
    return [*dict.fromkeys(size for size in (n // 4, n // 2, found.n_slots) if size > 1), NO_LIMIT]


def whatif_display(found: Record, outcomes: list[Outcome]) -> Picture:
    """The outcomes beside what was recorded."""
    real = found.n_hit / found.n_prompt if found.n_prompt else 0.0
    rows = [("pool", "evicted are", "hit rate", "", "cached tokens", "evicted", "")]
    rows.append(
        (_size(found.n_slots), "as recorded", f"{real:.1%}", "", f"{found.n_hit:,}", f"{found.n_evicted:,}", "")
    )
    for outcome in _without_equals(outcomes):
        change = f"{(outcome.hit_rate - real) * 100:+.1f}"
        over = "would not all fit at once" if outcome.n_over else ""
        policy = f"{outcome.policy}: {WORDS[outcome.policy]}" if outcome.policy else "nothing has to go"
        numbers = (f"{outcome.hit_rate:.1%}", change, f"{outcome.n_hit:,}", f"{outcome.n_evicted:,}", over)
        rows.append((_size(outcome.n_slots), policy, *numbers))
    notes = [
        f"{len(found.uses):,} requests with {found.n_prompt:,} prompt tokens, in their order and with their answers"
    ]
    if not found.is_sequential:
        notes.append("several ran at once: which slots were taken first is not in the log to the last token")
    if not found.is_whole:
        notes.append("the log has lost events: the replay begins later, with an empty cache")
    text = [*_columns(rows), *(f"- {note}" for note in notes)]
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return Picture(
        page("<div><b>what if</b></div>", _table(rows), f'<ul style="margin:6px 0 0;padding-left:18px">{items}</ul>'),
        "\n".join(text),
    )


def _without_equals(outcomes: list[Outcome]) -> list[Outcome]:
    """One outcome without a policy in the place of those of a size under which nothing is evicted."""
    idle = {
        size for size in {o.n_slots for o in outcomes} if not any(o.n_evicted for o in outcomes if o.n_slots == size)
    }
    rows = (o._replace(policy="") if o.n_slots in idle and not o.n_over else o for o in outcomes)
    return [*dict.fromkeys(rows)]


def _size(n_slots: int) -> str:
    return "no limit" if n_slots >= NO_LIMIT else f"{n_slots:,}" if n_slots else "unknown"


_LEFT = {1, 6}


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return [
        "  ".join(
            f"{cell:<{w}}" if n in _LEFT else f"{cell:>{w}}"
            for n, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    def cell(text: str, n: int, tag: str) -> str:
        align = "left" if n in _LEFT else "right"
        return f'<{tag} style="text-align:{align};padding:1px 14px 1px 0">{escape(text)}</{tag}>'

    lines = [
        f"<tr>{''.join(cell(text, n, 'th' if at == 0 else 'td') for n, text in enumerate(row))}</tr>"
        for at, row in enumerate(rows)
    ]
    look = "border-collapse:collapse;color:inherit;background:inherit;font:inherit"
    return f'<table style="{look}">{"".join(lines)}</table>'
