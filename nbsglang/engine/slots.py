"""Which slots of the KV pool are free.

Slots are int32; slot 0 is scratch for padding rows and is never handed out. A fresh pool hands out
ascending runs, which lets kernels read a run as a slice.

Not here: the tensors behind the slots (`pool.py`) and who holds a slot (tree and requests).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]


class SlotList:
    """A stack of free slots 1 .. n_slots."""

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self._stack: Ints = np.arange(n_slots, 0, -1, dtype=np.int32)
        self.n_free = n_slots

    def take(self, n: int) -> Ints:
        """Hand out `n` slots; the caller has checked that there are as many."""
        assert 0 <= n <= self.n_free, f"{n} slots wanted, {self.n_free} are free"
        out = self._stack[self.n_free - n : self.n_free][::-1].copy()
        self.n_free -= n
        return out

    def give(self, slots: Ints) -> None:
        """Take slots back."""
        n = len(slots)
        assert self.n_free + n <= self.n_slots, "more slots came back than were handed out"
        self._stack[self.n_free : self.n_free + n] = np.sort(slots)[::-1]
        self.n_free += n

    def free(self) -> Ints:
        """The free slots, in no useful order."""
        return self._stack[: self.n_free].copy()
