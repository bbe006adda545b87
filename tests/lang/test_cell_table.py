"""The table of the cell form, on this Python and on the others that are installed here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lang.cell_table import Case, cases

ROOT = Path(__file__).parents[2]
OTHERS = ("3.12", "3.13")


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{type(case).__name__.lower()} {case.name}")
def test_the_table(case: Case) -> None:
    case.check()


def _interpreter(version: str) -> str | None:
    """A Python of this version, on the path or where pyenv puts it."""
    found = shutil.which(f"python{version}")
    if found is not None and "shims" not in found:
        return found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
    return str(places[-1]) if places else None


@pytest.mark.parametrize("version", [version for version in OTHERS if not sys.version.startswith(version)])
def test_the_table_on_another_python(version: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    packages = tmp_path_factory.mktemp(f"python{version}")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(packages)]
    done = subprocess.run([*install, "greenlet"], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        pytest.skip(f"greenlet cannot be installed for Python {version}: {done.stderr.strip().splitlines()[-1:]}")
    space = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    table = subprocess.run(
        [python, "-m", "tests.lang.cell_table"], cwd=ROOT, env=space, capture_output=True, text=True, check=False
    )
    assert table.returncode == 0, table.stdout + table.stderr
    assert f"Python {version}" in table.stdout
