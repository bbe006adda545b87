"""Copies between host and device that neither side waits for.

On CUDA they go through pinned memory, whose allocator keeps a block until the device has done with it; on a CPU
there is nothing to copy.

Not here: what is copied (`draws.py`, `sampler.py`, `fast.py`, `graphs.py`).
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch


def to_device(values: npt.NDArray[Any], device: torch.device) -> torch.Tensor:
    """The array on the device, ordered before all that is queued there from now on. On a CPU it stays the caller's."""
    tensor = torch.from_numpy(values)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def host_memory(n: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Memory of the host to be filled and given to `send`; what is in it is undefined. `dtype` [n]."""
    return torch.empty(n, dtype=dtype, pin_memory=device.type == "cuda")


def send(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """What was filled into `host_memory`, on the device, in the order of `to_device`; not to be written to again."""
    return values.to(device, non_blocking=True)


class HostCopy:
    """A tensor on its way to the host."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._event: torch.cuda.Event | None = None
        self._host = tensor
        if tensor.is_cuda:
            self._host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self._host.copy_(tensor, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record(torch.cuda.current_stream(tensor.device))

    def wait(self) -> npt.NDArray[Any]:
        """The values, when they are there; other threads run while this one waits."""
        if self._event is not None:
            self._event.synchronize()
        values: npt.NDArray[Any] = self._host.numpy()
        return values
