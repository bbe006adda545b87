"""Memory of a session on Binder, which has 2 GB and one processor: loading and running the default model.

Figures are those of a fresh process; a kernel and the server of Jupyter come on top, hence the distance to 2 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbsglang.engine.store import cache_folder

KV_TOKENS = 8192  # what the notebooks ask for
BYTES_PER_TOKEN = 30 * 3 * (64 + 64) * 4  # of smollm2 in float32: layers, heads, widths of keys and values
LOADED, PEAK = 1.2e9, 1.6e9

_PROGRAM = """
import json, sys
import nbsglang as sgl

def memory(name):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))

@sgl.function
def judge(s, essay):
    s += sgl.user(f"Essay: {essay}")
    branches = s.fork(3)
    for branch, aspect in zip(branches, ["clarity", "depth", "style"]):
        branch += sgl.user(f"Judge its {aspect}.")
        branch += sgl.assistant(sgl.gen("verdict", max_tokens=16, temperature=0))
    branches.join()
    s += sgl.user(" ".join(s["verdict"]) + " Accept?")
    s += sgl.assistant(sgl.select("decision", ["yes", "no"]))

with sgl.Engine("smollm2", kv_tokens=int(sys.argv[1])) as engine:
    loaded = memory("VmRSS")
    state = judge.run(essay="A library is a promise between strangers, kept every day. " * 20, backend=engine)
    free, decision = engine.stats()["kv_free"], state["decision"]
    found = {"loaded": loaded, "peak": memory("VmHWM"), "free": free, "decision": decision}
print(json.dumps(found))
"""


@pytest.mark.smollm2
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the figures are Linux's")
def test_a_session_on_binder_has_room(tmp_path: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NBSGLANG_CACHE": str(cache_folder())}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(KV_TOKENS)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["decision"] in ("yes", "no")
    assert found["loaded"] <= LOADED, f"{found['loaded'] / 1e9:.2f} GB resident after loading"
    # The pool takes memory where it is written; a full one must fit as well.
    full = found["peak"] + found["free"] * BYTES_PER_TOKEN
    assert full <= PEAK, f"{found['peak'] / 1e9:.2f} GB at the peak, {full / 1e9:.2f} with a full pool"
