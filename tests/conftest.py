"""What all tests share: a hypothesis profile, no hub, how much of the machine and of the heap a test gets, and the
default model or a clear word that it is missing.
"""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before anything imports huggingface_hub: no test asks the hub

# The same examples everywhere, and no clock: a test must not fail because a machine is busy.
settings.register_profile(
    "ci", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")


@functools.cache
def _default_model() -> Path | str:
    """The folder of smollm2, fetched if need be, or why it cannot be had."""
    from nbsglang.engine.fetch import smollm2
    from nbsglang.errors import DownloadError

    try:
        return smollm2()
    except DownloadError as error:
        return str(error)


def _need_default_model() -> Path:
    found = _default_model()
    if isinstance(found, Path):
        return found
    if os.environ.get("CI"):  # there, a skipped test would be a test that nobody misses
        pytest.fail(f"needs the default model: {found}", pytrace=False)
    pytest.skip(f"needs the default model: {found}")


def pytest_configure(config: pytest.Config) -> None:
    """Interrupts work: a shell that starts pytest in the background lets it ignore them, and so do its kernels."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def heap_of_its_own() -> None:
    """The collector leaves alone what was there before a module: half a million objects of torch, transformers and of
    other modules' tests. It would go through them whenever a test asks what is left of something, and greenlet does so
    whenever a thread of programs ends: that was half of all the time.
    """
    gc.collect()
    gc.freeze()


@functools.cache
def _n_threads() -> int:
    """How many threads torch takes by itself: to be asked before it is told."""
    return int(sys.modules["torch"].get_num_threads())


def _set_threads(item: pytest.Item) -> None:
    """One thread of torch, unless a test is marked `all_threads`: where models are tiny or cores shared, sharing out
    the work takes longer than the work. Other processes, such as kernels, are told nothing.
    """
    if torch := sys.modules.get("torch"):
        many = _n_threads()
        torch.set_num_threads(many if item.get_closest_marker("all_threads") else 1)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Markers: `smollm2` has the model fetched, `gpu` skips where torch sees no CUDA device, `all_threads` as above."""
    _set_threads(item)
    if item.get_closest_marker("smollm2"):
        _need_default_model()
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def smollm2_folder() -> Path:
    """The folder of the default model, for `from_pretrained`."""
    return _need_default_model()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own for the test: NBSGLANG_CACHE names it, and it does not exist yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("NBSGLANG_CACHE", str(folder))
    return folder
