"""Search for the fastest form of each product of a few rows of an 8B model, and what a decode step gains from it.

    python -m benchmarks.gpu_skinny [--rows 1 2 4 8 16] [--only qkv head] [--out FILE]

A time is the median of replays of a graph of many launches, one after the other, on copies of the weights that are
larger than the L2 together. Forms are searched as the engine starts them, each before the one ahead has ended; the best
one is also timed alone. A star marks the engine's choice where it is not the best. The last table is of a whole step
without attention, with the norms between the products.

Not here: whole models (`gpu_step.py`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from nbsglang.kernels.gated import silu_mul
from nbsglang.kernels.norm import add_rms_norm
from nbsglang.kernels.skinny import Tiles, choose
from nbsglang.kernels.skinny_triton import product

Launch = Callable[[], object]
SIZES = {  # outputs, inputs, whether it is gated (outputs are those after the gate)
    "qkv": (6144, 4096, False),
    "o": (4096, 4096, False),
    "gated": (14336, 4096, True),
    "down": (4096, 14336, False),
    "head": (128_256, 4096, False),
}
N_LAYERS = 32
_CACHE = 50 << 20  # bytes of the L2
_ONE_ROW = [(1, 4096, 4), (2, 1024, 2), (2, 2048, 4), (4, 256, 1), (4, 512, 2), (4, 1024, 4), (4, 2048, 8)]
_ONE_ROW += [(8, 256, 2), (8, 512, 4), (8, 1024, 8), (16, 256, 4)]
_WHOLE = [(16, 128, 1, 6), (32, 128, 2, 6), (32, 256, 4, 4), (64, 128, 4, 4), (64, 256, 4, 4), (128, 64, 4, 6)]
_WHOLE += [(128, 128, 4, 3), (128, 128, 8, 5)]
_SPLITS = [(64, 128, 4, 4, 2), (64, 128, 4, 4, 4), (64, 128, 4, 5, 4), (128, 128, 4, 4, 4), (128, 128, 8, 3, 8)]


def forms(n: int, n_out: int, n_in: int, gated: bool) -> list[Tiles]:
    """Forms to try."""
    if n == 1:
        return [Tiles(*cut) for cut in _ONE_ROW if cut[1] <= 2 * n_in and not (gated and cut[0] == 1)]
    splits = _SPLITS if n_out <= 8192 and n_in > 2048 and not gated else []
    return [Tiles(*cut) for cut in (*_WHOLE, *splits)]


def by_torch(rows: torch.Tensor, weight: torch.Tensor, gated: bool) -> torch.Tensor:
    """A product, and a gate."""
    out = functional.linear(rows, weight)
    return silu_mul(out) if gated else out


def timed(launches: list[Launch], floor_s: float, n_replays: int = 5) -> float:
    """Median seconds of one launch, in a graph that goes round `launches`."""
    n = len(launches) * max(1, round(8e-4 / floor_s / len(launches)))
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launches[0]()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for launch in itertools.islice(itertools.cycle(launches), n):
                launch()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(n_replays + 2)]
        for event in events:  # without waits between them, so that the host is never late; the first warms up
            graph.replay()
            event.record()
        stream.synchronize()
    return statistics.median(a.elapsed_time(b) / 1e3 / n for a, b in itertools.pairwise(events))


class Case:
    """One product of one model: its weights, more than the L2 holds."""

    def __init__(self, name: str, n_out: int, n_in: int, gated: bool) -> None:
        self.name, self.n_out, self.n_in, self.gated = name, n_out, n_in, gated
        self.n_bytes = 2 * n_out * n_in * (1 + gated)
        self.floor_s = self.n_bytes / 4.2e12 + 1e-6
        n_copies = max(2, -(-4 * _CACHE // self.n_bytes))
        self.weights = torch.empty(n_copies, n_out * (1 + gated), n_in, device="cuda", dtype=torch.bfloat16)
        self.weights.normal_(std=n_in**-0.5)

    def rows(self, n: int) -> torch.Tensor:
        """Random rows [n, n_in]."""
        return torch.randn(n, self.n_in, device="cuda").bfloat16()

    def torch_s(self, n: int) -> float:
        """Seconds of torch's form."""
        rows = self.rows(n)
        return timed([partial(by_torch, rows, w, self.gated) for w in self.weights], self.floor_s, 9)

    def form_s(self, n: int, tiles: Tiles, early: bool = True, n_replays: int = 5) -> float:
        """Seconds of Triton's form `tiles`."""
        rows, out = self.rows(n), torch.empty(n, self.n_out, device="cuda", dtype=torch.bfloat16)
        launches = [partial(product, rows, w, None, out, tiles, self.gated, early) for w in self.weights]
        return timed(launches, self.floor_s, n_replays)

    def off(self, n: int, tiles: Tiles) -> float:
        """The size of the difference from float64, relative to that of the result."""
        rows, weight = self.rows(n), self.weights[0]
        wide = rows.double() @ weight.double().T
        if self.gated:
            gate, up = wide.bfloat16().double().chunk(2, -1)
            wide = functional.silu(gate) * up
        out = torch.full((n, self.n_out), float("nan"), device="cuda", dtype=torch.bfloat16)
        product(rows, weight, None, out, tiles, self.gated)
        return float((out.double() - wide).norm() / wide.norm())


def compile_all(cases: list[Case], all_rows: list[int]) -> set[tuple[int, bool, Tiles]]:
    """Compile all forms, side by side; returns those that do not compile or start."""
    unique = {
        (min(n, 2), case.gated, tiles): case  # two rows take the kernel of sixteen
        for case in cases
        for n in all_rows
        for tiles in forms(n, case.n_out, case.n_in, case.gated)
    }

    def one(key: tuple[int, bool, Tiles]) -> str | None:
        n, gated, tiles = key
        case = unique[key]
        try:
            product(case.rows(n), case.weights[0], None, torch.empty(n, case.n_out).cuda().bfloat16(), tiles, gated)
        except Exception as error:  # too much shared memory, or whatever the compiler does not take
            return f"{tiles}: {type(error).__name__}: {str(error)[:200]}"
        return None

    with ThreadPoolExecutor(16) as pool:
        failures = dict(zip(unique, pool.map(one, unique), strict=True))
    torch.cuda.synchronize()
    for said in {said for said in failures.values() if said}:
        print("left out", said)
    print(f"{len(unique)} kernels compiled")
    return {key for key, said in failures.items() if said}


def search(case: Case, n: int, broken: set[tuple[int, bool, Tiles]]) -> dict[str, Any]:
    """The best form of a case and number of rows: prints a line."""
    tried = [t for t in forms(n, case.n_out, case.n_in, case.gated) if (min(n, 2), case.gated, t) not in broken]
    chosen = choose(n, case.n_out, case.n_in, case.gated)
    quick = sorted((case.form_s(n, tiles, n_replays=3), i) for i, tiles in enumerate(tried))
    finals = sorted((case.form_s(n, tried[i], n_replays=11), i) for _, i in quick[:4])
    best = tried[finals[0][1]]
    found: dict[str, Any] = {
        "name": case.name,
        "n": n,
        "torch_s": case.torch_s(n),
        "early_s": finals[0][0],
        "alone_s": case.form_s(n, best, early=False, n_replays=9),
        "tiles": asdict(best),
        "off": case.off(n, best),
        "all": [{"s": s, **asdict(tried[i])} for s, i in quick],
    }
    rates = "  ".join(
        f"{kind} {found[f'{kind}_s'] * 1e6:7.2f} us {case.n_bytes / found[f'{kind}_s'] / 1e12:5.2f}"
        for kind in ("torch", "alone", "early")
    )
    print(f"{case.name:8} {n:3}  {rates} TB/s  off {found['off']:.1e}  {short(best)}")
    shown = [(s, i) for place, (s, i) in enumerate(quick) if tried[i] != best and (place < 4 or tried[i] == chosen)]
    others = ", ".join(f"{short(tried[i])}{'*' * (tried[i] == chosen)} {s * 1e6:.2f}" for s, i in shown)
    print(f"{'':12}then {others}", flush=True)
    return found


def short(tiles: Tiles) -> str:
    """`64x128 w4 s4 /1`."""
    return f"{tiles.outs}x{tiles.ins} w{tiles.warps} s{tiles.stages} /{tiles.split}"


def step_s(cases: dict[str, Case], n: int, best: dict[str, Tiles] | None, early: bool) -> float:
    """Seconds of a step's products and norms; without `best` torch's forms. Attention hands on what it is given."""
    hidden = torch.randn(n, cases["qkv"].n_in, device="cuda").bfloat16()
    norm = torch.ones_like(hidden[0])

    def times(name: str, rows: torch.Tensor, number: int) -> torch.Tensor:
        case = cases[name]
        weight = case.weights[number % len(case.weights)]
        if best is None:
            return by_torch(rows, weight, case.gated)
        return product(rows, weight, None, rows.new_empty(n, case.n_out), best[name], case.gated, early)

    def step() -> None:
        residual, rows = hidden.clone(), hidden
        for number in range(N_LAYERS):
            rows = add_rms_norm(rows, residual, norm, 1e-5)
            rows = times("o", times("qkv", rows, number)[:, : cases["o"].n_in], number)
            rows = add_rms_norm(rows, residual, norm, 1e-5)
            rows = times("down", times("gated", rows, number), number)
        times("head", add_rms_norm(rows, residual, norm, 1e-5), 0)

    return timed([step], 1.0, 15)


def sums(cases: dict[str, Case], found: list[dict[str, Any]], all_rows: list[int]) -> dict[int, Any]:
    """Milliseconds of the products of a step, added up, and of a step in one graph."""
    result = {}
    layer = ("qkv", "o", "gated", "down")
    n_bytes = cases["head"].n_bytes + N_LAYERS * sum(cases[p].n_bytes for p in layer)
    print(f"\nms of a step; at 4.2 TB/s its weights take {n_bytes / 4.2e9:.2f}")
    for n in all_rows:
        mine = {one["name"]: one for one in found if one["n"] == n}
        line: dict[str, float] = {}
        for kind in ("torch", "alone", "early"):
            total = mine["head"][f"{kind}_s"] + N_LAYERS * sum(mine[p][f"{kind}_s"] for p in layer)
            line[f"products {kind}"] = round(total * 1e3, 3)
        best = {one["name"]: Tiles(**one["tiles"]) for one in mine.values()}
        chosen = {p: tiles for p, case in cases.items() if (tiles := choose(n, case.n_out, case.n_in, case.gated))}
        line["step torch"] = round(step_s(cases, n, None, False) * 1e3, 3)
        for kind, tiles in (("best", best), ("chosen", best | chosen)):
            for early in (False, True):
                line[f"step {kind} {'early' if early else 'alone'}"] = round(step_s(cases, n, tiles, early) * 1e3, 3)
        result[n] = line
        print(f"{n:3}  " + "  ".join(f"{key} {value:.3f}" for key, value in line.items()), flush=True)
    return result


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--only", nargs="+", help="names of products")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began = time.perf_counter()
    cases = {name: Case(name, *sizes) for name, sizes in SIZES.items() if not given.only or name in given.only}
    broken = compile_all(list(cases.values()), given.rows)
    result: dict[str, Any] = {"products": [search(case, n, broken) for case in cases.values() for n in given.rows]}
    if not given.only:
        result["steps"] = sums(cases, result["products"], given.rows)
    print(f"took {time.perf_counter() - began:.0f} s")
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    with torch.inference_mode():
        main()
