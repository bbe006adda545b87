"""The language alone, on the mock backend: 10,000 programs of 3 calls, with bodies that read between them.

Not here: models and engines (`cpu.py`).
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import psutil

import nbsglang as sgl
from nbsglang.events import EventLog
from nbsglang.lang.state import ProgramState


@sgl.function
def three(s: ProgramState, question: str) -> None:
    """Each call's text is read before the next is made."""
    s += f"Q: {question}\n"
    s += sgl.gen("a")
    s += f"then {s['a']}: "
    s += sgl.gen("b")
    s += f"then {s['b']}: "
    s += sgl.gen("c")


def measure(n_programs: int) -> dict[str, float]:
    """Seconds of one batch and growth of resident memory in MB."""
    process = psutil.Process()
    before = process.memory_info().rss
    items = [{"question": str(i)} for i in range(n_programs)]
    start = time.perf_counter()
    states = three.run_batch(items, backend=sgl.MockBackend("text"), log=EventLog())
    seconds = time.perf_counter() - start
    assert all(state["c"] == "text" for state in states)
    return {"programs": n_programs, "seconds": seconds, "grown_mb": (process.memory_info().rss - before) / 1e6}


def main() -> None:
    """Measure in this process, which is to be a fresh one; write JSON with --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--commit", default="", help="the commit that is measured, for the record")
    args = parser.parse_args()
    result = {
        "python": platform.python_version(),
        "nbsglang": sgl.__version__,
        "commit": args.commit,
        "command": "python -m benchmarks.language",
        **measure(args.programs),
    }
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(result)


if __name__ == "__main__":
    main()
