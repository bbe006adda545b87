"""Values to come: a signal that wakes who waits, a slot that is filled once, a fault that can be raised often.

Not here: how to wait (`hub.py`), and who fills the slots (`execute.py`, on the driver's thread).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nbsglang.errors import NbsglangError


class Where(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


class Signal(list[Callable[[], None]]):
    """Wakes everyone who waits for it; a wake-up says "look again", not what happened. The list of the wakers.

    `add` and `notify` may be called from any thread. A waker is a callable that neither blocks nor raises. It
    is called once at most; who finds nothing new adds it again, and looks once more after adding it.
    """

    __slots__ = ()

    def add(self, wake: Callable[[], None]) -> None:
        """Call `wake` at the next notify."""
        self.append(wake)

    def notify(self) -> None:
        """Wake all that were added so far."""
        # Taken one by one from the front (each step is atomic): swapping the list would lose a waker that another
        # thread adds to the old list in between.
        for _ in range(len(self)):
            try:
                wake = self.pop(0)
            except IndexError:  # a second notify was faster
                return
            wake()


class Fault:
    """What went wrong, from which a fresh exception is made for each read, so that frames never pile up.

    All slots of a stream that failed share one fault. `delivered` is true once someone has seen it.
    """

    __slots__ = ("cause", "delivered", "kind", "message")

    def __init__(self, kind: type[NbsglangError], message: str, cause: BaseException | None = None) -> None:
        self.kind = kind
        self.message = message
        self.cause = cause
        self.delivered = False

    def error(self) -> NbsglangError:
        """A fresh exception, to be raised or looked at; the fault counts as delivered."""
        self.delivered = True
        error = self.kind(self.message)
        error.__cause__ = self.cause
        return error


def is_unnamed(name: str) -> bool:
    """Whether it is a name like "_0", which a gen without a name has got."""
    return name[:1] == "_" and name[1:].isdigit()


class Slot:
    """The value of a variable, filled once by its stream: with a value and meta info, or with a fault.

    `chunks` grows while a streaming call runs. `signal` is the stream's. `meta` is what `meta.py` makes readable.
    """

    __slots__ = ("chunks", "done", "fault", "meta", "name", "signal", "value")

    def __init__(self, name: str, signal: Signal) -> None:
        self.name = name
        self.signal = signal
        self.done = False
        self.value: object = None
        self.meta: object = None
        self.fault: Fault | None = None
        self.chunks: tuple[str, ...] | list[str] = ()  # a list once the first chunk is there

    def fill(self, value: object, meta: object = None) -> None:
        """The value is there."""
        self.value = value
        self.meta = meta
        self.done = True
        self.signal.notify()

    def fail(self, fault: Fault) -> None:
        """There will be no value."""
        if not self.done:
            self.fault = fault
            self.done = True
            self.signal.notify()

    def add_chunk(self, text: str) -> None:
        """More text of a value that is still being made."""
        if isinstance(self.chunks, list):
            self.chunks.append(text)
        else:
            self.chunks = [text]
        self.signal.notify()

    def read(self) -> object:
        """The value of a slot that is done. Raises its fault as a fresh exception."""
        if self.fault is not None:
            raise self.fault.error()
        return self.value
