"""The plain Linear layers of a user's module, computed by a kernel of ours while a step runs.

The layers' weights stay where they are and are read anew each time, so a change of theirs is seen. What is hooked,
wrapped, or no plain Linear is left alone.

Not here: the kernel (`kernels/linear.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch

from nbsglang.kernels.linear import linear, works


class Linears:
    """The layers that may be swapped; none on a device or with a torch where there is nothing to gain."""

    def __init__(self, module: torch.nn.Module, device: torch.device) -> None:
        layers = _plain_layers(module) if device.type == "cpu" and works() else []
        self._forwards = [(layer.__dict__, partial(_forward, layer)) for layer in layers]

    def __len__(self) -> int:
        return len(self._forwards)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Our kernel is in place; afterwards every layer is as it was."""
        taken = []
        try:
            for attributes, forward in self._forwards:
                if "forward" not in attributes:  # else somebody has wrapped it since
                    attributes["forward"] = forward
                    taken.append(attributes)
            yield
        finally:
            for attributes in taken:
                attributes.pop("forward", None)


def _plain_layers(module: torch.nn.Module) -> list[torch.nn.Linear]:
    """A subclass may do anything, and so may a `forward` of the layer's own."""
    linears = [part for part in module.modules() if isinstance(part, torch.nn.Linear)]
    return [part for part in linears if type(part) is torch.nn.Linear and "forward" not in part.__dict__]


def _forward(layer: torch.nn.Linear, rows: torch.Tensor) -> torch.Tensor:
    return linear(rows, layer.weight, layer.bias)
