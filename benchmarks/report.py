"""The table that is printed, and the facts about machine and versions that go into the JSON.

Not here: measuring.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil
import torch

import nbsglang

CONTESTANTS = {
    "ours": "nbsglang",
    "loop": "(a) loop over model.generate",
    "batch": "(b) batched generate, padded",
    "by_hand": "(c) prefix cache by hand",
    "guidance": "(d) guidance",
}


def environment(*packages: str) -> dict[str, Any]:
    """Engine, versions (of further packages too), commit, machine and command."""
    return {
        "engine": f"nbsglang {nbsglang.__version__}, smollm2, float32, cpu",
        "versions": {
            "python": platform.python_version(),
            **_versions("torch", "transformers", "numpy", "guidance", *packages),
        }
        | {"nbsglang": nbsglang.__version__},
        "commit": _commit(),
        "machine": {
            "cpu": _cpu(),
            "cores": psutil.cpu_count(logical=False),
            "threads_used": torch.get_num_threads(),
            "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
            "capability": torch.backends.cpu.get_cpu_capability(),
        },
        "command": " ".join(["python -m benchmarks.cpu", *sys.argv[1:]]),
    }


def table(workloads: Mapping[str, Mapping[str, Any]]) -> str:
    """Seconds of each contestant and how many times ours that is, and the hit rate beside its optimum."""
    names = [name for name in CONTESTANTS if any(name in result["contestants"] for result in workloads.values())]
    lines = [f"{'':18}" + "".join(f"{name:>18}" for name in names) + f"{'hit rate':>11}{'optimum':>9}"]
    for workload, result in workloads.items():
        times = result["contestants"]
        ours = times["ours"]["seconds"]
        cells = [_cell(times.get(name), ours) for name in names]
        rates = f"{result['hit_rate']:>10.2%}{result['optimum']:>10.2%}"
        lines.append(f"{workload:18}" + "".join(f"{cell:>18}" for cell in cells) + rates)
    lines.append("seconds, and how many times ours; ~ a part was run and its time multiplied")
    lines += [f"{name}: {CONTESTANTS[name]}" for name in names]
    return "\n".join(lines)


def _cell(measured: Mapping[str, Any] | None, ours: float) -> str:
    if measured is None:
        return "-"
    about = "~" if measured["share"] > 1 else ""
    seconds = measured["seconds"]
    return f"{about}{seconds:.2f} ({seconds / ours:.2f}x)"


def _versions(*packages: str) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """The commit of the working tree, with a mark when it has changes; "unknown" outside a repository."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
