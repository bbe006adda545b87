"""Interrupts and timeouts of cells: everything ends, whatever the cell catches."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import greenlet
import pytest

from nbsglang.errors import Cancelled, TimedOut
from tests.lang.cell_table import backend_of, prepared

Names = dict[str, Any]


def interrupted(source: str, delay: float = 30, after: float = 0.1, **more: Any) -> tuple[BaseException, float, int]:
    """What a cell raises when it is interrupted, after how many seconds, and how many calls were cancelled."""
    backend = backend_of({}, delay)
    r = prepared(source, backend=backend, **more)
    sent = [0.0]

    def send() -> None:
        sent[0] = time.monotonic()
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        r.execute()
    except BaseException as error:
        caught = error
    took = time.monotonic() - sent[0]
    timer.join()
    assert r.error is caught
    backend.close()
    return caught, took, len(backend.cancelled)


CATCHING = "while True:\n    try:\n        a = gen()\n        a\n    except {0}:\n        pass"


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("a = gen()\na", (KeyboardInterrupt,)),
        ("a = gen()", (KeyboardInterrupt,)),
        ("for k in fork(5):\n    a = gen()\n    a", (KeyboardInterrupt,)),
        ("for k in fork(2):\n    for j in fork(2):\n        a = gen()\n        a", (KeyboardInterrupt,)),
        ("import time\nfor k in fork(2):\n    while True:\n        time.sleep(0.01)", (KeyboardInterrupt,)),
        (CATCHING.format("Exception"), (KeyboardInterrupt,)),
        (CATCHING.format("KeyboardInterrupt"), (Cancelled,)),
        (CATCHING.format("(KeyboardInterrupt, Exception)"), (Cancelled,)),
        ("for k in fork(3):\n    " + CATCHING.format("Exception").replace("\n", "\n    "), (KeyboardInterrupt,)),
    ],
)
def test_an_interrupt_ends_everything(source: str, kinds: tuple[type[BaseException], ...]) -> None:
    caught, took, n_cancelled = interrupted(source)
    assert isinstance(caught, kinds), repr(caught)
    assert took < 0.5
    assert n_cancelled > 0 or "sleep" in source


STUBBORN = """
from tests.lang.test_cell_stop import CATCHING, interrupted
source = "for k in fork(3):\\n    " + CATCHING.format("BaseException").replace("\\n", "\\n    ")
caught, took, n_cancelled = interrupted(source)
assert isinstance(caught, KeyboardInterrupt) and took < 0.5 and n_cancelled == 3, (caught, took, n_cancelled)
"""


def test_a_branch_that_catches_everything_is_left_where_it_is() -> None:
    """In a process of its own, since nothing can unwind such a branch: it stays suspended for good."""
    done = subprocess.run([sys.executable, "-c", STUBBORN], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def suspended() -> int:
    """How many greenlets wait."""
    gc.collect()
    return sum(1 for one in gc.get_objects() if isinstance(one, greenlet.greenlet) and one and one.parent is not None)


def test_nothing_is_left_of_an_interrupted_cell() -> None:
    before = suspended()
    caught, _, _ = interrupted(
        """
        for k in fork(50):
            try:
                a = gen()
                a
            except Exception:
                b = gen()
                b
        """
    )
    assert isinstance(caught, KeyboardInterrupt)
    assert suspended() <= before


@pytest.mark.parametrize(
    "source",
    [
        "a = gen()\na",
        CATCHING.format("Exception"),
        "for k in fork(2):\n    " + CATCHING.format("Exception").replace("\n", "\n    "),
        "while True:\n    gen()",
    ],
)
def test_a_timeout_ends_everything(source: str) -> None:
    began = time.monotonic()
    with pytest.raises(TimedOut):
        prepared(
            source, backend=backend_of({}, 30 if "while True:\n    gen" not in source else 0), timeout=0.1
        ).execute()
    assert time.monotonic() - began < 1
