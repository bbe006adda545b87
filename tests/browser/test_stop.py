"""A run that is stopped from the page by its own cancel button and by the notebook's ■, while its cell waits for
answers, with each version of ipykernel.

Not here: stopping without a page (`tests/notebook/test_kernel.py`).
"""

from __future__ import annotations

import statistics
from importlib import metadata

import pytest

from tests.browser.kernels import PACKAGES, add_kernel
from tests.browser.pages import Pages

pytestmark = pytest.mark.browser

_BUSY = 3  # how much longer than on a machine of its own things may take
_MEDIAN_MS, _WORST_MS = 500, 1500
_SETUP = """%load_ext nbsglang
import ipykernel
import nbsglang as sgl
sgl.set_default_backend(sgl.MockBackend("late", delay=60))
print(ipykernel.__version__)"""
_WAITS = """%%sgl s --show streams
for k in fork(2):
    'x'
    v = gen()"""
_AFTER = "print('still', 1 + 1)"


@pytest.mark.parametrize("version", ["installed", *PACKAGES])
def test_cancel_and_interrupt_stop_a_run(pages: Pages, version: str) -> None:
    is_installed = version == "installed"
    kernel = "python3" if is_installed else add_kernel(pages.server.kernels, version)
    name = f"stop-{version}"
    pages.write(name, _SETUP, _WAITS, _AFTER, kernel=kernel)
    seen = pages.act("stop", name, n_times=5 if is_installed else 3)
    expected = metadata.version("ipykernel") if is_installed else f"{version}.0"
    assert seen["version"].strip() == expected
    for how, took in seen["took"].items():
        assert statistics.median(took) < _BUSY * _MEDIAN_MS, (how, took)
        assert max(took) < _BUSY * _WORST_MS, (how, took)
    assert "still 2" in seen["after"]
