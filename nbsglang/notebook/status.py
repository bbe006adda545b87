"""What is loaded and what is in the cache, for `%sgl status` and `%sgl tree`.

Not here: pictures (`nbsglang/viz`), the machine (`doctor.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from nbsglang import current, errors
from nbsglang.calls import Backend
from nbsglang.events import Body, Event, Jumped, NodeAdded, NodeExtended, Ready, Snapshot, Tokens, TokenTexts
from nbsglang.notebook.memory import device_bytes, free_bytes, process_bytes, shown_bytes
from nbsglang.notebook.models import described
from nbsglang.notebook.state import State
from nbsglang.viz.fold import View, fold
from nbsglang.viz.picture import Picture, tree_display


def status_text(state: State) -> str:
    """A few lines of figures."""
    try:
        default: Backend | None = current.default_backend()
    except errors.UsageError:
        default = None
    named = {name: loaded.backend for name, loaded in state.models.items()}
    if default is not None and default not in named.values():
        named[str(getattr(default, "name", "default"))] = default
    lines: list[str] = []
    for name, backend in named.items():
        lines += _of_backend(name, backend, backend is default)
    if not named:
        lines.append("model      none is loaded: %sgl load smollm2")
    memory = f"memory     process {shown_bytes(process_bytes())}, free {shown_bytes(free_bytes())}"
    on_device = device_bytes()
    lines.append(memory + (f", GPU {shown_bytes(on_device)}" if on_device is not None else ""))
    running = state.running()
    lines.append(f"background {len(running)} running" if running else "background nothing is running")
    return "\n".join(lines)


def tree_shown(engine: Any) -> Picture:
    """The engine's radix tree as a picture."""
    return tree_display(tree_of(engine))


def tree_of(engine: Any) -> View:
    """What the engine's log says, with the tree from the engine itself where the log has lost its beginning."""
    return fold(events_of(engine), engine.source)


def events_of(engine: Any) -> list[Event]:
    """The engine's log; where it has lost its beginning, with the texts of tokens before it and the tree after it."""
    events: list[Event] = engine.log.since(0)
    if not events or any(isinstance(event.body, Ready) and event.source == engine.source for event in events):
        return events
    try:
        tree = engine.tree()
    except errors.BackendClosed:
        return events
    from nbsglang.engine.tokenizer import Tokenizer  # whoever has an engine has loaded it

    first, last, source = events[0], events[-1], engine.source
    own = (event.body for event in events if event.source == source)
    ids = (*sorted({token for body in (*own, tree) for token in _tokens(body)}),)
    words = Tokenizer(engine.tokenizer)
    named = Event(first.seq - 1, first.t_ns, source, TokenTexts(ids, (*map(words.token_text, ids),)))
    return [named, *events, Event(last.seq + 1, last.t_ns, source, tree)]


def _tokens(body: Body) -> Iterable[int]:
    match body:
        case NodeAdded() | NodeExtended():
            return body.tokens
        case Jumped():
            return body.ids
        case Tokens():
            return itertools.chain(*body.ids)
        case Snapshot():
            return itertools.chain(*(tokens for _, _, tokens, _, _ in body.nodes))
    return ()


def _of_backend(name: str, backend: Backend, is_default: bool) -> list[str]:
    mark = " (default)" if is_default else ""
    try:
        stats = backend.stats()
    except errors.BackendClosed:
        return [f"model      {name}{mark}: closed"]
    lines = [f"model      {name}{mark}: {described(backend)}"]
    if "kv_tokens" in stats:
        locked, cached, free = (f"{stats[key]:,.0f}" for key in ("kv_locked", "kv_cached", "kv_free"))
        lines.append(f"pool       {stats['kv_tokens']:,.0f} tokens: {cached} cached ({locked} locked), {free} free")
        hit, of = f"{stats['cached_tokens']:,.0f}", f"{stats['prompt_tokens']:,.0f}"
        lines.append(f"cache      hit rate {stats['hit_rate']:.0%}: {hit} of {of} prompt tokens")
        lines.append(f"requests   {stats['running']:.0f} running, {stats['waiting']:.0f} waiting")
    elif "calls" in stats:
        lines.append(f"calls      {stats['calls']:,.0f}")
    return lines
