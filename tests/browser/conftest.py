"""One server and one browser for all tests of this folder, and one line that says what was not tried without them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.pages import Pages
from tests.browser.server import jupyter
from tests.viz.front import browser, built_folder, node_program


@pytest.fixture(scope="package")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """Chromium on a Jupyter server. Skips where one of them is missing; where CI is set, that fails."""
    node_program()
    browser()
    built_folder()
    folder = tmp_path_factory.mktemp("jupyter")
    pictures = Path(os.environ.get("NBSGLANG_PICTURES") or folder / "pictures")
    pictures.mkdir(parents=True, exist_ok=True)
    with jupyter(folder) as server:
        opened = Pages(server, pictures)
        try:
            yield opened
        finally:
            opened.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was not tried, and why."""
    skipped = [one for one in terminalreporter.getreports("skipped") if "browser" in one.keywords]
    if skipped:
        why = {one.longrepr[2].removeprefix("Skipped: ") for one in skipped if isinstance(one.longrepr, tuple)}
        terminalreporter.write_line(f"not tried in a browser: {len(skipped)} tests ({'; '.join(sorted(why))})")
