"""A follower equals a fold of the whole log, whenever it looks; and it costs nothing when nothing happened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbsglang.events import EventLog, NodeAdded, NodeLocked, NodeTouched, Queued, Ready, Snapshot, StreamText
from nbsglang.viz.fold import View, fold
from nbsglang.viz.follow import Follower
from tests.viz.scenes import STEP, events_of


@given(st.lists(st.tuples(st.sampled_from("eruo"), st.booleans()), max_size=40))
def test_it_equals_the_fold_of_its_sources(acts: list[tuple[str, bool]]) -> None:
    log = EventLog()
    follower = Follower(log, "e", "r")
    for n, (source, looks) in enumerate(acts, 1):
        log.emit(source, NodeAdded(n, 0, (n,), n, 0) if source == "e" else StreamText(source, str(n)))
        if looks:
            follower.poll()
    whole = fold(log.since(), "e", "r")
    assert follower.look(View.tree_as_tuples) == whole.tree_as_tuples()
    assert follower.look(lambda view: {key: s.text for key, s in view.streams.items()}) == {
        key: s.text for key, s in whole.streams.items()
    }


def test_it_looks_only_when_there_is_something_new() -> None:
    calls: list[int] = []

    class Counting(EventLog):
        def since(self, seq: int = 0, limit: int | None = None):  # type: ignore[no-untyped-def]
            calls.append(seq)
            return super().since(seq, limit)

    log = Counting()
    log.emit("e", STEP)
    follower = Follower(log, "e")
    first = follower.poll()
    assert (follower.poll(), follower.poll(), len(calls)) == (first, first, 1)
    log.emit("other", STEP)
    assert follower.poll() == first  # nothing of ours
    log.emit("e", STEP)
    assert follower.poll() != first


def test_sources_come_and_go() -> None:
    log = EventLog()
    follower = Follower(log, "e")
    log.emit("r", StreamText("r.0", "missed"))
    follower.poll()
    follower.add("r")
    log.emit("r", StreamText("r.1", "seen"))
    follower.poll()
    follower.remove("r")
    log.emit("r", StreamText("r.2", "missed"))
    assert follower.look(lambda view: list(view.streams)) == ["r.1"]
    assert follower.look(lambda view: [s.source for s in view.streams.values()]) == ["r"]


def test_a_late_start_waits_for_a_snapshot_or_the_engines_own_begin() -> None:
    log = EventLog(capacity=2)
    for n in range(1, 5):
        log.emit("e", NodeAdded(n, n - 1, (n,), n, 0))
    follower = Follower(log, "e")
    assert follower.look(lambda view: (view.complete, view.n_lost)) == (False, 2)
    log.emit("e", Snapshot(((7, 0, (1, 2), 0, 1),)))
    assert follower.look(lambda view: (view.complete, view.tree_as_tuples())) == (True, ((7, 0, (1, 2), 0, 1),))
    for _ in range(9):
        log.emit("e", NodeLocked(7, 1))
    assert not follower.look(lambda view: view.complete)  # dropped before it looked
    log.emit("e", Ready("e", "m", "cpu", "float32", 9))
    assert follower.look(lambda view: (view.complete, view.tree_as_tuples())) == (True, ())


def test_events_that_were_seen_do_not_count_twice() -> None:
    events = events_of(NodeAdded(1, 0, (1,), 1, 0), Queued(1, "c", 3), NodeLocked(1, 1))
    view = fold([*events, *events[1:], events[0]])
    assert (view.tree_as_tuples(), view.complete, view.n_lost) == (((1, 0, (1,), 1, 1),), True, 0)


def test_marks_of_a_longer_span() -> None:
    log = EventLog()
    follower = Follower(log, "e")
    log.emit("e", NodeAdded(1, 0, (1, 2), 1, 0))
    marks = follower.watch()
    for n in range(2, 4):
        log.emit("e", NodeAdded(n, 1, (n,), n, 0))
        log.emit("e", NodeTouched((1,), n, n))
        log.emit("e", STEP)
    follower.poll()
    assert (marks.new, marks.hits) == ({2, 3}, {1: 2})
    assert follower.look(lambda view: view.marks.new) == {3}  # of the latest step
    follower.unwatch(marks)
    log.emit("e", NodeAdded(4, 0, (4,), 4, 0))
    follower.poll()
    assert marks.new == {2, 3}
