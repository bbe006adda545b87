"""Cells in a real kernel: interrupts in the middle of things, where prints arrive, two kernels side by side."""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

_TIMEOUT_S = 120
_SETUP = """
%load_ext nbsglang
%config SglMagics.show = 'none'
import asyncio, time
import nbsglang as sgl
slow = sgl.MockBackend("late", delay=60)
quick = sgl.MockBackend({"a": "one"})
sgl.set_default_backend(quick)
@sgl.function
def program(s):
    s += "x" + sgl.gen("a")
"""


class Kernel:
    """A kernel of its own process, and its client."""

    def __init__(self, folder: Path) -> None:
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(env={**os.environ, "IPYTHONDIR": str(folder)}, cwd=str(folder))
        self._client: Any = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=_TIMEOUT_S)
        self.good(_SETUP)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def begin(self, code: str) -> str:
        return str(self._client.execute(code))

    def wait_for(self, message: str, text: str) -> None:
        """Until the cell has printed this."""
        seen = ""
        while text not in seen:
            found = self._client.get_iopub_msg(timeout=_TIMEOUT_S)
            assert found["msg_type"] != "error", found["content"]
            if found["parent_header"].get("msg_id") == message:
                seen += found["content"].get("text", "")

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def reply(self, message: str) -> dict[str, Any]:
        while True:
            found = self._client.get_shell_msg(timeout=_TIMEOUT_S)
            if found["parent_header"].get("msg_id") == message:
                return dict(found["content"])

    def outputs(self, message: str) -> list[dict[str, Any]]:
        """The rest of what the kernel says, until this cell is idle."""
        found: list[dict[str, Any]] = []
        while True:
            at = self._client.get_iopub_msg(timeout=_TIMEOUT_S)
            mine = at["parent_header"].get("msg_id") == message
            if mine and at["msg_type"] == "status" and at["content"]["execution_state"] == "idle":
                return found
            if at["msg_type"] in {"stream", "error", "execute_result", "display_data", "update_display_data"}:
                found.append({**at["content"], "type": at["msg_type"], "mine": mine})

    def completions(self, code: str) -> list[str]:
        message = self._client.complete(code, len(code))
        return list(self.reply(message)["matches"])

    def run(self, code: str) -> tuple[dict[str, Any], str]:
        """The reply, and what was printed and shown as text."""
        message = self.begin(code)
        reply, outputs = self.reply(message), self.outputs(message)
        assert all(out["mine"] for out in outputs), outputs
        texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in outputs]
        return reply, "".join(texts)

    def good(self, code: str) -> str:
        reply, text = self.run(code)
        assert reply["status"] == "ok", "\n".join(reply.get("traceback", []))
        return text


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    yield kernel
    kernel.close()


def _interrupted(kernel: Kernel, code: str, after_s: float) -> tuple[float, str]:
    """Seconds from the interrupt to the cell's end, and what it showed; it fails, and the next cell works."""
    message = kernel.begin(code)
    kernel.wait_for(message, "ready")
    time.sleep(after_s)
    began = time.monotonic()
    kernel.interrupt()
    reply = kernel.reply(message)
    seconds = time.monotonic() - began
    outputs = kernel.outputs(message)
    assert reply["status"] == "error"
    assert reply["ename"] in {"KeyboardInterrupt", "CancelledError"}, reply
    assert "run_cell_magic" not in "\n".join(reply["traceback"])
    assert kernel.good("%%sgl r\n'x'\na = gen()\nprint(a)") == "one\n"
    return seconds, "".join(out.get("text", "") for out in outputs)


def _check_times(times: list[float]) -> None:
    assert statistics.median(times) < 0.5, times
    assert max(times) < 1.5, times


@pytest.mark.parametrize(
    ("code", "note"),
    [
        pytest.param(
            "%%sgl --backend slow\nfor k in fork(3):\n    'x'\n    v = gen()\nprint('ready', flush=True)\nv[0].strip()",
            "3 calls cancelled",
            id="reading",
        ),
        pytest.param(
            "%%sgl --backend slow --show streams,numbers\nfor k in fork(3):\n    'x'\n    v = gen()\n"
            "print('ready', flush=True)\nv[0].strip()",
            "3 calls cancelled",
            id="while it is shown",
        ),
        pytest.param(
            "%%sgl --backend slow\n'shared'\nfor k in fork(3):\n    v = gen()\nprint('ready', flush=True)",
            "3 calls cancelled",
            id="at the end of the cell",
        ),
        pytest.param(
            "%%sgl --backend slow\nfor k in fork(2):\n    v = gen()\n    print('ready', flush=True)\n    time.sleep(9)",
            "cancelled",
            id="in a branch's own Python",
        ),
        pytest.param(
            "%%sgl --backend slow\nprint('ready', flush=True)\nfor k in fork(2):\n    while True:\n        try:\n"
            "            v = gen()\n            v.strip()\n        except Exception:\n            pass",
            "cancelled",
            id="in branches that swallow exceptions",
        ),
        pytest.param("print('ready', flush=True)\nawait program.arun(backend=slow)", "", id="in a cell that awaits"),
    ],
)
def test_an_interrupt_is_quick(kernel: Kernel, code: str, note: str) -> None:
    times = []
    for _ in range(5):
        seconds, shown = _interrupted(kernel, code, 0.1)
        times.append(seconds)
        assert note in shown
    _check_times(times)
    assert kernel.good("print(len(slow._pending))") == "0\n", "every call was cancelled"
    threads = "print([t.name for t in threading.enumerate() if t.name.startswith('nbsglang-driver')])"
    assert kernel.good(f"import threading\ntime.sleep(0.1)\n{threads}") == "[]\n"


_ENGINE = """
import threading
%sgl load smollm2 --kv-tokens 4000 --chunk-tokens 16
engine = sgl.current.default_backend()
sgl.set_default_backend(quick)
def tell_when_busy():
    begun = engine.stats()["steps"]
    def look():
        while engine.stats()["steps"] < begun + 3:
            time.sleep(0.02)
        print("ready", flush=True)
    threading.Thread(target=look).start()
"""


@pytest.mark.smollm2
@pytest.mark.parametrize(
    ("body", "prefix"),
    [
        pytest.param(
            "'Once upon a time'\na = gen(max_tokens=900, ignore_eos=True)", "'Once upon a time'", id="in a gen"
        ),
        pytest.param("'a few words ' * 900\na = gen(max_tokens=5)", "'a few words ' * 8", id="in a prefill"),
    ],
)
def test_an_interrupt_of_the_engine_is_quick_and_keeps_the_cache(kernel: Kernel, body: str, prefix: str) -> None:
    assert "smollm2 is loaded" in kernel.good("import nbsglang.current" + _ENGINE)
    times = []
    for _ in range(5):
        cell = f"%%sgl --backend smollm2 -t 0\ntell_when_busy()\n{body}\nprint(a)"
        seconds, shown = _interrupted(kernel, cell, 0.1)
        times.append(seconds)
        assert "interrupted: 1 call cancelled; the cache is kept" in shown
    _check_times(times)
    kernel.good(f"%%sgl after --backend smollm2\n{prefix}\na = gen(max_tokens=1)")
    assert float(kernel.good("print(after.stats['hit_rate'])")) > 0.5


def test_a_failing_cell_is_marked(kernel: Kernel) -> None:
    reply, _ = kernel.run("%%sgl\n'x'\na = gen()\n1/0")
    assert (reply["status"], reply["ename"]) == ("error", "ZeroDivisionError")
    shown = "\n".join(reply["traceback"])
    assert "4" in shown
    assert "run_cell_magic" not in shown
    assert "ipykernel_" not in shown
    reply, _ = kernel.run("%%sgl\n'x'\na = b = gen()")
    assert (reply["status"], reply["ename"]) == ("error", "CellError")
    reply, _ = kernel.run("%%sgl --sed 1\n'x'")
    assert (reply["status"], reply["ename"]) == ("error", "UsageError")


def test_an_error_shows_the_lines_that_failed(kernel: Kernel) -> None:
    kernel.good("%colors nocolor")
    body = "\n'x'\nfor k in fork(2):\n    if k:\n        c = 1 // 0\n    a = gen('a')"
    reply, _ = kernel.run("%%sgl" + body)
    shown = "\n".join(reply["traceback"])
    assert re.search(r"-> 5 +c = 1 // 0", shown), shown
    assert "----> 3 for k in fork(2):" in shown, shown
    assert "run_cell_magic" not in shown


def test_the_front_end_gets_completions(kernel: Kernel) -> None:
    assert kernel.completions("%%sgl --see") == ["--seed"]
    assert "load" in kernel.completions("%sgl ")
    assert "max_tokens=" in kernel.completions("%%sgl\na = gen(max_")


def test_prints_of_branches_arrive_in_their_cell(kernel: Kernel) -> None:
    first = kernel.begin("%%sgl r\nfor k in fork(20):\n    f'{k}'\n    v = gen('a')\n    print('first', k, v)")
    second = kernel.begin("%%sgl r\nfor k in fork(20):\n    f'{k}'\n    v = gen('a')\n    print('second', k, v)")
    for message, word in ((first, "first"), (second, "second")):
        kernel.reply(message)
        outputs = kernel.outputs(message)
        assert all(out["mine"] for out in outputs)
        lines = "".join(out["text"] for out in outputs).splitlines()
        assert sorted(lines) == sorted(f"{word} {k} one" for k in range(20))


def test_two_kernels_at_once(kernel: Kernel, tmp_path: Path) -> None:
    other = Kernel(tmp_path)
    try:
        cell = "%%sgl r\nfor k in fork(50):\n    f'{k}'\n    v = gen('a')\nprint(len(v))"
        messages = [(at, at.begin(cell)) for at in (kernel, other)]
        for at, message in messages:
            assert at.reply(message)["status"] == "ok"
            assert "".join(out.get("text", "") for out in at.outputs(message)) == "50\n"
    finally:
        other.close()
