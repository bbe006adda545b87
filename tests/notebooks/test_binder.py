"""The image for Binder: its files are what repo2docker reads, agree with the rest of the repository, and do their work.

Not here: the memory of a session (`test_memory.py`), the notebooks (`test_notebooks.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
BINDER = ROOT / "binder"
SCRIPTS = ("postBuild", "start")


def lines(path: Path) -> list[str]:
    """The lines of a file without comments and empty ones."""
    bare = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in bare if line]


def pins() -> dict[str, Requirement]:
    found = map(Requirement, lines(ROOT / "constraints.txt"))
    return {canonicalize_name(pin.name): pin for pin in found}


def wanted() -> dict[str, Requirement]:
    found = [Requirement(line) for line in lines(BINDER / "requirements.txt") if not line.startswith("-")]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_options_of_requirements_are_written_as_repo2docker_reads_them() -> None:
    """It copies the whole repository first only where it sees that a local file is meant, and splits options at `=`."""
    options = [line for line in lines(BINDER / "requirements.txt") if line.startswith("-")]
    assert all(re.fullmatch(r"--[a-z-]+=\S+", option) for option in options), options
    constraint = dict(option.split("=", 1) for option in options)["--constraint"]
    assert (BINDER / constraint).resolve() == ROOT / "constraints.txt"


def test_what_is_installed_is_what_nbsglang_needs_and_is_pinned() -> None:
    needed = {canonicalize_name(Requirement(line).name) for line in project()["dependencies"]}
    assert needed <= wanted().keys(), "postBuild installs nbsglang without its dependencies"
    assert wanted().keys() <= pins().keys(), "constraints.txt pins every package"
    assert not [name for name in wanted() if name.startswith(("flashinfer", "nvidia", "triton"))]


def test_versions_that_are_named_are_those_of_the_constraints() -> None:
    for name, requirement in wanted().items():
        if requirement.specifier:
            (specifier,) = requirement.specifier
            public = specifier.version.partition("+")[0]
            assert f"{specifier.operator}{public}" == str(pins()[name].specifier), name
    assert str(wanted()["torch"].specifier).endswith("+cpu"), "never the CUDA build"


def test_the_python_and_the_system_packages() -> None:
    (runtime,) = lines(BINDER / "runtime.txt")
    major, minor = re.fullmatch(r"python-(\d+)\.(\d+)", runtime).groups()
    assert (int(major), int(minor)) >= (3, 11), project()["requires-python"]
    assert set(lines(BINDER / "apt.txt")) <= set(lines(ROOT / "apt.txt")), "CI tries what Binder installs"


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_can_be_run(name: str) -> None:
    script = BINDER / name
    assert os.access(script, os.X_OK), f"chmod +x binder/{name}"
    assert script.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_start_sets_one_thread_and_passes_the_command_on() -> None:
    command = ["bash", "-c", 'echo "$OMP_NUM_THREADS|$1"', "x", "two words"]
    done = subprocess.run([str(BINDER / "start"), *command], capture_output=True, text=True, check=True)
    assert done.stdout == "1|two words\n"


@pytest.mark.smollm2
def test_post_build_leaves_a_model_that_loads(tmp_path: Path) -> None:
    """All of postBuild but pip's part, which is in the environment of the tests already."""
    folder, home = tmp_path / "bin", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    python = folder / "python"
    python.write_text(
        f'#!/usr/bin/env bash\nif [ "$1 $2" = "-m pip" ]; then echo "pip: $*"; else exec "{sys.executable}" "$@"; fi\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    from nbsglang.engine.store import cache_folder

    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "NBSGLANG_CACHE": str(cache_folder()),  # so that the model is not converted again
    }
    # Not in the repository: it removes what pip leaves there.
    done = subprocess.run(
        [str(BINDER / "postBuild")], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "pip: -m pip install --no-cache-dir --no-deps .\n" in done.stdout
    assert "Paris" in done.stdout
