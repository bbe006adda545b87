"""The notebooks run from top to bottom on the default model, and what is committed of them is small and readable.

Not here: the magics (`tests/notebook/`), the image in which Binder runs them (`test_binder.py`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MAX_BYTES = 150_000  # of each
PEAK = 1.6e9  # bytes of the kernel, as on Binder
# The home of somebody, a temporary folder, an environment, a drive: what differs on another machine.
_PATHS = re.compile(r"/(?:home|root|Users|tmp|var|opt|usr|work|mnt|srv)/|site-packages|[A-Z]:\\\\")

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks_and_they_are_small() -> None:
    assert NOTEBOOKS
    sizes = {path.name: path.stat().st_size for path in NOTEBOOKS}
    assert max(sizes.values()) < MAX_BYTES, sizes


@each
def test_the_committed_file_is_valid_and_says_nothing_of_a_machine(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert "widgets" not in notebook.metadata
    assert notebook.metadata.kernelspec.name == "python3"
    text = path.read_text(encoding="utf-8")
    assert not (found := _PATHS.search(text)), text[max(found.start() - 80, 0) : found.end() + 80]
    assert text == nbformat.writes(notebook) + "\n", "written as nbformat writes it, so that a diff shows changes only"


@each
def test_outputs_are_committed_and_none_is_an_error(path: Path) -> None:
    cells = code_cells(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run once, from the top"
    kinds = [output.output_type for cell in cells for output in cell.outputs]
    assert "error" not in kinds
    assert sum(bool(cell.outputs) for cell in cells) > len(cells) / 2
    for output in (output for cell in cells for output in cell.outputs if "data" in output):
        assert "text/plain" in output.data, "also where HTML is not shown"
        assert "application/vnd.jupyter.widget-view+json" not in output.data, "nothing that only a live kernel draws"


@each
def test_exact_percentages_of_the_text_are_those_of_the_outputs(path: Path) -> None:
    notebook = read(path)
    said = "\n".join(json.dumps(output) for cell in code_cells(notebook) for output in cell.outputs)
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    wrong = [percent for text in texts for percent in re.findall(r"[0-9]+\.[0-9]+%", text) if percent not in said]
    assert not wrong


@each
def test_it_can_be_read_as_a_page(path: Path) -> None:
    page, _ = HTMLExporter().from_notebook_node(read(path))
    for cell in read(path).cells:
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            assert cell.source.splitlines()[0].removeprefix("# ") in page
    assert "nbsglang" in page


@pytest.mark.smollm2
@each
def test_it_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a fresh kernel with one thread, as on Binder: no cell fails, and memory stays within bounds."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = read(path)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    asked = "import json\nprint(json.dumps(open('/proc/self/status').read()))"
    if Path("/proc/self/status").exists():
        notebook.cells.append(nbformat.v4.new_code_cell(asked))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    said = [o.text for cell in code_cells(notebook) for o in cell.outputs if o.get("name") == "stderr"]
    assert not said, "a magic that complains, a warning"
    if notebook.cells[-1].source == asked:
        status = json.loads(notebook.cells[-1].outputs[0].text)
        peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024
        assert peak <= PEAK, f"{peak / 1e9:.2f} GB at the peak"
