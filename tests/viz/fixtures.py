"""Logs that the front end is tested and drawn with, and what Python makes of them: what tests compare with.

    python -m tests.viz.fixtures record [NAME ...]   # run programs and save their logs (needs the default model)
    python -m tests.viz.fixtures dump                # fold the saved logs and save the dumps

Real runs are never twice the same, so the logs are kept; the dumps follow from them (`test_dump.py`). For each log
there are dumps at a few places on the way, of its second half alone, as a reader sees it who comes late, and of what is
left when a part in the middle is lost.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from nbsglang.events import Event, EventLog
from nbsglang.viz.dump import dump
from nbsglang.viz.fold import View
from nbsglang.viz.marks import Marks

FOLDER = Path(__file__).parents[2] / "web" / "test" / "fixtures"
N_PLACES = 3  # dumps on the way through a log, the end included
_BEGIN_NS = 1_000_000_000  # of all saved logs: a machine's clock is nobody's business


def logs() -> list[Path]:
    """The saved logs."""
    return sorted(FOLDER.glob("*.jsonl"))


def dumps_of(path: Path) -> dict[str, Any]:
    """What Python makes of a saved log: dumps on the way, of its second half, and of it without a part."""
    events = EventLog.load(path).since(0)
    at = [len(events) * n // N_PLACES for n in range(1, N_PLACES + 1)]
    half = events[len(events) // 2 :]
    holed = events[: len(events) // 3] + half
    return {
        "on_the_way": [_dumped(events[:n], events) for n in at],
        "late": _dumped(half, events),
        "holed": _dumped(holed, events),
    }


def _dumped(events: list[Event], of: list[Event]) -> dict[str, Any]:
    """The dump, with the marks of the last program of the log, watched from its beginning."""
    view, watched = View(), dict[str, Marks]()
    run = last_run(of)
    for event in events:
        if event.source == run and run not in watched:
            watched[run] = Marks()
            view.tree.watched.append(watched[run])
        view.apply(event)
    return dump(view, watched)


def last_run(events: list[Event]) -> str:
    """The source of the last program that began, "" without any."""
    return next((event.source for event in reversed(events) if type(event.body).__name__ == "StreamBegan"), "")


def as_text(dumps: dict[str, Any]) -> str:
    """The dumps as they are saved."""
    return json.dumps(dumps, separators=(",", ":")) + "\n"


def record(name: str) -> None:
    """Run the program of this name and save its log, its clock begun anew."""
    from tests.viz.recorded import RECORDED

    log, saved = EventLog(), FOLDER / f"{name}.jsonl"
    RECORDED[name](log)
    log.save(saved)
    lines = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
    shift = lines[0][1] - _BEGIN_NS
    saved.write_text("".join(json.dumps([n, t - shift, *rest]) + "\n" for n, t, *rest in lines), encoding="utf-8")
    saved.chmod(0o644)
    print(f"{saved.name}: {len(lines)} events, {saved.stat().st_size:,} bytes")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description="Logs and dumps for the tests of the front end.")
    parser.add_argument("what", choices=("record", "dump"))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.what == "record":
        from tests.viz.recorded import RECORDED

        for name in arguments.names or RECORDED:
            record(name)
    for path in logs():
        path.with_suffix(".dump.json").write_text(as_text(dumps_of(path)), encoding="utf-8")


if __name__ == "__main__":
    main()
