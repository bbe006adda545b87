"""The event log: order and bounds from any thread and any finalizer, and files that leak nothing and lie in nothing."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.errors import UsageError
from nbsglang.events import KINDS, Body, Control, EventLog, Failed, NodeAdded, NodeLocked, StreamText, VariableSet
from nbsglang.viz.dot import tree_dot
from nbsglang.viz.fold import fold

# Said again here, so that a change of the kinds alone cannot weaken what redact promises.
STAYS = {"call_id", "stream", "parent", "kind", "reason", "how", "device", "dtype", "Ready.name", "Control.what",
         "Constrained.by"}  # fmt: skip
TOKEN_IDS = {"NodeAdded.tokens", "NodeExtended.tokens", "Tokens.ids", "Jumped.ids", "TokenTexts.ids", "TopLogprobs.ids"}
SECRET, SECRET_ID = "a secret: ", 7_000_000_000  # nothing else that is drawn contains it, or is as large
INTS, TEXTS = st.integers(-(2**31), 2**31), st.text(max_size=8)


def _fields(kind: str) -> dict[str, Any]:
    return get_type_hints(KINDS[kind])  # without marks


def _values(wanted: Any, texts: st.SearchStrategy[str], ints: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """Values of a type; a type that logs do not hold is an error."""
    if get_origin(wanted) is tuple:
        first, *rest = (inner if inner is Ellipsis else _values(inner, texts, ints) for inner in get_args(wanted))
        return st.lists(first, max_size=4).map(tuple) if rest == [Ellipsis] else st.tuples(first, *rest)
    return {int: ints, str: texts, float: st.floats(allow_nan=False), bool: st.booleans()}[wanted]


def _bodies(kind: str) -> st.SearchStrategy[Body]:
    """Bodies whose texts and token ids are secrets, where they are not ids and words of our own."""
    secrets = TEXTS.map(lambda text: f"{SECRET}{text}")
    token_ids = st.integers(SECRET_ID, SECRET_ID + 10**9 - 1)
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for name, wanted in _fields(kind).items():
        texts = TEXTS if STAYS & {name, f"{kind}.{name}"} else secrets
        fields[name] = _values(wanted, texts, token_ids if f"{kind}.{name}" in TOKEN_IDS else INTS)
    if kind == "Snapshot":
        row = st.tuples(INTS, INTS, st.lists(token_ids, max_size=4).map(tuple), INTS, INTS)
        fields["nodes"] = st.lists(row, max_size=4).map(tuple)
    return st.builds(KINDS[kind], **fields)


ANY_BODY = st.sampled_from(sorted(KINDS)).flatmap(_bodies)


def _log_of(*bodies: Body) -> EventLog:
    log = EventLog()
    for body in bodies:
        log.emit("source", body)
    return log


def _ints(value: object) -> list[int]:
    """All integers in a value that JSON gave."""
    if isinstance(value, dict | list):
        return [n for item in (value.values() if isinstance(value, dict) else value) for n in _ints(item)]
    return [value] if isinstance(value, int) else []


def _file(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


# ------------------------------------------------------------------------------------------- in memory


@given(st.integers(1, 12), st.integers(0, 30), st.integers(-2, 32), st.none() | st.integers(0, 12))
def test_since(capacity: int, n: int, seq: int, limit: int | None) -> None:
    log = EventLog(capacity)
    assert [log.emit("s", NodeLocked(i, 1)) for i in range(1, n + 1)] == list(range(1, n + 1))
    assert log.seq == n
    kept = range(max(1, n - capacity + 1), n + 1)
    assert [event.seq for event in log.since(seq, limit)] == [i for i in kept if i > seq][:limit]
    assert all(event.body == NodeLocked(event.seq, 1) for event in log.since())


def test_many_threads() -> None:
    log = EventLog()
    seqs: list[list[int]] = [[] for _ in range(4)]
    threads = [
        threading.Thread(target=lambda own=own: own.extend(log.emit("s", NodeLocked(0, 1)) for _ in range(2000)))
        for own in seqs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(own == sorted(own) for own in seqs)
    assert sorted(seq for own in seqs for seq in own) == list(range(1, 8001))
    times = [event.t_ns for event in log.since()]
    assert times == sorted(times)


_FINALIZERS = """
import gc
from nbsglang.events import Control, EventLog, Step

class Dying:
    def __init__(self):
        self.me = self
    def __del__(self):
        seqs.append(log.emit("finalizer", Control("dead", "")))

log, seqs = EventLog(7000), []
for i in range(4000):
    gc.set_threshold(1 + i % 20)  # so that each place that allocates has its turn
    Dying()
    seqs.append(log.emit("s", Step(*range(12))))
    if i % 10 == 9:
        Dying()
        got = [event.seq for event in log.since(log.seq - 5)]
        assert got == list(range(got[0], got[-1] + 1)) and len(got) >= 5, got
gc.disable()
assert sorted(seqs) == list(range(1, log.seq + 1))
assert [event.seq for event in log.since()] == list(range(log.seq - 6999, log.seq + 1))
"""


def test_a_finalizer_may_emit_whenever_the_collector_runs() -> None:
    # In a process of its own: with a lock that is not reentrant, this never ends.
    done = subprocess.run([sys.executable, "-c", _FINALIZERS], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_an_emit_inside_an_emit_or_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(EventLog):
        n_more = 3

        def more(self) -> None:
            if self.n_more:
                self.n_more -= 1
                self.emit("inner", Control("inner", ""))

        def _copy(self, seq: int, limit: int | None) -> list[Any]:
            rows = super()._copy(seq, limit)
            self.more()
            return rows

    log = Interrupted(4)
    monkeypatch.setattr("nbsglang.events.log.time", SimpleNamespace(monotonic_ns=lambda: log.more() or 0))
    assert log.emit("outer", Control("outer", "")) == 4
    assert [(event.seq, event.source) for event in log.since()] == [
        (1, "inner"),
        (2, "inner"),
        (3, "inner"),
        (4, "outer"),
    ]
    log.n_more = 1
    assert log.emit("outer", Control("outer", "")) == 6
    monkeypatch.undo()
    log.n_more = 2
    assert [event.seq for event in log.since(5)] == [6, 7, 8]


# ------------------------------------------------------------------------------------------------ files


@given(st.lists(ANY_BODY, max_size=6))
def test_a_saved_log_comes_back(tmp_path_factory: pytest.TempPathFactory, bodies: list[Body]) -> None:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    log = _log_of(*bodies)
    log.save(path)
    again = EventLog.load(path)
    assert again.since() == log.since()
    assert again.seq == log.seq == again.emit("s", Control("more", "")) - 1


def test_a_saved_log_is_private_and_alone(tmp_path: Path) -> None:
    log = _log_of(StreamText("s", "text"))
    log.save(tmp_path / "log.jsonl")
    assert stat.S_IMODE((tmp_path / "log.jsonl").stat().st_mode) & 0o077 == 0
    log.emit("source", Failed("c", object()))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        log.save(tmp_path / "log.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
    assert len(EventLog.load(tmp_path / "log.jsonl").since()) == 1


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_redact_lets_no_text_and_no_token_id_through(tmp_path_factory: pytest.TempPathFactory, kind: str) -> None:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"

    @settings(max_examples=20)
    @given(_bodies(kind))
    def check(body: Any) -> None:
        log = _log_of(body)
        log.save(path, redact=True)
        assert SECRET not in path.read_text()
        assert not any(number >= SECRET_ID for number in _ints(json.loads(path.read_text())[4]))
        (event,) = EventLog.load(path).since()
        for name, value in event.body._asdict().items():
            wanted = getattr(body, name)
            if STAYS & {name, f"{kind}.{name}"} or isinstance(wanted, int | float):
                assert value == wanted
            elif isinstance(wanted, tuple):
                assert len(value) == len(wanted)

    check()


def test_redact_keeps_the_shape_of_the_tree(tmp_path: Path) -> None:
    log = _log_of(NodeAdded(1, 0, (5, 6), 1, 1), VariableSet("s", "name", "value"))
    log.emit("source", KINDS["Snapshot"](((1, 0, (5, 6), 0, 1), (2, 1, (7,), 1, 2))))
    log.emit("source", KINDS["NodeTouched"]((1, 2), 3, 4))
    log.save(tmp_path / "log.jsonl", redact=True)
    view = fold(EventLog.load(tmp_path / "log.jsonl").since())
    assert view.tree_as_tuples() == ((1, 0, (0, 0), 0, 3), (2, 1, (0,), 1, 3))
    assert view.streams["s"].parts == [("value", "", "", "", ())]


# ------------------------------------------------------------------------------- files from somebody else

GOOD = [1, 0, "s", "NodeLocked", {"node": 1, "delta": 1}]
DOTS = '1 [URL="http://x"]; n2'


def _with(*changes: tuple[int, object]) -> list[object]:
    return [dict(changes).get(place, part) for place, part in enumerate(GOOD)]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "{",
        "7",
        '"abcde"',
        {"1": 0, "2": 0, "3": 0, "4": 0, "5": 0},
        GOOD[:4],
        [*GOOD, 1],
        _with((0, "1")),
        _with((0, True)),
        _with((0, 0)),
        _with((1, 0.5)),
        _with((2, None)),
        _with((3, "Nothing")),
        _with((3, ["NodeLocked"])),
        _with((4, [1, 1])),
        _with((4, None)),
        _with((4, "text")),
        _with((4, {"node": 1})),
        _with((4, {"node": 1, "delta": 1, "more": 1})),
        _with((4, {"node": "1", "delta": 1})),
        _with((4, {"node": 1, "delta": True})),
        _with((4, {"node": 1, "delta": 1.0})),
        _with((4, {"node": 1, "delta": None})),
        _with((4, {"node": 1, "delta": [1]})),
        [1, 0, "s", "NodeAdded", {"node": DOTS, "parent": 0, "tokens": [], "tick": 0, "request": 0}],
        [1, 0, "s", "NodeAdded", {"node": 1, "parent": 0, "tokens": ["1"], "tick": 0, "request": 0}],
        [1, 0, "s", "Snapshot", {"nodes": [[1, 0, [1], 0]]}],
        [1, 0, "s", "Snapshot", {"nodes": [[1, 0, 1, 0, 0]]}],
        [1, 0, "s", "Snapshot", {"nodes": {"1": 0}}],
        [1, 0, "s", "StreamText", {"stream": "s", "text": ["x"]}],
        "[" * 100_000,
        '[1, 0, "s", "Snapshot", {"nodes": ' + "[" * 100_000,
        json.dumps([1, 0, "s", "Step", dict.fromkeys(_fields("Step"), 0)]).replace("0}", f"{10**400}}}"),
        "\udcff",
    ],
    ids=lambda bad: str(bad)[:40],
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_line_that_is_no_event(tmp_path: Path, bad: object, number: int) -> None:
    line = bad if isinstance(bad, str) else json.dumps([bad[0] + 1, *bad[1:]] if _rises(bad) else bad)
    before = [json.dumps(GOOD)] * (number - 1)
    (tmp_path / "log").write_bytes("\n".join([*before, line, ""]).encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=f"line {number} is not an event"):
        EventLog.load(tmp_path / "log")


def _rises(bad: Any) -> bool:
    return isinstance(bad, list) and type(bad[0]) is int and bad[0] > 0


def test_numbers_that_json_writes_without_a_point(tmp_path: Path) -> None:
    line = [1, 0, "s", "Step", dict.fromkeys(_fields("Step"), 3)]
    (event,) = EventLog.load(_file(tmp_path / "log", line)).since()
    assert isinstance(event.body.run_s, float)


def test_a_log_with_lines_taken_out(tmp_path: Path) -> None:
    log = EventLog.load(_file(tmp_path / "log", GOOD, _with((0, 5)), _with((0, 9)), _with((0, 10))))
    assert [event.seq for event in log.since(0)] == [1, 5, 9, 10]
    assert [event.seq for event in log.since(5)] == [9, 10]
    assert [event.seq for event in log.since(6, 1)] == [9]
    with pytest.raises(UsageError, match="line 2"):
        EventLog.load(_file(tmp_path / "log", _with((0, 5)), GOOD))


def test_nothing_of_a_file_gets_into_graphviz_unquoted(tmp_path: Path) -> None:
    for node in (DOTS, 3):
        added = {"node": node, "parent": 0, "tokens": [], "tick": 0, "request": 0}
        path = _file(tmp_path / "log", [1, 0, "s", "NodeAdded", added])
        if node == DOTS:
            with pytest.raises(UsageError):
                tree_dot(fold(EventLog.load(path).since()))
        else:
            assert 'n0 -> n3 [label=""' in tree_dot(fold(EventLog.load(path).since()))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kinds_hold_only_what_can_be_checked(kind: str) -> None:
    for name, wanted in get_type_hints(KINDS[kind], include_extras=True).items():
        _values(get_type_hints(KINDS[kind])[name], TEXTS, INTS)
        assert get_origin(wanted) is not Annotated or get_args(wanted)[0] in (str, tuple[int, ...])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('[1, 5, "e", "Teleported", {"to": "there"}]', "there is no kind 'Teleported'"),
        (
            '[1, 5, "e", "Control", {"what": "flush", "detail": "", "mood": "good"}]',
            "the fields of Control are what, detail",
        ),
    ],
)
def test_a_log_of_another_version_is_called_that(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError) as caught:
        EventLog.load(path)
    assert "line 1 is not an event that this version of nbsglang knows; a later or" in str(caught.value)
    assert str(caught.value).endswith(f"written it: {why}")
