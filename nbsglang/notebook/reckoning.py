"""`%sgl whatif`: the requests so far, or those of a saved log, under another pool size or rule of eviction.

Not here: the replay (`nbsglang/viz/whatif.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from IPython.core.error import UsageError

from nbsglang import errors
from nbsglang.events import Event, EventLog, NodeAdded, Queued
from nbsglang.viz.picture import Picture
from nbsglang.viz.record import record
from nbsglang.viz.whatif import POLICIES, usual_sizes, what_if, whatif_display


def reckoned(events: list[Event], source: str, sizes: list[int], policy: str) -> Picture:
    """The picture for these pool sizes (the usual ones if there are none), and a policy or "all". Raises UsageError."""
    found = record(events, source)
    if not found.n_prompt:
        why = "none has ended" if found.is_whole else "it has lost its beginning"
        why = why if any(isinstance(e.body, NodeAdded) for e in events) else "it has no cache"
        raise UsageError(f"there is nothing to replay: the log has no requests of which the cache is known ({why})")
    if not any(token for use in found.uses for token in use.tokens):
        raise UsageError(
            "the texts of this log were left out (--redact), and with them what its prompts have in common"
        )
    wrong = [size for size in sizes if size < 2]
    if wrong:
        raise UsageError(f"--kv-tokens are numbers of tokens, at least 2, not {wrong[0]}")
    policies = list(POLICIES) if policy == "all" else [policy]
    return whatif_display(found, what_if(found, sizes or usual_sizes(found), policies))


def busiest(events: Iterable[Event]) -> str:
    """The source of the engine that had the most requests, the last of several; "" if there are none."""
    counts = Counter(event.source for event in events if isinstance(event.body, Queued))
    return max(reversed(counts), key=counts.__getitem__, default="")


def saved(name: str) -> tuple[list[Event], str]:
    """The events of a saved log, and the engine of it that had the most requests. Raises UsageError."""
    try:
        events = EventLog.load(Path(name).expanduser()).since(0)
    except errors.UsageError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    return events, busiest(events)
