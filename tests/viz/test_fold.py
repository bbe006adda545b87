"""The fold of a log equals the tree itself, from the start or from a snapshot, and takes any log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nbsglang.engine.radix import RadixNode, RadixTree
from nbsglang.events import (
    Admitted,
    Body,
    CallBegan,
    CallEnded,
    Control,
    Event,
    EventLog,
    Failed,
    Finished,
    Loading,
    NodeAdded,
    NodeEvicted,
    NodeExtended,
    NodeLocked,
    NodeSplit,
    NodeTouched,
    Preempted,
    Queued,
    Ready,
    Snapshot,
    Step,
    StreamBegan,
    StreamEnded,
    StreamText,
    Tokens,
    TokenTexts,
    VariableSet,
)
from nbsglang.viz.fold import View, fold
from nbsglang.viz.state import StreamView

STEP = Step(1, 3, 1, 1, 0, 10, 5, 2, 0.0, 0.0, 0.1, 0.0)


def log_of(*bodies: Body, start: int = 1) -> list[Event]:
    return [Event(n, 0, "engine", body) for n, body in enumerate(bodies, start)]


def marks_of(view: View) -> tuple[set[int], dict[int, int], list[int], bool]:
    return view.marks.new, view.marks.hits, list(view.marks.evicted), view.complete


def test_a_story() -> None:
    story = [
        NodeAdded(1, 0, (10, 11, 12), 1, 7),
        NodeLocked(1, 1),
        NodeExtended(1, (13, 14), 2, 7),
        STEP,
        NodeSplit(1, 2, 3, 8),
        NodeTouched((2,), 3, 8),
        NodeAdded(3, 2, (20,), 4, 8),
        NodeTouched((2, 3), 5, -1),
        NodeLocked(3, 1),
    ]
    view = fold(log_of(*story))
    assert view.tree_as_tuples() == ((1, 2, (13, 14), 1, 2), (2, 0, (10, 11, 12), 2, 5), (3, 2, (20,), 1, 5))
    assert marks_of(view) == ({3}, {2: 1}, [], True)
    assert [node.id for node in view.path(1)] == [2, 1]
    more = [NodeLocked(1, -1), STEP, NodeEvicted(1, 2), NodeTouched((2,), 6, 9), NodeTouched((2,), 7, 10)]
    for event in log_of(*more, start=len(story) + 1):
        view.apply(event)
    assert view.tree_as_tuples() == ((2, 0, (10, 11, 12), 1, 7), (3, 2, (20,), 1, 5))
    assert marks_of(view) == (set(), {2: 2}, [1], True)
    assert (view.totals.n_evicted, view.totals.n_splits) == (2, 1)
    assert {parent: [n.id for n in nodes] for parent, nodes in view.children().items()} == {0: [2], 2: [3]}


def test_a_split_keeps_marks() -> None:
    view = fold(log_of(NodeAdded(1, 0, (1, 2), 1, 5), NodeTouched((1,), 2, 6), NodeSplit(1, 2, 1, 7)))
    assert marks_of(view)[:2] == ({1, 2}, {1: 1, 2: 1})


class Model:
    """A radix tree of its own making, as the source of random logs."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, list[int], int, int]] = {}
        self.next, self.tick = 1, 0
        self.log = EventLog()

    def tuples(self) -> tuple[tuple[int, int, tuple[int, ...], int, int], ...]:
        return tuple((i, p, tuple(t), locks, tick) for i, (p, t, locks, tick) in sorted(self.rows.items()))

    def path(self, node: int) -> list[int]:
        return [] if node == 0 else [*self.path(self.rows[node][0]), node]

    def act(self, kind: int, pick: int, size: int) -> None:
        ids = [0, *self.rows]
        node = ids[pick % len(ids)]
        self.tick += 1
        if kind == 0 or node == 0:
            self.rows[self.next] = (node, list(range(size)), 0, self.tick)
            self.log.emit("e", NodeAdded(self.next, node, tuple(range(size)), self.tick, size))
            self.next += 1
            return
        parent, tokens, locks, tick = self.rows[node]
        if kind == 1 and len(tokens) > 1:
            at = 1 + size % (len(tokens) - 1)
            self.rows[self.next] = (parent, tokens[:at], locks, tick)
            self.rows[node] = (self.next, tokens[at:], locks, tick)
            self.log.emit("e", NodeSplit(node, self.next, at, 1))
            self.next += 1
        elif kind == 2:
            for at_node in self.path(node):
                p, t, count, when = self.rows[at_node]
                self.rows[at_node] = (p, t, count + 1, when)
            self.log.emit("e", NodeLocked(node, 1))
        elif kind == 3 and all(p != node for p, *_ in self.rows.values()):
            del self.rows[node]
            self.log.emit("e", NodeEvicted(node, len(tokens)))
        elif kind == 4:
            self.rows[node] = (parent, tokens + [size] * size, locks, self.tick)
            self.log.emit("e", NodeExtended(node, (size,) * size, self.tick, 1))
        elif kind == 5:
            path = self.path(node)
            for at_node in path:
                self.rows[at_node] = (*self.rows[at_node][:3], self.tick)
            self.log.emit("e", NodeTouched(tuple(path), self.tick, size - 2))
        else:
            self.log.emit("e", STEP)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 50), st.integers(1, 6)), max_size=60), st.integers(0, 60))
@settings(max_examples=200, deadline=None)
def test_the_fold_equals_the_tree(acts: list[tuple[int, int, int]], late: int) -> None:
    model = Model()
    snapshot_at = 0
    for n, act in enumerate(acts):
        model.act(*act)
        if n == late:
            model.log.emit("e", Snapshot(model.tuples()))
            snapshot_at = model.log.seq
    events = model.log.since(0)
    assert fold(events, "e").tree_as_tuples() == model.tuples()
    assert fold(events, "other").tree_as_tuples() == ()
    if snapshot_at:
        reader = fold(events[snapshot_at - 1 :])
        assert reader.tree_as_tuples() == model.tuples()
        assert reader.complete
        early = View()
        for event in events[1:]:  # the first is lost
            early.apply(event)
            assert early.complete == (event.seq >= snapshot_at)
        assert early.tree_as_tuples() == model.tuples()


def test_a_gap_waits_for_a_snapshot() -> None:
    view = fold(log_of(NodeAdded(1, 0, (1,), 1, 0)))
    for event in log_of(NodeAdded(3, 2, (5,), 3, 0), NodeTouched((9,), 3, 0), start=5):
        view.apply(event)
    assert not view.complete
    view.apply(Event(7, 0, "engine", Snapshot(((1, 0, (1,), 0, 1), (2, 1, (3,), 1, 2)))))
    view.apply(Event(8, 0, "engine", NodeLocked(2, -1)))
    assert view.complete
    assert view.tree_as_tuples() == ((1, 0, (1,), -1, 1), (2, 1, (3,), 0, 2))


def test_logs_that_make_no_sense_do_not_raise_or_hang() -> None:
    for bodies in (
        [NodeSplit(1, 2, 1, 0)],
        [NodeAdded(1, 1, (1,), 1, 0), NodeLocked(1, 1)],
        [NodeAdded(1, 0, (1,), 1, 0), NodeAdded(1, 0, (1,), 1, 0)],
        [NodeAdded(1, 0, (1,), 1, 0), NodeSplit(1, 1, 0, 0)],
        [Snapshot(((1, 2, (), 0, 0), (2, 1, (), 0, 0))), NodeLocked(1, 1)],
        [NodeEvicted(4, 4), NodeExtended(4, (1,), 1, 1), NodeTouched((4,), 1, 1)],
    ):
        view = fold(log_of(*bodies))
        children, below, seen = view.children(), [0], []
        while below:  # ends, since a cycle hangs under no root
            seen.append(below.pop())
            below += [node.id for node in children.get(seen[-1], [])]
            assert len(seen) <= len(view.nodes) + 1, f"{bodies} made a cycle under the root"
        assert not view.complete or seen == [0], f"{bodies} was taken for a tree"


def test_requests_streams_and_numbers() -> None:
    view = fold(
        log_of(
            Loading("weights", 1, 2),
            Ready("engine", "tiny", "cpu", "float32", 100),
            StreamBegan("s", "", 0, "main"),
            StreamBegan("s.1", "s", 1, "b"),
            StreamText("s", "Q: "),
            CallBegan("s", "c1", "gen", "a"),
            Queued(1, "c1", 10),
            Admitted(1, "c1", 4, 6, 0),
            TokenTexts((5, 6), ("x", "y")),
            Tokens((1,), ((5,),)),
            Preempted(1, "c1", 11),
            Admitted(1, "c1", 0, 11, 0),
            Tokens((1, 2), ((6,), (9,))),
            STEP,
            Finished(1, "c1", "stop", 10, 4, 2),
            CallEnded("s", "c1", ""),
            VariableSet("s", "a", "xy"),
            StreamEnded("s.1", "done"),
            CallBegan("s", "c2", "gen", "b"),
            CallEnded("s", "c2", "boom"),
            Failed("c2", "boom"),
            Control("flush", "asked"),
            Control("closed", ""),
        )
    )
    request = view.requests[1]
    assert (request.state, request.ended, request.n_hit, request.generated) == ("stop", True, 0, [5, 6])
    assert view.requests[2].generated == [9]  # its beginning was not seen
    assert (view.text_of([5, 6, 7]), view.totals.hit_rate, view.totals.n_preempted) == ("xy<7>", 0.4, 1)
    stream = view.streams["s"]
    assert isinstance(stream, StreamView)
    assert (stream.text, stream.state, stream.error) == ("Q: xy", "failed", "boom")
    assert {call.id: call.state for call in stream.calls.values()} == {"c1": "done", "c2": "failed"}
    branch = view.streams["s.1"]
    assert (branch.parent, branch.state, branch.depth) == ("s", "done", 1)
    assert (view.loading, view.errors, view.controls) == (None, ["boom"], ["flush: asked", "closed"])
    assert view.step == STEP


def test_what_is_over_is_forgotten_in_time() -> None:
    bodies = [body for n in range(9000) for body in (Queued(n, "c", 1), Finished(n, "c", "stop", 1, 0, 1))]
    view = fold(log_of(Queued(-1, "running", 1), *bodies))
    assert len(view.requests) <= 4001
    assert -1 in view.requests
    assert view.totals.n_requests == 9000


def test_a_saved_log_folds_without_torch(tmp_path: Path) -> None:
    log = EventLog()
    log.emit("e", NodeAdded(1, 0, (1, 2), 1, 0))
    log.save(tmp_path / "log.jsonl")
    code = (
        "import sys, nbsglang.viz.gallery\n"
        "from nbsglang.events import EventLog\n"
        "from nbsglang.viz.fold import fold\n"
        f"assert len(fold(EventLog.load({str(tmp_path / 'log.jsonl')!r}).since(0)).nodes) == 1\n"
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(0, 2), min_size=1, max_size=8)), max_size=40))
@settings(max_examples=200, deadline=None)
def test_the_fold_equals_the_engines_tree(acts: list[tuple[int, list[int]]]) -> None:
    log = EventLog()
    tree = RadixTree(lambda body: log.emit("e", body))
    held: list[tuple[RadixNode, list[int]]] = []
    n_slots = 1
    for kind, tokens in acts:
        if kind == 0:
            tree.evict(len(tokens))
        elif kind == 1 and held:
            tree.unlock(held.pop(tokens[0] % len(held))[0])
        elif kind == 2 and held:  # the latest request goes on
            node, known = held.pop()
            n_slots += len(tokens)
            slots = np.arange(n_slots - len(tokens), n_slots, dtype=np.int32)
            held.append((tree.insert(node, np.array(tokens, np.int32), slots, len(known))[0], known + tokens))
        else:
            held.append((tree.lock_prefix(np.array(tokens, np.int32), len(held))[0], tokens))
        assert fold(log.since(0)).tree_as_tuples() == tree.snapshot().nodes
