"""How much memory the process and its GPU hold.

Not here: giving it back (`models.py`).
"""

from __future__ import annotations

import sys

import psutil


def process_bytes() -> int:
    """What the process holds in the machine's memory."""
    return int(psutil.Process().memory_info().rss)


def free_bytes() -> int:
    """What the machine has left."""
    return int(psutil.virtual_memory().available)


def device_bytes() -> int | None:
    """What torch has taken of the GPU; None without one, or where nothing has loaded torch."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return int(sum(torch.cuda.memory_reserved(n) for n in range(torch.cuda.device_count())))


def shown_bytes(n: int) -> str:
    """In MB or GB."""
    return f"{n / 1e9:.2f} GB" if abs(n) >= 1e9 else f"{n / 1e6:.0f} MB"
