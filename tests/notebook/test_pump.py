"""What reaches the views of a log: all of it, in order, in few messages; and what happens when something is lost."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from nbsglang import events as ev
from nbsglang.events import Event, EventLog
from nbsglang.notebook import channel as channels
from nbsglang.notebook.budget import Budget
from nbsglang.notebook.channel import Channel
from nbsglang.notebook.pump import Pump
from nbsglang.viz import wire
from nbsglang.viz.fold import View, fold
from tests.notebook.reader import Reader, plain


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Emitter:
    """Steps of an engine with many streams, as the engine logs them."""

    def __init__(self, log: EventLog, n_streams: int, source: str = "engine") -> None:
        self._log = log
        self._n = n_streams
        self._source = source
        self._step = 0
        self.emit(ev.Ready(source, "tiny", "cpu", "float32", 100_000))
        self.emit(ev.TokenTexts(tuple(range(1000)), tuple(f" word{i}" for i in range(1000))))
        for i in range(n_streams):
            log.emit("run", ev.StreamBegan(f"run.{i + 1}", "", i, "cell"))
            log.emit("run", ev.CallBegan(f"run.{i + 1}", f"c{i}", "gen", "a"))
            self.emit(ev.Queued(i, f"c{i}", 10))
            self.emit(ev.Admitted(i, f"c{i}", 0, 10, 0))
            self.emit(ev.NodeAdded(i + 1, 0, tuple(range(i, i + 10)), 1, i))

    def emit(self, body: ev.Body) -> None:
        self._log.emit(self._source, body)

    def step(self) -> None:
        self._step += 1
        n, ids = self._n, tuple((hash((self._step, i)) % 1000,) for i in range(self._n))
        self.emit(ev.Tokens(tuple(range(n)), ids))
        for i in range(n):
            self.emit(ev.NodeExtended(i + 1, ids[i], self._step, i))
        self.emit(ev.Step(self._step, 0, n, n, 0, 9, 0, n, 0.001, 0.001, 0.02, 0.001))


def whole(log: EventLog, *, skip: tuple[str, ...] = ()) -> View:
    """The state of the log, without the events of some sources, numbered as a channel does."""
    events = [event for event in log.since(0) if event.source not in skip]
    return fold(Event(n, event.t_ns, event.source, event.body) for n, event in enumerate(events, 1))


def told(log: EventLog, clock: Callable[[], float], start: int = 0) -> tuple[Channel, Reader]:
    reader = Reader()
    channel = Channel(log, "engine", reader.take, Budget(clock), start=start, clock=clock)
    return channel, reader


# ---------------------------------------------------------------------------------------------------- a channel


def test_nothing_is_read_or_sent_before_somebody_asks() -> None:
    log, clock = EventLog(), Clock()
    Emitter(log, 2)
    channel, reader = told(log, clock)
    channel.tick()
    assert reader.messages == []
    channel.resync()
    channel.tick()
    channel.tick()
    assert [m.content["kind"] for m in reader.messages] == ["key", "delta"]
    assert plain(reader.view) == plain(whole(log))


def test_the_first_keyframe_is_of_the_start_and_deltas_follow() -> None:
    log, clock = EventLog(), Clock()
    emitter = Emitter(log, 3)
    start, before = log.seq, whole(log)
    emitter.step()
    channel, reader = told(log, clock, start)
    channel.resync()
    channel.tick()
    assert reader.state == plain(before)
    for _ in range(20):
        emitter.step()
        clock.now += 0.1
        channel.tick()
    kinds = [m.content["kind"] for m in reader.messages]
    assert kinds == ["key"] + ["delta"] * 20, "a keyframe each three seconds, no more"
    assert len(reader.lines) == log.seq - start
    assert [m.content["n"] for m in reader.messages] == list(range(1, 22))


def test_keyframes_come_while_something_changes() -> None:
    log, clock = EventLog(), Clock()
    emitter = Emitter(log, 3)
    channel, reader = told(log, clock)
    channel.resync()
    for n in range(200):
        if n < 100:
            emitter.step()
        clock.now += 0.1
        channel.tick()
    assert 4 <= reader.n_keys <= 6
    assert not reader.is_waiting
    assert plain(reader.view) == plain(whole(log))


def test_when_half_of_the_deltas_are_lost_the_next_keyframe_tells_all() -> None:
    log, clock = EventLog(), Clock()
    emitter = Emitter(log, 4)
    channel, reader = told(log, clock)
    deaf = Reader()

    def lossy(message: wire.Message) -> None:
        reader.take(message)
        if message.content["kind"] == "key" or message.content["n"] % 2:
            deaf.take(message)

    channel._send = lossy
    channel.resync()
    for _ in range(25):
        emitter.step()
        clock.now += 0.1
        channel.tick()
    assert deaf.is_waiting
    clock.now += 3
    channel.tick()
    assert not deaf.is_waiting
    assert deaf.state == reader.state == plain(whole(log))


def test_who_asks_gets_a_keyframe() -> None:
    log, clock = EventLog(), Clock()
    Emitter(log, 2)
    channel, reader = told(log, clock)
    for _ in range(3):
        channel.resync()
        clock.now += 0.2
        channel.tick()
    assert reader.n_keys == 3


def test_where_nobody_answers_any_more_little_is_sent_until_somebody_does() -> None:
    log, clock = EventLog(), Clock()
    emitter = Emitter(log, 2)
    channel, reader = told(log, clock)
    channel.resync()

    def run(seconds: int) -> list[str]:
        n = len(reader.messages)
        for _ in range(10 * seconds):
            emitter.step()
            clock.now += 0.1
            channel.tick()
        return [message.content["kind"] for message in reader.messages[n:]]

    channel.heard(at_any_time=False)
    assert len(run(60)) > 500, "its answers may wait for the end of the cell"
    channel.heard(at_any_time=True)
    assert len(run(19)) > 150
    run(3)
    assert run(90) == ["delta", "key"] * 3
    channel.heard(at_any_time=True)
    assert run(10).count("delta") > 50
    assert not reader.is_waiting


def test_other_engines_are_left_out_and_no_gap_is_seen() -> None:
    log, clock = EventLog(), Clock()
    emitter, other = Emitter(log, 2), Emitter(log, 2, "another")
    channel, reader = told(log, clock)
    channel.resync()
    for _ in range(5):
        emitter.step()
        other.step()
        clock.now += 0.1
        channel.tick()
    assert not reader.is_waiting
    assert reader.view.complete
    assert plain(reader.view) == plain(whole(log, skip=("another",)))
    assert {line[2] for line in reader.lines} == {"engine", "run"}


def test_what_the_log_has_dropped_is_a_gap() -> None:
    log, clock = EventLog(capacity=50), Clock()
    emitter = Emitter(log, 2)
    channel, reader = told(log, clock)
    channel.resync()
    channel.tick()
    channel.tick()
    for _ in range(30):  # 120 events
        emitter.step()
    clock.now += 0.2
    channel.tick()
    assert reader.n_keys == 2, "the events that are left are no use without what was before them"
    assert reader.state["tree"]["complete"] is False
    assert reader.state["n_lost"] > 50
    log.emit("engine", ev.Snapshot(((1, 0, (1, 2), 0, 3),)))
    clock.now += 4
    channel.tick()
    assert reader.state["tree"]["complete"] is True


def test_a_pile_of_events_becomes_a_keyframe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_MAX_PENDING", 100)
    log, clock = EventLog(), Clock()
    emitter = Emitter(log, 10)
    channel, reader = told(log, clock, log.seq)
    channel.resync()
    channel.tick()
    for _ in range(40):
        emitter.step()
    clock.now += 0.1
    channel.tick()
    assert [m.content["kind"] for m in reader.messages] == ["key", "key"]
    assert reader.state == plain(whole(log))
    emitter.step()
    clock.now += 0.1
    channel.tick()
    assert reader.messages[-1].content["kind"] == "delta"
    assert not reader.is_waiting


def test_two_thousand_tokens_a_second_in_64_streams_stay_within_the_budget() -> None:
    log, clock = EventLog(), Clock()
    emitter = Emitter(log, 64)
    budget, readers = Budget(clock), (Reader(), Reader())
    sent: list[tuple[float, int]] = []

    def send_to(reader: Reader, message: wire.Message) -> None:
        reader.take(message)
        sent.append((clock.now, reader.sizes[-1]))

    both = [Channel(log, "engine", partial(send_to, reader), budget, start=0, clock=clock) for reader in readers]
    for channel in both:  # two engines' views share what the server takes
        channel.resync()
    for n in range(20 * 31):  # twenty seconds
        emitter.step()
        clock.now += 1 / 31.25
        if n % 3 == 0:  # about ten times a second
            for channel in both:
                channel.tick()
    for channel in both:
        clock.now += 4
        channel.tick()
    for begin, _ in sent:
        window = [size for at, size in sent if begin <= at < begin + 1]
        assert len(window) <= 20
        assert sum(window) <= 300_000
    for reader in readers:
        assert not reader.is_waiting
        assert reader.state == plain(whole(log))
        assert len(reader.lines) > 0.5 * log.seq, "most of it came as it happened"


def test_a_run_can_be_shown_from_its_excerpt() -> None:
    log, clock = EventLog(), Clock()
    emitter = Emitter(log, 2)
    channel, _ = told(log, clock, log.seq)
    channel.resync()
    channel.tick()
    before = whole(log)
    channel.watch("run", log.seq)
    emitter.step()
    emitter.step()
    text = channel.finish("run")
    emitter.step()
    channel.tick()
    kept = wire.unpacked(base64.b64decode(text))
    assert kept["base"]["seq"] == before.seq
    assert [line[3] for line in kept["events"]] == ["Tokens", "NodeExtended", "NodeExtended", "Step"] * 2
    for _ in range(3000):
        emitter.step()
    channel.watch("long", log.seq)
    for _ in range(3000):
        emitter.step()
    assert channel.finish("long") == "", "too much for a notebook"


# ------------------------------------------------------------------------------------------------------ the pump


@pytest.fixture
def pump() -> Iterator[Pump]:
    pump = Pump(period_s=0.02)
    yield pump
    pump.stop()
    assert not any(thread.name == "nbsglang-pump" for thread in threading.enumerate())


def wait_until(true: Callable[[], object], timeout_s: float = 5.0) -> None:
    until = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_the_pump_tells_what_happens(pump: Pump) -> None:
    log = EventLog()
    channel, reader = told(log, time.monotonic)
    pump.add(channel)
    emitter = Emitter(log, 2)
    time.sleep(0.1)
    assert reader.messages == []
    channel.resync()
    pump.wake()
    emitter.step()
    wait_until(lambda: reader.lines and reader.lines[-1][3] == "Step")
    time.sleep(0.2)
    n = len(reader.messages)
    time.sleep(0.2)
    assert len(reader.messages) == n, "nothing happens: nothing is sent"
    assert pump.failures == {}
    assert 0 < pump.cpu_s < 1


def test_a_channel_that_fails_is_dropped_and_others_go_on(pump: Pump) -> None:
    log = EventLog()
    emitter = Emitter(log, 2)

    def broken(message: wire.Message) -> None:
        raise OSError("no")

    bad = Channel(log, "engine", broken, Budget(), start=0)
    good, reader = told(log, time.monotonic)
    for channel in (bad, good):
        pump.add(channel)
        channel.resync()
    pump.wake()
    wait_until(lambda: bad in pump.failures)
    assert pump.failures == {bad: "OSError: no"}
    emitter.step()
    wait_until(lambda: reader.lines and reader.lines[-1][3] == "Step")


def test_an_idle_pump_takes_no_time(pump: Pump) -> None:
    log = EventLog()
    channel, _ = told(log, time.monotonic)
    pump.add(channel)
    time.sleep(0.1)
    before = pump.cpu_s
    Emitter(log, 20)
    time.sleep(0.3)
    assert pump.cpu_s == before, "nobody looks: it does not even wake"
