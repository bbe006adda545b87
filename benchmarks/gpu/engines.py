"""Opens an engine by name for the command: the module or the folder that it needs, the engine, the time to start it.

Not here: the engines (`ours.py`, `loop.py`, `vllm_peer.py`, `sglang_peer.py`), what is run on them.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from benchmarks.gpu.alphabet import tokenizer as alphabet
from benchmarks.gpu.loop import Loop
from benchmarks.gpu.ours import Ours, open_engine
from benchmarks.gpu.players import Coroutines, Language, Player
from benchmarks.gpu.session import Adapter
from benchmarks.gpu.shapes import Shape, random_model, write_config

ENGINES = ("ours", "language", "transformers", "vllm", "sglang")
_PACKAGES = {"vllm": "vllm", "sglang": "sglang"}


class Unavailable(Exception):
    """The engine's package is not installed."""


class Opened(NamedTuple):
    """A player that has answered once. `start_up_s`: from the engine's constructor to its first token.

    After that ours captures steps in `prepare_s`, as it does for a user who is thinking; the others do so at the start.
    """

    player: Player
    build_s: float  # the module with its random weights, where that is not the engine's own work
    start_up_s: float
    prepare_s: float = 0.0


def open_player(
    name: str,
    shape: Shape,
    device: str,
    loop: asyncio.Runner,
    options: Mapping[str, Any] | None = None,
    tokenizer: Any = None,
) -> Opened:
    """One of `ENGINES` with random weights; `options` go to its constructor. Raises Unavailable."""
    options = dict(options or {})
    package = _PACKAGES.get(name)
    if package and importlib.util.find_spec(package) is None:
        raise Unavailable(f"{package} is not installed")
    if package:
        folder = write_config(shape, Path(mkdtemp(prefix="shape-")))
        start = time.perf_counter()
        adapter = loop.run(_peer(name, folder, options))
        return _first_token(Coroutines(adapter, loop), adapter, loop, 0.0, start)
    start = time.perf_counter()
    module = random_model(shape, device)
    built = time.perf_counter()
    if name == "transformers":
        adapter = Loop(module)
        return _first_token(Coroutines(adapter, loop), adapter, loop, built - start, built)
    engine = open_engine(module, tokenizer or alphabet(shape.vocab), **options)
    adapter = Ours(engine)
    player: Player = Coroutines(adapter, loop) if name == "ours" else Language(engine)
    opened = _first_token(player, adapter, loop, built - start, built)
    began = time.perf_counter()
    engine.prepare()
    return opened._replace(prepare_s=time.perf_counter() - began)


async def _peer(name: str, folder: Path, options: Mapping[str, Any]) -> Adapter:
    """Made inside the event loop, as both want it."""
    if name == "vllm":
        from benchmarks.gpu.vllm_peer import VLLM

        return VLLM(folder, **options)
    from benchmarks.gpu.sglang_peer import SGLang

    return SGLang(folder, **options)


def _first_token(player: Player, adapter: Adapter, loop: asyncio.Runner, build_s: float, start: float) -> Opened:
    loop.run(adapter.call([1, 2, 3], 1))
    return Opened(player, build_s, time.perf_counter() - start)
