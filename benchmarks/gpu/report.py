"""The table that is printed, the facts beside the figures, and a small picture of the goals.

Not here: measuring.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from benchmarks.gpu.goals import GOALS, MACHINE, PEERS
from benchmarks.report import environment as machine_facts

_PACKAGES = ("triton", "flashinfer-python", "vllm", "sglang", "transformers")
_BAR, _ROW, _LEFT = 420, 22, 130


def environment(engine: str, device: str, commit: str = "", module: str = "benchmarks.gpu") -> dict[str, Any]:
    """Engine, versions, commit, machine and command; `commit` where the tree that runs has no repository."""
    facts = machine_facts()
    facts["engine"] = engine
    facts["command"] = shlex.join(["python", "-m", module, *sys.argv[1:]])
    if commit:
        facts["commit"] = commit
    facts["versions"]["torch"] = torch.__version__
    for package in _PACKAGES:
        try:
            facts["versions"][package] = version(package)
        except PackageNotFoundError:
            continue
    if device.startswith("cuda"):
        facts["machine"]["gpu"] = torch.cuda.get_device_name(device)
        facts["machine"]["gpus"] = torch.cuda.device_count()
    return facts


def table(workloads: Mapping[str, Mapping[str, Any]], comparable: bool = True) -> str:
    """Seconds beside the best peer, the floor and the goal, and the hit rate beside its optimum.

    Seconds of other sizes, other models or other machines than the peers' are not `comparable`.
    """
    lines = [
        f"{'':18}{'seconds':>9}{'best peer':>11}{'x faster':>10}{'floor':>8}{'of it':>8}{'goal':>7}{'met':>5}"
        f"{'out/s':>10}{'hit rate':>10}{'optimum':>9}{'ttft':>8}"
    ]
    for name, result in workloads.items():
        goal, seconds = GOALS[name], result["seconds"]
        beside = f"{goal.best_peer:>11.2f}{'':>10}{goal.floor:>8.2f}{'':>8}{goal.goal:>7.2f}{'':>5}"
        if comparable:
            met = "yes" if seconds <= goal.goal else "no"
            beside = (
                f"{goal.best_peer:>11.2f}{goal.best_peer / seconds:>9.2f}x{goal.floor:>8.2f}"
                f"{goal.floor / seconds:>8.0%}{goal.goal:>7.2f}{met:>5}"
            )
        rate = f"{result['hit_rate']:>10.2%}" if "hit_rate" in result else f"{'-':>10}"
        first = f"{result['ttft']:>8.3f}" if "ttft" in result else f"{'-':>8}"
        lines.append(f"{name:18}{seconds:>9.3f}{beside}{result['out_s']:>10.0f}{rate}{result['optimum']:>9.2%}{first}")
    lines.append(f"best peer: {' or '.join(PEERS.values())} on {MACHINE}; of it: the floor's share of our time")
    return "\n".join(lines)


def picture(workloads: Mapping[str, Mapping[str, Any]]) -> str:
    """SVG: our time as a bar for each workload, the best peer's as the full width, marks at the floor and the goal."""
    rows = []
    for n, (name, result) in enumerate(workloads.items()):
        goal, y = GOALS[name], 30 + n * _ROW
        widths = [_BAR * seconds / goal.best_peer for seconds in (result["seconds"], goal.floor, goal.goal)]
        colour = "#009e73" if result["seconds"] <= goal.goal else "#56b4e9"
        shown = min(widths[0], _BAR * 1.4)
        rows.append(
            f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{name}</text>'
            f'<rect x="{_LEFT}" y="{y}" width="{_BAR}" height="14" fill="#ddd"/>'
            f'<rect x="{_LEFT}" y="{y + 2}" width="{shown:.1f}" height="10" fill="{colour}"/>'
            + "".join(
                f'<rect x="{_LEFT + width - 1:.1f}" y="{y}" width="2" height="14" fill="{fill}"/>'
                for width, fill in ((widths[1], "#000"), (widths[2], "#d55e00"))
            )
            + f'<text x="{_LEFT + max(shown, _BAR) + 6:.1f}" y="{y + 11}">{result["seconds"]:.2f} s</text>'
        )
    height = 40 + len(rows) * _ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + int(_BAR * 1.4) + 90}" height="{height}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{_LEFT}" y="18">seconds; grey: the best peer, orange: the goal, black: the physical floor</text>'
        + "".join(rows)
        + "</svg>\n"
    )
