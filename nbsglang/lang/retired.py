"""What is left of a run that is over: it forgets its backend, so that keeping a result keeps no model in memory.

Not here: results (`cell_result.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace

from nbsglang.calls import Backend, Call, Capabilities, Inbox, Prompt
from nbsglang.errors import BackendClosed
from nbsglang.lang.cell_errors import without_our_frames
from nbsglang.lang.state import ProgramState


def retire(state: ProgramState) -> None:
    """Let a run that is over forget its backend."""
    run = state._run
    if isinstance(run.backend, Retired):
        return
    run.backend = Retired(run.backend)
    run.options = replace(run.options, backend=None)
    if run.failure is not None:
        run.failure_traceback = without_our_frames(run.failure).__traceback__


class Retired:
    """In the place of a backend: renders, and submits nothing."""

    def __init__(self, backend: Backend) -> None:
        self.renderer: Callable[[Prompt], str] = backend.renderer
        self._backend = weakref.ref(backend)

    @property
    def capabilities(self) -> Capabilities:
        """None."""
        return Capabilities()

    def render(self, prompt: Prompt) -> str:
        """The text of the prompt."""
        return self.renderer(prompt)

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Refuse it."""
        raise BackendClosed("the run is over")

    def cancel(self, call_id: str) -> None:
        """Pass it on: the driver may not be done with the run."""
        backend = self._backend()
        if backend is not None:
            backend.cancel(call_id)

    def flush(self) -> None:
        """Nothing is cached here."""

    def stats(self) -> Mapping[str, float]:
        """None."""
        return {}

    def close(self) -> None:
        """Nothing to close."""
