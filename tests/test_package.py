"""The package as a whole: which part may import which, how fast it is imported and what that leaves out."""

from __future__ import annotations

import ast
import importlib
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

import nbsglang
from nbsglang import current

ROOT = Path(nbsglang.__file__).parent
BASE = {"errors", "events", "calls", "current"}
FLOOR_1 = {"kernels", "grammar", "lang", "backends", "viz"}
FLOOR_4 = {"magics", "notebook", "serve", "integrations"}

# Part -> the parts of nbsglang that it may import, besides itself. "root" is nbsglang/__init__.py.
MAY_IMPORT: dict[str, set[str]] = {
    "root": set(),
    **dict.fromkeys(BASE | FLOOR_1, BASE),
    "engine": BASE | {"kernels", "grammar"},
    "session": BASE | {"lang", "backends"},
    **{part: BASE | FLOOR_1 | FLOOR_4 | {"engine", "session", "root"} for part in FLOOR_4},
}
# Part -> packages from outside, besides the standard library.
MAY_USE: dict[str, set[str]] = {
    "kernels": {"torch", "numpy", "triton", "flashinfer"},
    "grammar": {"numpy", "llguidance"},
    "lang": {"greenlet", "pydantic"},
    "backends": {"httpx", "openai", "anthropic", "litellm"},
    "viz": {"anywidget", "traitlets", "graphviz", "rich"},
    # transformers' own companions come with it: tokenizers, huggingface_hub, filelock (downloads and locks);
    # psutil asks for free memory.
    "engine": {"torch", "transformers", "numpy", "regex", "tokenizers", "huggingface_hub", "filelock", "psutil"},
    # psutil asks for free memory.
    **{
        part: {
            *("IPython", "ipykernel", "ipywidgets", "anywidget", "traitlets", "rich", "psutil"),
            *("starlette", "uvicorn", "dspy"),
        }
        for part in FLOOR_4
    },
}
# (module, part that it imports inside a function only) -> why.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("nbsglang.session", "engine"): "a run that names a model builds an engine; one that does not never loads torch",
    ("nbsglang", "magics"): "IPython asks the package for its extension; who does not load it never loads IPython",
}


class Edge(NamedTuple):
    """`module` imports `target`, at a line, inside a function or not."""

    module: str
    target: str
    line: int
    in_function: bool


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _part(module: str) -> str:
    names = module.split(".")[1:]
    if not names:
        return "root"
    return "grammar" if names[:2] == ["engine", "grammar"] else names[0]


def _edges(module: str, source: str, is_package: bool = False) -> Iterator[Edge]:
    def walk(node: ast.AST, in_function: bool) -> Iterator[Edge]:
        for child in ast.iter_child_nodes(node):
            for target in _targets(child, module, is_package):
                yield Edge(module, target, child.lineno, in_function)
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, in_function or is_function)

    yield from walk(ast.parse(source), False)


def _targets(node: ast.AST, module: str, is_package: bool) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = module.split(".")[: len(module.split(".")) - node.level + is_package]
            base = ".".join([*above, *([base] if base else [])])
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in {"import_module", "__import__"}:
            return [str(node.args[0].value)]
    return []


def _is_wrong(edge: Edge) -> bool:
    package = edge.target.partition(".")[0]
    part = _part(edge.module)
    if package != "nbsglang":
        return package not in sys.stdlib_module_names and package not in MAY_USE.get(part, set())
    known = edge.target
    while known not in MODULES and "." in known:  # a name out of a module
        known = known.rpartition(".")[0]
    other = _part(known)
    if other == part or other in MAY_IMPORT.get(part, set()):
        return False
    return not (edge.in_function and (edge.module, other) in EXCEPTIONS)


def test_every_import_goes_down() -> None:
    unknown = {_part(module) for module in MODULES} - MAY_IMPORT.keys()
    assert not unknown, f"give these parts a floor: {unknown}"
    wrong = [
        f"{edge.module}:{edge.line} imports {edge.target}"
        for module, path in MODULES.items()
        for edge in _edges(module, path.read_text(encoding="utf-8"), path.name == "__init__.py")
        if _is_wrong(edge)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "source", "n_wrong"),
    [
        ("nbsglang.lang.x", "import torch", 1),
        ("nbsglang.lang.x", "def f():\n    from nbsglang.engine.radix import RadixTree", 1),
        ("nbsglang.lang.x", "from nbsglang import errors, calls\nfrom . import y\nimport greenlet, json", 0),
        ("nbsglang.lang.x", "from ..engine import radix", 1),
        ("nbsglang.engine.grammar.x", "from nbsglang.engine.radix import RadixTree", 1),
        ("nbsglang.engine.x", "from nbsglang.engine.grammar import matcher\nimport torch.nn as nn", 0),
        ("nbsglang.engine.x", "async def f():\n    import IPython.display", 1),
        ("nbsglang.engine.x", "from nbsglang import Engine", 1),
        ("nbsglang.session", "from nbsglang.engine.engine import Engine", 1),
        ("nbsglang.session", "def f():\n    from nbsglang.engine.engine import Engine", 0),
        ("nbsglang.viz.x", "importlib.import_module('torch')", 1),
        ("nbsglang.errors", "from nbsglang.lang import ops", 1),
    ],
)
def test_the_floors_test_sees(module: str, source: str, n_wrong: int) -> None:
    assert sum(map(_is_wrong, _edges(module, source))) == n_wrong


# ---------------------------------------------------------------------------------- what imports leave out


def _python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_LOADED = """
import importlib, sys
names, unwanted = (argument.split(",") for argument in sys.argv[1:])
for name in names:
    try:
        importlib.import_module(name)
    except ImportError as error:  # an optional package that is not installed
        if (error.name or "nbsglang").partition(".")[0] in {"nbsglang", *unwanted}:
            raise
print(*(name for name in unwanted if name in sys.modules))
"""


def _of_parts(*parts: str) -> list[str]:
    return [module for module in MODULES if _part(module) in parts]


_PLAIN = [f"nbsglang.engine.{name}" for name in ("radix", "slots", "request", "scheduler", "stops", "store")]


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        pytest.param(["nbsglang"], "torch,transformers,IPython,numpy,rich,pydantic", id="nbsglang"),
        pytest.param(
            _of_parts(*BASE, "session", "lang", "backends"), "torch,transformers,IPython", id="language and backends"
        ),
        pytest.param(_of_parts("viz"), "torch,transformers", id="viz"),
        pytest.param(_of_parts("grammar"), "torch,transformers", id="grammar"),
        pytest.param(_of_parts("magics", "notebook"), "torch,transformers,ipykernel", id="magics and notebook"),
        pytest.param(_PLAIN, "torch,transformers", id="radix and scheduler"),
        pytest.param(_of_parts("engine", "kernels"), "IPython,ipywidgets,anywidget", id="engine"),
    ],
)
def test_imports_leave_out(modules: list[str], unwanted: str) -> None:
    present = [module for module in modules if module in MODULES]
    if not present:
        pytest.skip("not written yet")
    assert _python(_LOADED, ",".join(present), unwanted).split() == []


def test_importing_nbsglang_is_quick() -> None:
    code = "import time\nbegin = time.perf_counter()\nimport nbsglang\nprint(time.perf_counter() - begin)"
    assert statistics.median(float(_python(code)) for _ in range(5)) < 0.3


# ---------------------------------------------------------------------------------------------- the names


def test_exported_names_resolve() -> None:
    for name in dir(nbsglang):
        assert getattr(nbsglang, name) is not None, name
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = nbsglang.nothing_like_it


@pytest.mark.parametrize("module", MODULES)
def test_modules_import_and_say_what_they_are(module: str) -> None:
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        if (error.name or "nbsglang").startswith("nbsglang"):
            raise
        pytest.skip(f"{error.name} is not installed")
    is_stub = not MODULES[module].read_text(encoding="utf-8").strip()
    assert is_stub or (loaded.__doc__ or "").strip()
    for name in getattr(loaded, "__all__", ()):
        assert hasattr(loaded, name), f"{module}.{name}"


# ------------------------------------------------------------------------------------------------ the extras


def test_extras_can_stand_beside_the_rest() -> None:
    """No package that an extra names, and that is installed here, wants another version of one that is here as well."""
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {Requirement(line).name for lines in project["optional-dependencies"].values() for line in lines}
    wrong = [
        f"{name} wants {wanted}, and {version} is here"
        for name in sorted(named)
        for wanted in map(Requirement, _requires(name))
        if (wanted.marker is None or wanted.marker.evaluate({"extra": ""}))
        and (version := _version(wanted.name)) is not None
        and not wanted.specifier.contains(version, prereleases=True)
    ]
    assert not wrong, "\n".join(wrong)


def _requires(name: str) -> list[str]:
    return (metadata.requires(name) or []) if _version(name) else []


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def test_python_switches_threads_often_only_while_a_device_waits() -> None:
    """Nested, as with two engines; what a user sets in between stays."""
    before = sys.getswitchinterval()
    try:
        current.hurry()
        current.hurry()
        assert sys.getswitchinterval() == pytest.approx(0.0005)
        current.relax()
        assert sys.getswitchinterval() == pytest.approx(0.0005)
        current.relax()
        assert sys.getswitchinterval() == pytest.approx(before)
        current.hurry()
        sys.setswitchinterval(0.02)
        current.relax()
        assert sys.getswitchinterval() == pytest.approx(0.02)
    finally:
        sys.setswitchinterval(before)
