"""What the tests of the language share: checks that nothing is left running, and no default backend afterwards."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator

import greenlet
import pytest

from nbsglang import current


def _wait_for(check: Callable[[], object], what: str) -> None:
    """Give it two seconds: a thread that has been told to end needs a moment."""
    until = time.monotonic() + 2
    while found := check():
        assert time.monotonic() < until, f"left over: {what} {found}"
        time.sleep(0.01)


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("nbsglang")]


def _greenlets() -> int:
    gc.collect()
    found = [thing for thing in gc.get_objects() if isinstance(thing, greenlet.greenlet) and thing and not thing.dead]
    return len([g for g in found if g.parent is not None])  # without the threads' main ones


@pytest.fixture(autouse=True)
def no_threads_left() -> Iterator[None]:
    """Every test of the language ends with no thread of ours and no default backend."""
    yield
    current.set_default_backend(None)
    _wait_for(_threads, "threads")


@pytest.fixture
def no_greenlets_left() -> Iterator[None]:
    """No suspended greenlet is left; takes a while, so it is asked for."""
    yield
    _wait_for(_greenlets, "greenlets")
