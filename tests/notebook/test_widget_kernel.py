"""Live views in a real kernel, with the test as its front end: messages while a cell blocks, and saved notebooks."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbconvert import HTMLExporter

from nbsglang.viz.wire import Message
from tests.notebook.reader import Reader

_ROOT = str(Path(__file__).parents[2])
_TIMEOUT_S = 60
_SETUP = """
%load_ext nbsglang
import threading
import nbsglang as sgl
slow = sgl.MockBackend("late", delay=60)
quick = sgl.MockBackend({"a": "one"})
sgl.set_default_backend(quick)
"""
_TINY = """
from nbsglang.engine.engine import Engine
from tests.tiny import byte_tokenizer, tiny_model
tiny = Engine(tiny_model(), tokenizer=byte_tokenizer(), kv_tokens=2000)
"""


class FrontEnd:
    """A kernel and what a front end keeps of it: cells with outputs, widgets, the messages of their comms."""

    def __init__(self, folder: Path) -> None:
        self._manager = KernelManager(kernel_name="python3")
        environment = {**os.environ, "IPYTHONDIR": str(folder), "PYTHONPATH": _ROOT}
        self._manager.start_kernel(env=environment, cwd=str(folder))
        self._client: Any = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=120)
        self.states: dict[str, dict[str, Any]] = {}  # of widgets, by model id
        self.heard: dict[str, list[Message]] = {}
        self.outputs: dict[str, list[dict[str, Any]]] = {}  # of cells, by message id
        self.ended: dict[str, dict[str, Any]] = {}  # the replies of cells
        self._displays: dict[str, list[dict[str, Any]]] = {}
        self.subshell = self._new_subshell()

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def begin(self, code: str) -> str:
        return str(self._client.execute(code))

    def run(self, code: str) -> list[dict[str, Any]]:
        """The outputs of a cell, which goes well."""
        cell = self.begin(code)
        self.until(lambda: cell in self.ended)
        assert self.ended[cell]["status"] == "ok", self.ended[cell]
        self.look(0.05)
        return self.outputs.get(cell, [])

    def printed(self, code: str) -> str:
        """What a cell prints, which may come in pieces."""
        return "".join(output.get("text", "") for output in self.run(code))

    def say(self, comm_id: str, **content: Any) -> None:
        """A custom message to a widget, as JupyterLab sends it: on the subshell that it has for comms."""
        session = self._client.session
        message = session.msg("comm_msg", {"comm_id": comm_id, "data": {"method": "custom", "content": content}})
        if self.subshell:
            message["header"]["subshell_id"] = self.subshell
        self._client.shell_channel.send(message)

    def until(self, true: Any, timeout_s: float = _TIMEOUT_S) -> None:
        end = time.monotonic() + timeout_s
        while not true():
            assert time.monotonic() < end
            self.look(0.02)

    def look(self, seconds: float) -> None:
        """Take in what comes for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self._take(self._client.get_iopub_msg(timeout=min(left, 0.02)))
            except Exception as error:
                if type(error).__name__ != "Empty":
                    raise
            while self._client.shell_channel.msg_ready():
                reply = self._client.get_shell_msg(timeout=1)
                if reply["msg_type"] == "execute_reply":
                    self.ended[reply["parent_header"]["msg_id"]] = reply["content"]

    def of(self, kind: str) -> list[str]:
        """The model ids of Session or RunView widgets, the oldest first."""
        return [
            model for model, state in self.states.items() if state.get("_anywidget_id", "").endswith(f"widget.{kind}")
        ]

    def greet(self) -> str:
        """Let the newest view say hello, and its session ask for the state. Returns the session's id."""
        self.say(self.of("RunView")[-1], do="hello")
        self.until(lambda: self.of("Session"))
        session = self.of("Session")[-1]
        self.say(session, do="resync")
        return session

    def read(self, session: str) -> Reader:
        reader = Reader()
        for message in self.heard[session]:
            reader.take(message)
        return reader

    def _new_subshell(self) -> str:
        info = self._client.kernel_info(reply=True, timeout=60)["content"]
        if "kernel subshells" not in info.get("supported_features", []):
            return ""
        self._client.control_channel.send(self._client.session.msg("create_subshell_request", {}))
        return str(self._client.get_control_msg(timeout=60)["content"]["subshell_id"])

    def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "comm_open":
            self.states[content["comm_id"]] = dict(content["data"]["state"])
            self.heard[content["comm_id"]] = []
        elif kind == "comm_close":
            self.states.pop(content["comm_id"], None)
        elif kind == "comm_msg":
            data = content["data"]
            if data["method"] == "update":
                self.states[content["comm_id"]].update(data["state"])
            elif data["method"] == "custom":
                buffers = tuple(bytes(buffer) for buffer in message["buffers"])
                self.heard[content["comm_id"]].append(Message(data["content"], buffers))
        elif kind == "update_display_data":
            for output in self._displays[content["transient"]["display_id"]]:
                output["data"] = content["data"]
        elif kind in {"stream", "error", "display_data", "execute_result"}:
            output = {**content, "output_type": kind}
            display_id = output.pop("transient", {}).get("display_id")
            if display_id:
                self._displays.setdefault(display_id, []).append(output)
            self.outputs.setdefault(message["parent_header"]["msg_id"], []).append(output)


@pytest.fixture(scope="module")
def front_end(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontEnd]:
    front_end = FrontEnd(tmp_path_factory.mktemp("kernel"))
    front_end.run(_SETUP)
    yield front_end
    front_end.close()


def test_cancel_while_the_cell_blocks(front_end: FrontEnd) -> None:
    if not front_end.subshell:
        pytest.skip("this ipykernel has no subshells: nothing reaches Python while a cell blocks")
    times = []
    for _ in range(5):
        known = set(front_end.of("RunView"))
        cell = front_end.begin(
            "%%sgl --backend slow --show streams\nfor k in fork(3):\n    'x'\n    v = gen()\nv[0].strip()"
        )
        front_end.until(lambda known=known: set(front_end.of("RunView")) - known)
        session = front_end.greet()
        source = front_end.states[front_end.of("RunView")[-1]]["source"]
        front_end.until(lambda at=(session, source): any(line[2] == at[1] for line in front_end.read(at[0]).lines))
        front_end.say(session, do="ping", id=3)
        heard = front_end.heard[session]
        front_end.until(lambda heard=heard: any(m.content["kind"] == "pong" for m in heard), 1.5)
        began = time.monotonic()
        front_end.say(session, do="cancel", source=source)
        front_end.until(lambda cell=cell: cell in front_end.ended, 5)
        times.append(time.monotonic() - began)
        reply = front_end.ended[cell]
        assert (reply["status"], reply["ename"]) == ("error", "Cancelled")
        front_end.look(0.2)
        (picture,) = [out for out in front_end.outputs[cell] if out["output_type"] == "display_data"]
        assert "■" in picture["data"]["text/plain"]
    assert statistics.median(times) < 0.5, times
    assert max(times) < 1.5, times


def test_an_engine_is_followed_to_the_end(front_end: FrontEnd) -> None:
    front_end.run(_TINY)
    front_end.run("%%sgl r --backend tiny -t 0\n'a b c'\na = gen(max_tokens=5, ignore_eos=True)")
    session = front_end.greet()
    front_end.until(lambda: any(line[3] == "StreamEnded" for line in front_end.read(session).lines))
    front_end.say(session, do="resync")
    front_end.until(lambda: front_end.read(session).state is not None)
    tree = front_end.read(session).state["tree"]
    assert tree["complete"]
    assert sum(len(node[2]) for node in tree["nodes"]) == 9, "5 of the prompt, 5 generated but the last"
    printed = front_end.printed(
        "print([t.name for t in threading.enumerate() if t.name == 'nbsglang-pump'], tiny.stats()['kv_cached'])"
    )
    assert printed.startswith("['nbsglang-pump'] 9")


def test_twenty_runs_make_a_small_notebook_that_reads_without_a_kernel(front_end: FrontEnd) -> None:
    front_end.run(_TINY)
    code = (
        "%%sgl r{n} --backend tiny -t 0 --show streams,tree,numbers\n"
        "'A question about {n}. '\nfor k in fork(3):\n    f'Aspect {{k}}: '\n"
        "    v = gen(max_tokens=16, ignore_eos=True)"
    )
    cells = []
    for n in range(20):
        source = code.format(n=n)
        outputs = [nbformat.from_dict(output) for output in front_end.run(source)]
        assert [set(output["data"]) for output in outputs] == [{"text/plain", "text/html"}]
        cells.append(nbformat.v4.new_code_cell(source, outputs=outputs, execution_count=n + 1))
        if n == 0:
            front_end.greet()
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.validate(notebook)
    assert len(nbformat.writes(notebook)) < 500_000
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert page.count("radix tree") >= 20
    assert page.count("data:image/svg+xml;base64,") >= 20
    assert "<svg" not in "".join(output["data"]["text/html"] for cell in cells for output in cell.outputs)
    assert "Aspect 2" in page
    views = [front_end.states[model] for model in front_end.of("RunView")[-20:]]
    kept = [len(view["final"]) for view in views]
    assert all(kept[-4:])
    assert sum(kept) < 50_000
    assert sum(len(str(view)) for view in views) < 120_000, "of a notebook that is saved with the state of widgets"


def test_reloading_leaves_one_thread_and_unloading_none(front_end: FrontEnd) -> None:
    threads = "print([t.name for t in threading.enumerate() if t.name.startswith('nbsglang-pump')])"
    for _ in range(2):
        front_end.run("%reload_ext nbsglang")
        front_end.run("%%sgl r\n'x'\na = gen()")
    front_end.greet()
    assert front_end.printed(threads) == "['nbsglang-pump']\n"
    assert len(front_end.of("RunView")) == 1, "the comms of those before are closed"
    front_end.run("%unload_ext nbsglang")
    assert front_end.printed(threads) == "[]\n"
    front_end.until(lambda: not front_end.of("RunView") and not front_end.of("Session"))
    front_end.run("%load_ext nbsglang")
    front_end.run("%%sgl r\n'x'\na = gen()")
