"""The front end: its own tests pass, the committed bundle is what its sources give, and it is quick on large logs.

Not here: what these tests are (`web/test`), widgets in a kernel (`tests/notebook`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import nbsglang
from tests.viz.front import WEB, browser, built_folder, node

STATIC = Path(nbsglang.__file__).parent / "viz" / "static"
BUNDLES = ("widget.js", "view.js", "page.js")
ALL_PAINTED_MS, UPDATE_MS, KEY_MS = 150, 25, 70  # what is wanted; a busy machine may take three times as long


def test_the_tests_of_the_front_end_pass() -> None:
    folder = built_folder()
    files = sorted(str(path.relative_to(folder)) for path in (folder / "test").glob("*.test.js"))
    assert files
    done = node("--test", *files, folder=folder)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_the_bundle_is_what_the_sources_give(tmp_path: Path) -> None:
    done = node("build.mjs", str(tmp_path), folder=built_folder())
    assert done.returncode == 0, done.stderr
    for name in BUNDLES:
        assert (tmp_path / name).read_bytes() == (STATIC / name).read_bytes(), f"{name}: run npm run build in web/"


@pytest.mark.parametrize("name", BUNDLES)
def test_the_bundle_fetches_nothing_and_evaluates_nothing(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8")
    assert not re.findall(r"https?://(?!www\.w3\.org/)[^\"'`\s]*", text)
    assert not re.search(
        r"\beval\(|new Function\b|\bimport\(|\bfetch\(|XMLHttpRequest|innerHTML|sourceMappingURL", text
    )


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    assert all("resolved" not in package for package in lock["packages"].values())
    wanted = json.loads((WEB / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())


@pytest.mark.browser
def test_the_views_in_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBSGLANG_CHROMIUM", browser())
    done = node("--test", "test/browser.mjs", "test/tree_browser.mjs", folder=built_folder())
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.browser
def test_a_large_log_is_drawn_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBSGLANG_CHROMIUM", browser())
    for last in (False, False, True):  # again where the machine was busy with something else
        done = node("dev/bench.mjs", folder=built_folder())
        assert done.returncode == 0, done.stderr
        took = json.loads(done.stdout)
        assert took["n_blank"] == 0, "a view that is in sight was left out of the first paint"
        wanted = {"all_painted_ms": ALL_PAINTED_MS, "update_ms": UPDATE_MS, "key_ms": KEY_MS}
        if all(took[name] < 3 * limit for name, limit in wanted.items()):
            break
        assert not last, took
