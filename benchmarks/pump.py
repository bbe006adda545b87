"""What live views cost a run: processor time of the thread that feeds them, and how much is sent.

    python -m benchmarks.pump [--branches 32] [--tokens 96] [--out benchmarks/results/pump.json]

A kernel of its own runs a cell on the default model, and this process is its front end: it says that it makes the
widgets, and counts what it is sent. Three modes take turns: nothing shown, HTML four times a second, live views. The
share is `time.thread_time` of the thread by the wall time of the same run.

Not here: how fast the engine is (`cpu.py`), the views in a browser (`web/dev`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import KernelManager

from benchmarks.report import environment

_SETUP = """
%load_ext nbsglang
%sgl load smollm2 --kv-tokens 20000
import json, os, time
from nbsglang.notebook.desk import desk_of
desk = desk_of(get_ipython())
"""
_CELL = """%%sgl r -t 0 --cache fresh --show {show}
{prompt!r}
for k in fork({branches}):
    f"Question {{k}}: "
    v = gen(max_tokens={tokens}, ignore_eos=True)
"""
_BEFORE = "desk.begun = (time.monotonic(), desk.pump.cpu_s, time.process_time())"
_AFTER = """
print(json.dumps([b - a for a, b in zip(desk.begun, (time.monotonic(), desk.pump.cpu_s, time.process_time()))]))
"""
_PROMPT = "The sea covers more than two thirds of the planet, and most of it has never been seen. " * 8
_MODES = {"off": "none", "html": "streams,tree,numbers", "live": "streams,tree,numbers"}


class FrontEnd:
    """Runs cells in a kernel and counts the messages that make up their outputs."""

    def __init__(self, folder: Path, *, widgets: bool) -> None:
        environ = {**os.environ, "IPYTHONDIR": str(folder), "NBSGLANG_WIDGETS": "1" if widgets else "0"}
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(env=environ)
        self._client: Any = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=120)
        self._answers = widgets
        self._client.control_channel.send(self._client.session.msg("create_subshell_request", {}))
        self._subshell = self._client.get_control_msg(timeout=60)["content"].get("subshell_id")
        self.sent: list[tuple[float, int]] = []  # when a message came, and its bytes

    def close(self) -> None:
        """End the kernel."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def run(self, code: str) -> str:
        """Run a cell; returns what it printed. Raises RuntimeError when it fails."""
        cell, printed = self._client.execute(code), ""
        while True:
            try:
                message = self._client.get_iopub_msg(timeout=600)
            except Empty:
                raise RuntimeError("the kernel says nothing") from None
            kind, content = message["msg_type"], message["content"]
            if kind == "comm_open" and self._answers:
                self._greet(content)
            if kind in {"comm_msg", "comm_open", "display_data", "update_display_data"}:
                n_bytes = len(json.dumps(content)) + sum(len(buffer) for buffer in message["buffers"])
                self.sent.append((time.monotonic(), n_bytes))
            if message["parent_header"].get("msg_id") == cell:
                if kind == "error":
                    raise RuntimeError("\n".join(content["traceback"]))
                printed += content.get("text", "")
                if kind == "status" and content["execution_state"] == "idle":
                    return printed

    def _greet(self, content: dict[str, Any]) -> None:
        kind = content["data"]["state"].get("_anywidget_id", "").rpartition(".")[2]
        said = {"RunView": "hello", "Session": "resync"}.get(kind)
        if said:
            data = {"method": "custom", "content": {"do": said}}
            message = self._client.session.msg("comm_msg", {"comm_id": content["comm_id"], "data": data})
            if self._subshell:
                message["header"]["subshell_id"] = self._subshell
            self._client.shell_channel.send(message)


def play(front_end: FrontEnd, show: str, branches: int, tokens: int) -> dict[str, Any]:
    """One run, and what it cost."""
    cell = _CELL.format(show=show, prompt=_PROMPT, branches=branches, tokens=tokens)
    front_end.run(_BEFORE)
    front_end.sent.clear()
    front_end.run(cell)
    wall_s, pump_s, process_s = json.loads(front_end.run(_AFTER))
    windows = [[n for at, n in front_end.sent if begin <= at < begin + 1] for begin, _ in front_end.sent]
    return {
        "seconds": wall_s,
        "tokens_per_s": branches * tokens / wall_s,
        "pump_cpu_share": pump_s / wall_s,
        "process_cpu_s": process_s,
        "messages": len(front_end.sent),
        "bytes": sum(n for _, n in front_end.sent),
        "most_messages_in_a_second": max(map(len, windows), default=0),
        "most_bytes_in_a_second": max(map(sum, windows), default=0),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--branches", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms up")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    runs: dict[str, list[dict[str, Any]]] = {mode: [] for mode in _MODES}
    for mode, show in _MODES.items():
        with tempfile.TemporaryDirectory() as folder:
            front_end = FrontEnd(Path(folder), widgets=mode == "live")
            try:
                front_end.run(_SETUP)
                for _ in range(given.rounds + 1):
                    runs[mode].append(play(front_end, show, given.branches, given.tokens))
            finally:
                front_end.close()
        print(mode, runs[mode][1:], flush=True)
    results = {mode: _median(timed[1:]) for mode, timed in runs.items()}
    if given.out:
        about = {**environment("ipykernel", "anywidget", "ipywidgets"), "command": "python -m benchmarks.pump"}
        about |= {"branches": given.branches, "tokens": given.tokens}
        given.out.write_text(json.dumps(about | {"modes": results}, indent=1) + "\n")


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run whose time is the median, and the share of each."""
    middle = sorted(runs, key=lambda run: run["seconds"])[(len(runs) - 1) // 2]
    shares = [round(run["pump_cpu_share"], 4) for run in runs]
    rounded = {name: round(value, 4) for name, value in middle.items()}
    return rounded | {"pump_cpu_shares": shares, "median_share": statistics.median(shares)}


if __name__ == "__main__":
    main()
