"""The programs behind the saved logs of `fixtures.py`: `RECORDED[name](log)` runs one of them with that log.

Not here: where the logs are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import nbsglang as sgl
from nbsglang import events as ev
from nbsglang.events import Body, EventLog
from tests.viz.scenes import HOSTILE

ESSAY = (
    "Every library is a promise. Someone you will never meet put these books in order, so that someone else you will "
    "never meet can find them. Most promises are made between people who know each other. This one is made between "
    "strangers, across time, and it is kept every day by people who mostly whisper."
)
DATE = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
CITY = r'\{"city": "[A-Z][a-z]{2,12}", "population": [0-9]{1,8}, "is capital": (true|false)\}'
GRADING, GRADES = "Student: Anna, 100 of 100 points. Grade:\n", ["A", "Above average", "Average", "Below average"]
TOPICS = ("rain", "snow", "wind", "fog", "a rainbow", "rain again", "snow again", "frost")


@sgl.function
def judge(s: sgl.ProgramState, essay: str) -> None:
    """Judge an essay's aspects side by side, then decide."""
    aspects = ("clarity", "ideas", "rhythm")
    s += sgl.system("You are a kind but honest critic. You answer in one short sentence.")
    s += sgl.user(f"Here is an essay: {essay}")
    branches = s.fork(len(aspects))
    for branch, aspect in zip(branches, aspects, strict=True):
        branch += sgl.user(f"What do you think of its {aspect}?")
        branch += sgl.assistant(sgl.gen("verdict", max_tokens=30, stop="\n", temperature=0))
        branch += sgl.user("So how many points does that deserve, from 1 to 5?")
        branch += sgl.assistant(sgl.gen("points", regex="[1-5]", temperature=0))
    branches.join()
    verdicts = "\n".join(f"- {aspect}: {verdict}" for aspect, verdict in zip(aspects, s["verdict"], strict=True))
    s += sgl.user(f"Three readers said:\n{verdicts}\nShould the magazine print it?")
    s += sgl.assistant(sgl.select("decision", ["Yes.", "No."]))


@sgl.function
def facts(s: sgl.ProgramState) -> None:
    """Answers with a shape."""
    s += sgl.user("When did people first land on the moon?")
    s += sgl.assistant(sgl.gen("date", regex=DATE, temperature=0))
    s += sgl.user("Tell me about Paris in JSON.")
    s += sgl.assistant(sgl.gen("city", regex=CITY, temperature=0))


@sgl.function
def grading(s: sgl.ProgramState) -> None:
    """A grade that is written under a constraint, with the likeliest tokens, and one that is chosen by its score."""
    s += GRADING
    branches = s.fork(2)
    branches[0] += sgl.gen("written", regex="|".join(GRADES), temperature=0, top_logprobs_num=12)
    branches[1] += sgl.select("scored", GRADES)
    branches.join()


@sgl.function
def poem(s: sgl.ProgramState, topic: str) -> None:
    """Two lines about something, twice, in two branches."""
    s += sgl.user(f"Write a line about {topic}.")
    for n, branch in enumerate(branches := s.fork(2)):
        branch += sgl.assistant(sgl.gen("line", max_tokens=100, temperature=1.0, ignore_eos=True))
        branch += sgl.user(f"Another one, number {n}.")
        branch += sgl.assistant(sgl.gen("more", max_tokens=24, temperature=1.0, ignore_eos=True))
    branches.join()


def _judge(log: EventLog) -> None:
    """A program with branches on the default model, run twice: the second time most of it is cached."""
    with sgl.Engine("smollm2", log=log, kv_tokens=2048, chunk_tokens=64) as engine:
        for essay in (ESSAY, ESSAY[:-80]):
            judge.run(essay=essay, backend=engine, log=log)
        engine.fsm(regex=DATE)
        engine.fsm(regex=CITY)
        facts.run(backend=engine, log=log)


def _grades(log: EventLog) -> None:
    """What a mask lets come, token by token, beside the scores of whole choices."""
    with sgl.Engine("smollm2", log=log, kv_tokens=512, verify=False) as engine:
        engine.fsm(regex="|".join(GRADES))
        grading.run(backend=engine, log=log)


def _crowd(log: EventLog) -> None:
    """Many programs in a pool that is too small for them: evictions, preemptions, splits."""
    from tests.tiny import byte_tokenizer, tiny_model

    model = tiny_model("llama", seed=3)
    with sgl.Engine(
        model,
        tokenizer=byte_tokenizer(),
        log=log,
        kv_tokens=420,
        chunk_tokens=48,
        max_batch=8,
        verify=False,
        name="tiny",
    ) as engine:
        poem.run_batch([{"topic": topic} for topic in TOPICS], backend=engine, log=log)


def _mock(log: EventLog) -> None:
    """The scripted backend, streams without an engine: one that goes well, one that fails, one that is cancelled."""
    script = {"verdict": "Clear enough, if a little long.", "points": "4", "decision": "Yes."}
    judge.run(essay=ESSAY, backend=sgl.MockBackend(script, delay=0.01), log=log)
    judge.run_batch(
        [{"essay": "short"}], backend=sgl.MockBackend(script | {"points": "nine"}), log=log, on_error="return"
    )
    state = poem.run(topic="rain", backend=sgl.MockBackend("never read", delay=30.0), log=log, stream=True)
    timer = threading.Timer(0.1, state.cancel)
    timer.start()
    state.error()
    timer.join()


def _hostile(log: EventLog) -> None:
    """Texts that want out of their place, in every field that takes a text; and a tree that does not fit together."""
    for n, text in enumerate(HOSTILE):
        for body in _told(text, f"r{n}", 10 * n):
            log.emit("e", body)
    wrong: list[Body] = [
        ev.NodeAdded(9999, 9999, (1,), 1, 0),
        ev.NodeLocked(1, 1),
        ev.Snapshot(((1, 2, (1,), 0, 0), (2, 1, (2,), 0, 0), (3, 0, (1, 2), 0, 0))),
        ev.NodeLocked(1, 1),
        ev.NodeSplit(7, 8, 1, 0),
        ev.NodeExtended(4, (1,), 1, 1),
    ]
    for body in wrong:
        log.emit("e", body)


def _told(text: str, run: str, n: int) -> Iterator[Body]:
    """A run with the text in all places, its ids from `n` on."""
    child, call, pick, late = f"{run}.1", f"{run}.1.1", f"{run}.2", f"{run}.3"
    yield ev.Ready(text, text, "cpu", "float32", 100)
    yield ev.TokenTexts((n + 1, n + 2, n + 3), (text, "plain", text * 30))
    yield ev.NodeAdded(n + 1, 0, (n + 1, n + 2), 1, 0)
    yield ev.StreamBegan(run, "", 0, text)
    yield ev.StreamRole(run, text)
    yield ev.StreamText(run, text)
    yield ev.VariableSet(run, text, text)
    yield ev.StreamBegan(child, run, 1, text)
    yield ev.CallBegan(child, call, "gen", text)
    yield ev.Constrained(call, "regex", text, "automaton")
    yield ev.ConstraintGraph("regex", text, 0, (0, 1, 2), ((0, 1, text, 0), (1, 2, text, len(text))), (2,), False)
    yield ev.Queued(n + 1, call, 3)
    yield ev.Admitted(n + 1, call, 2, 1, n + 1)
    yield ev.NodeTouched((n + 1,), 2, n + 1)
    yield ev.Step(n, 1, 1, 1, 0, 90, 5, 5, 0.001, 0.001, 0.1, 0.001)
    yield ev.Healed(n + 1, call, text)
    yield ev.Masked((n + 1,), (0.25,))
    yield ev.Logprobs((n + 1,), (-0.5,))
    yield ev.TopLogprobs((n + 1,), ((n + 1, n + 3, n + 9),), ((-0.5, -2.0),), ((True, False),))
    yield ev.Tokens((n + 1,), ((n + 1,),))
    yield ev.Jumped(n + 1, call, (n + 2, n + 3))
    yield ev.NodeSplit(n + 1, n + 2, 1, n + 1)
    yield ev.NodeAdded(n + 3, n + 2, (n + 3,), 3, n + 1)
    yield ev.Finished(n + 1, call, "stop", 3, 2, 2)
    yield ev.CallEnded(child, call, "")
    yield ev.VariableSet(child, text, text)
    yield ev.StreamEnded(child, "joined")
    yield ev.CallBegan(run, pick, "score", text)
    yield ev.CallEnded(run, pick, "")
    yield ev.Scored(run, pick, (text, "plain", text), (-0.5, -1.5, -1e9), (0.75, 0.25, 0.0), 0, 3)
    yield ev.VariableSet(run, text, text)
    yield ev.Scored(run, "nobody's", (text,), (-0.5, -1.0), (), 0, 1)
    yield ev.CallBegan(run, late, "score", text)
    yield ev.Queued(n + 2, late, 3)
    yield ev.Preempted(n + 2, late, 1)
    yield ev.Scored(run, late, (text, text * 9), (-0.5,), (0.5, 0.5), -1, 40)
    yield ev.CallEnded(run, late, f"BackendError: {text}")
    yield ev.Failed(late, text)
    yield ev.Control("flush", text)
    yield ev.NodeEvicted(n + 3, 1)
    yield ev.StreamEnded(run, "failed")


RECORDED: dict[str, Callable[[EventLog], None]] = {
    "judge": _judge,
    "grades": _grades,
    "crowd": _crowd,
    "mock": _mock,
    "hostile": _hostile,
}
