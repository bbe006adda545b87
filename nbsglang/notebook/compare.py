"""`--compare`: a cell with the cache and without it, side by side.

Each run has a fresh engine on the loaded module, one after the other, so that both begin alike and the cache of the
loaded engine stays as it is. Both are warmed up by one token. The cached run comes first: what only a first run pays is
then paid by the cache, not by its rival. Both get the same seed. The result is that of the cached run.

Not here: engines for one cell (`chosen.py`), the first run's view (`runner.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from typing import Any, NamedTuple

from nbsglang.calls import Backend
from nbsglang.lang.cell import Cell
from nbsglang.lang.cell_result import Branch
from nbsglang.lang.cell_run import CellRun
from nbsglang.lang.state import ProgramState
from nbsglang.notebook.chosen import twin
from nbsglang.viz.page import page
from nbsglang.viz.picture import Picture
from nbsglang.viz.scene import seconds
from nbsglang.viz.text import shown

SEED = 0  # where the cell gives none
_ROWS = {
    "seconds": "time",
    "prompt_tokens": "prompt tokens",
    "computed_tokens": "of them computed",
    "cached_tokens": "of them cached",
    "hit_rate": "hit rate",
    "generated_tokens": "generated",
    "first_token_seconds": "first token after",
}


class Texts(NamedTuple):
    """How the texts of two runs compare: how many streams there are, how many differ, and the first of these."""

    n: int
    n_different: int
    first: str


@contextmanager
def fresh_engine(engine: Any, *, caching: bool, kv_tokens: int | None) -> Iterator[Backend]:
    """An engine of its own for one run, warmed up; closed afterwards."""
    own = twin(engine, caching=caching, kv_tokens=kv_tokens)
    try:
        own.generate([int(own.tokenizer.eos_token_id or 0)], max_tokens=1, temperature=0)
        own.flush_cache()
        yield own
    finally:
        own.close()


def without_cache(
    cell: Cell,
    namespace: dict[str, Any],
    engine: Any,
    start: CellRun | ProgramState | None,
    options: Mapping[str, Any],
    kv_tokens: int | None,
) -> CellRun:
    """The second run; what it raises is in it."""
    with fresh_engine(engine, caching=False, kv_tokens=kv_tokens) as backend:
        run = cell.prepare(namespace, start=start, backend=backend, log=engine.log, **options)
        with suppress(Exception):  # the first run went well, and is the result
            run.execute()
    return run


def comparison(cached: CellRun, plain: CellRun, *, is_greedy: bool, seed: int | None) -> Picture:
    """The two runs beside each other, and what is to be known about them."""
    rows = [(name, _shown(key, cached.stats), _shown(key, plain.stats)) for key, name in _ROWS.items()]
    notes = [*_notes(cached, plain, is_greedy, seed)]
    return Picture(page("", _table(rows), _list(notes)), _lines(rows, notes))


def same_texts(one: CellRun, other: CellRun) -> Texts:
    """Compare the whole texts of the runs' streams, branches after their parents."""
    ours, theirs = dict(_texts(one)), dict(_texts(other))
    different = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return Texts(len(ours.keys() | theirs.keys()), len(different), different[0] if different else "")


def _notes(cached: CellRun, plain: CellRun, is_greedy: bool, seed: int | None) -> Iterator[str]:
    if plain.error is not None:
        what = str(plain.error).partition("\n")[0]
        yield f"the run without the cache failed: {type(plain.error).__name__}: {shown(what, 160)}"
        return
    a, b = cached.stats["seconds"] or 0.0, plain.stats["seconds"] or 0.0
    if a and b:
        yield _speed(b / a)
    texts = same_texts(cached, plain)
    how = "greedy decoding" if is_greedy else f"sampled, both with seed {seed}"
    if not texts.n_different:
        yield f"the texts are the same, token for token ({how}; {texts.n} stream{'s'[: texts.n != 1]})"
    else:
        yield f"{texts.n_different} of {texts.n} texts differ, first that of {texts.first} ({how}): {_why(is_greedy)}"
    if cached.stats["prompt_tokens"] != plain.stats["prompt_tokens"] and not texts.n_different:
        yield "with the cache, what branches share is computed ahead of them by a request whose prompt counts as well"
    yield (
        "each run had a fresh engine on the same weights, warmed up by one token; the cached one came first, so what "
        "only a first run pays counts against the cache"
    )


def _speed(ratio: float) -> str:
    if 0.95 < ratio < 1.05:
        return "about as fast with the cache as without"
    return f"{'with' if ratio > 1 else 'without'} the cache {max(ratio, 1 / ratio):.1f} times as fast"


def _why(is_greedy: bool) -> str:
    if is_greedy:
        return (
            "other batches round otherwise in the last place, which decides where two tokens are about as likely; "
            "or the cell's own Python did something else the second time"
        )
    return (
        "draws are the same for the same probabilities, and those of other batches differ in the last place; or the "
        "cell's own Python did something else the second time"
    )


def _texts(run: CellRun) -> Iterator[tuple[str, str]]:
    def walk(branch: Branch, name: str) -> Iterator[tuple[str, str]]:
        yield name, branch.text
        for loop in branch._loops:
            for number, state in enumerate(loop.states):
                yield from walk(Branch(state), f"{name}/{number}" if name != "the cell" else f"branch {number}")

    yield from walk(Branch(run.state), "the cell")


def _shown(key: str, stats: Mapping[str, float | None]) -> str:
    value = stats.get(key)
    if value is None:
        return "–"
    if key.endswith("seconds"):
        return seconds(value)
    return f"{value:.1%}" if key == "hit_rate" else f"{value:,.0f}"


_HEAD = ("", "with the cache", "without")


def _table(rows: list[tuple[str, str, str]]) -> str:
    def row(cells: tuple[str, str, str], tag: str, weight: str) -> str:
        style = f"text-align:{{}};padding:1px 18px 1px 0;font-weight:{weight}"
        return "".join(
            f'<{tag} style="{style.format("left" if n == 0 else "right")}">{escape(cell)}</{tag}>'
            for n, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{row(cells, 'td', 'normal')}</tr>" for cells in rows)
    look = "border-collapse:collapse;color:inherit;background:inherit;font:inherit;margin:0"
    return f'<table style="{look}"><tr>{row(_HEAD, "th", "bold")}</tr>{body}</table>'


def _list(notes: list[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul style="margin:6px 0 0;padding-left:18px">{items}</ul>'


def _lines(rows: list[tuple[str, str, str]], notes: list[str]) -> str:
    widths = [max(len(row[n]) for row in (_HEAD, *rows)) for n in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in (_HEAD, *rows)]
    return "\n".join([*lines, *(f"- {note}" for note in notes)])
