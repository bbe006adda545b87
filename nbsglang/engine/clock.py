"""How long the device works on a step, which is not how long the host waits for it: steps are launched ahead.

Not here: what follows from it (`sizes.py`).
"""

from __future__ import annotations

import time

import torch


class StepClock:
    """Runs from when the device comes to the step until it has done what was queued before `stop`."""

    def __init__(self, device: torch.device) -> None:
        self._on_device = device.type == "cuda"
        if not self._on_device:
            self._began = self._ended = time.perf_counter()
            return
        self._stream = torch.cuda.current_stream(device)
        self._start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._start.record(self._stream)

    def stop(self) -> None:
        """All of the step is queued; where nothing is, it is done."""
        if self._on_device:
            self._end.record(self._stream)
        else:
            self._ended = time.perf_counter()

    def seconds(self) -> float:
        """How long it took; waits for the end of the step."""
        if not self._on_device:
            return self._ended - self._began
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) / 1e3
