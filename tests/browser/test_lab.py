"""The live views in a real JupyterLab and a real Chromium: while a cell runs, after a restart, opened again without a
kernel, in a dark theme, by keyboard alone, in a notebook of twenty runs; and in Notebook 7.

Not here: what is done in the notebooks (`web/test/lab`), how quickly a run can be stopped (`test_stop.py`).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.browser.pages import Pages

pytestmark = pytest.mark.browser

SETUP = """%load_ext nbsglang
import time
import nbsglang as sgl
from nbsglang.engine.engine import Engine
from tests.tiny import byte_tokenizer, tiny_model
step_s = 0.004
model = tiny_model()
model.register_forward_hook(lambda *_: time.sleep(step_s))
sgl.set_default_backend(Engine(model, tokenizer=byte_tokenizer(), kv_tokens=3000))"""
# Two seconds or more: long enough to be looked at while it goes on.
RUN = """%%sgl r -t 0
'Essay: the sea is wide. '
for k in fork(3):
    f'Aspect {k}: '
    v = gen(max_tokens=300, ignore_eos=True)"""
SMALL = """%%sgl r{n} -t 0
'Essay {n}: the sea is wide. '
for k in fork(2):
    f'Aspect {{k}}: '
    v = gen(max_tokens=60, ignore_eos=True)"""
QUICK = "step_s = 0"
MEMORY = """import gc, json, psutil, threading
from comm import get_comm_manager
gc.collect()
print(json.dumps({"comms": len(get_comm_manager().comms), "threads": threading.active_count(),
                  "resident_mb": psutil.Process().memory_info().rss / 1e6}))"""
MANY = """from IPython.utils.capture import capture_output
for n in range(60):
    with capture_output():
        get_ipython().run_cell_magic('sgl', '-t 0 --show streams', "'once more ' + gen(max_tokens=2)")"""
LEFT = "print('here')"
MOCK = """%load_ext nbsglang
import nbsglang as sgl
sgl.set_default_backend(sgl.MockBackend("the sea is wide " * 20, delay=3))"""
BUSY = 3  # how much longer than on a machine of its own things may take
MOST_SAVED = 500_000  # bytes of a notebook with twenty runs


@pytest.fixture(scope="module")
def ran(pages: Pages) -> Iterator[dict[str, Any]]:
    """The page of "run.ipynb" with a run that was looked at while it went on, and saved; what was seen."""
    pages.write("run", SETUP, RUN)
    yield pages.act("live", "run", keeps=True)
    pages.leave("run")


def test_a_run_is_seen_while_it_goes_on(ran: dict[str, Any]) -> None:
    assert ran["app"] == "JupyterLab"
    check_live(ran)
    assert all(part in ran["text"] for part in ("Streams", "Radix tree", "Aspect 2", "hit rate"))


def check_live(seen: dict[str, Any], *, n_sizes: int = 3) -> None:
    """Its streams were seen while the cell ran, in so many sizes: they grew."""
    assert seen["views"] == 1
    assert len({*seen["lengths"]} - {0}) >= n_sizes, seen["lengths"]
    assert seen["end"].startswith("done in")


@pytest.mark.usefixtures("ran")
def test_a_saved_run_reads_without_kernel_and_trust(pages: Pages) -> None:
    saved = nbformat.read(pages.path("run"), as_version=4)
    nbformat.validate(saved)
    assert "widgets" not in saved.metadata
    saved.metadata = {"kernelspec": {"name": "gone", "display_name": "Gone", "language": "gone"}}
    nbformat.write(saved, pages.path("reopened"))
    seen = pages.act("reopened", "reopened")
    assert seen["kernel"] is None
    assert seen["views"] == 0
    assert "Aspect 2" in seen["text"]
    assert "rror" not in seen["text"]
    assert seen["widths"]
    assert min(seen["widths"]) > 100  # the pictures are there


@pytest.mark.usefixtures("ran")
def test_a_dark_theme_is_followed(pages: Pages) -> None:
    seen = pages.act("colours", "run", keeps=True)
    light, dark = seen["JupyterLab Light"], seen["JupyterLab Dark"]
    assert light["luminance"] > 0.8
    assert dark["luminance"] < 0.1
    for one in (light, dark):
        assert one["is_opaque"]
        assert one["ratio"] > 7
        assert one["n_words"] > 20
        assert one["worst"][0]["ratio"] >= 4.5, one["worst"]  # what WCAG asks of text


@pytest.mark.usefixtures("ran")
def test_a_run_after_a_restart_is_live_again(pages: Pages) -> None:
    seen = pages.act("restart", "run", keeps=True)
    assert "Aspect 2" in seen["left"]
    assert "rror" not in seen["left"]
    check_live(seen)
    assert seen["count"] == "[2]:"


def test_a_run_is_read_by_keyboard_alone(pages: Pages) -> None:
    pages.write("keys", SETUP, RUN, LEFT)
    seen = pages.act("keys", "keys")
    assert seen["lanes"] == ["branch 0", "branch 1", "r", "branch 2"]
    assert len(set(seen["nodes"])) >= 3, seen["nodes"]
    assert seen["nodes"][-1].split()[1] in seen["detail"]
    assert (seen["left_lanes"], seen["left_tree"]) == ("cell", "cell")


def test_the_twentieth_run_is_as_live_as_the_first(pages: Pages) -> None:
    pages.write("twenty", f"{SETUP}\n{QUICK}", *(SMALL.format(n=n) for n in range(20)), MEMORY, MANY)
    seen = pages.act("twenty", "twenty")
    assert seen["views"] == [1] * 20
    last = seen["runs"][-3:]
    assert statistics.median(run["view_ms"] for run in last) < BUSY * 1000, seen["runs"]
    assert statistics.median(run["cell_ms"] for run in last) < BUSY * 2000, seen["runs"]
    ten, twenty, many = seen["memory"]
    assert twenty["comms"] <= ten["comms"] + 10
    assert many["comms"] <= 66  # sixty views and what they share
    assert many["threads"] <= ten["threads"] + 1
    assert many["resident_mb"] < ten["resident_mb"] + 100, seen["memory"]
    assert seen["saved"]["small"] < MOST_SAVED
    assert _readable(pages.path("twenty"))


def _readable(path: Path) -> bool:
    from nbconvert import HTMLExporter

    text, _ = HTMLExporter().from_filename(str(path))
    return text.count("Aspect 1") >= 20


def test_notebook_7_shows_a_run(pages: Pages) -> None:
    pages.write("seven", MOCK, RUN)
    seen = pages.act("live", "seven", way="notebooks")
    assert seen["app"] != "JupyterLab"
    check_live(seen, n_sizes=1)
    assert all(part in seen["text"] for part in ("Streams", "Aspect 2", "the sea is wide"))
