"""What goes back from the engine's thread: outputs of steps to their calls, and the end of it all.

Not here: the thread (`loop.py`), the replies (`backend.py`), the way to the thread (`access.py`).
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from nbsglang.engine.backend import Desk
from nbsglang.engine.commit import Output
from nbsglang.engine.core import Core
from nbsglang.engine.model import Model
from nbsglang.events import Control


class Outlet:
    """Where the loop's outputs go: its `Delivery`. It holds no Engine, which the thread must not keep alive."""

    def __init__(self, core: Core, desk: Desk, model: Model, emit: Callable[[Control], object]) -> None:
        self._core = core
        self._desk = desk
        self._model = model
        self._emit = emit

    def deliver(self, outputs: list[Output]) -> None:
        """Pass outputs to their calls; what is left of calls that failed is dropped."""
        for orphan in self._desk.deliver(outputs):
            self._core.abort(orphan, "error")

    def ended(self, crash: str | None) -> None:
        """Fail what is left, give the module and all memory back."""
        why = "the engine was closed" if crash is None else f"the engine stopped by an internal error:\n{crash}"
        self._desk.close(why)
        self._model.release()
        self._core.release()
        self._emit(Control("closed", crash or ""))
        gc.collect()
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()
