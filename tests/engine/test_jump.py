"""Jump-forward decoding: what is forced is taken at once, spelled as the tokenizer spells it, judged like any token."""

from __future__ import annotations

import random
import re
from functools import cache

import numpy as np
import pytest

from nbsglang.calls import Constraint, SamplingParams
from nbsglang.engine.grammar.constraints import Constraints
from nbsglang.engine.jump import Jumper
from nbsglang.engine.request import Request
from nbsglang.engine.stops import StopMatcher
from nbsglang.events import Jumped, Tokens, TokenTexts
from tests.engine.drive import Job, drive, make_core, words

FORM = r'\{"name": "[a-d]{1,4}", "kind": "(cat|dog)", "age": [1-9]\}'
PROMPT = tuple(range(60, 100))


@cache
def constraints() -> Constraints:
    return Constraints(words().bytes_table, words().eos_ids, words().special_ids)


def matcher(pattern: str):
    return constraints().compile(Constraint("regex", pattern))


class Bound(Job):
    """A job under a regex."""

    pattern: str = FORM
    jump: str = "canonical"
    streams: bool = False

    def make(self, number: int) -> Request:
        ids = np.array(self.prompt, np.int32)
        stops = StopMatcher(self.params.stop) if self.params.stop else None
        self.request = Request(
            number, f"c{number}", ids.copy(), len(ids), len(ids) - 1, self.max_new, self.params,
            self.params.seed or number, frozenset(words().eos_ids), matcher(self.pattern), stops,
            words().detokenizer(), self.streams, jump=self.jump,
        )  # fmt: skip
        return self.request


def bound(
    pattern: str = FORM, jump: str = "canonical", prompt=PROMPT, max_new: int = 90, arrives: int = 0, **params
) -> Bound:
    job = Bound(prompt, max_new, arrives, None, SamplingParams(**{"temperature": 0.0, **params}))
    job.pattern, job.jump = pattern, jump
    return job


def run(jobs: list[Job], **options):
    core, log = make_core(n_slots=options.pop("n_slots", 900), chunk_tokens=options.pop("chunk_tokens", 32), **options)
    drive(core, log, jobs)
    return core, log


@pytest.mark.parametrize("options", [{}, {"ahead": True}, {"spans": True, "ahead": True}, {"chunk_tokens": 3}])
def test_jumps_save_passes_and_keep_the_constraint(options):
    steps = {}
    for jump in ("off", "canonical"):
        jobs = [bound(jump=jump, prompt=PROMPT[: 20 + i]) for i in range(6)]
        jobs += [bound(jump=jump, temperature=1.0, seed=i, prompt=(*PROMPT[:20], i)) for i in range(6)]
        core, _ = run(jobs, max_batch=16, **options)
        steps[jump] = core.totals.steps
        for job in jobs:
            assert re.fullmatch(FORM, job.request.text), job.request.text
            assert job.request.finish_reason == "constraint"
            assert words().decode(job.request.generated.tolist()) == job.request.text
            assert (len(job.request.jumped) > 25) is (jump == "canonical")
    if "chunk_tokens" not in options:
        assert steps["canonical"] * 2.5 < steps["off"]


def test_the_first_choice_is_made_by_the_model_after_the_same_tokens():
    """One choice among bytes: what is forced before it and after it leaves the same logits for it."""
    texts = []
    for jump in ("off", "canonical"):
        job = bound("ab(x|y|z)cd(x|y|z)ef", jump)
        run([job])
        texts.append((job.request.text, job.request.generated.tolist()))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("max_new", range(1, 14))
def test_max_tokens_cuts_within_a_jump(max_new):
    job = bound("abcdefgh(x|y)ij", max_new=max_new)
    core, _ = run([job])
    assert job.request.text == words().decode(job.request.generated.tolist())
    assert job.request.n_tokens - job.request.n_prompt == min(max_new, 11)
    assert job.request.finish_reason == ("length" if max_new < 11 else "constraint")
    assert core.totals.generated_tokens == min(max_new, 11)


@pytest.mark.parametrize("jump", ["off", "exact", "canonical"])
def test_the_log_tells_and_names_every_token(jump):
    """Also the one that the model adds after drafts that were all right."""
    job = bound("abc(x|y)de(f|g)hi", jump, PROMPT[:9])
    core, log = run([job])
    bodies = [event.body for event in log.since()]
    told = [token for b in bodies if isinstance(b, Tokens) for ids in b.ids for token in ids]
    told += [token for b in bodies if isinstance(b, Jumped) for token in b.ids]
    named = {token for b in bodies if isinstance(b, TokenTexts) for token in b.ids}
    generated = job.request.generated.tolist()
    assert sorted(told) == sorted(generated)
    assert set(generated) <= named
    assert core.totals.generated_tokens == len(generated)


@pytest.mark.parametrize("stop", ["c", "efg", "gh", "hx", "hy", "j"])
def test_a_stop_ends_within_a_jump(stop):
    job = bound("abcdefgh(x|y)ij", stop=(stop,))
    run([job])
    whole = "abcdefghxij" if job.request.matched != "hy" and stop != "hy" else "abcdefghyij"
    if job.request.finish_reason == "stop":
        assert job.request.text == whole[: whole.index(stop)]
    else:
        assert stop in ("hx", "hy")
        assert stop not in job.request.text


STARTS = [(), (5,), (5, 200), tuple(range(30))]


@pytest.mark.parametrize("options", [{}, {"ahead": True, "spans": True}, {"chunk_tokens": 3}, {"n_slots": 110}])
@pytest.mark.parametrize("params", [{}, {"temperature": 1.0, "seed": 3}, {"repetition_penalty": 1.5}])
def test_exact_texts_are_those_without_jumps(options, params):
    """Also where a jump meets a small chunk, a stop, max_tokens, a preemption, or the end."""
    found, steps = [], []
    cases = [
        (FORM, 90, ()),
        (FORM, 23, ()),
        ("abcdefgh(x|y)ij", 99, ("hx",)),
        ("only this", 99, ()),
        ("(ab|abc)d*", 9, ()),
    ]
    for jump in ("off", "exact"):
        jobs = []
        for number, (pattern, max_new, stop) in enumerate(cases):
            for start in STARTS:
                prompt = (*PROMPT[:12], *start, number)
                jobs.append(bound(pattern, jump, prompt, max_new, arrives=len(start) % 5, stop=stop, **params))
        core, _ = run(jobs, max_batch=8, lookahead=1, **options)
        requests = [job.request for job in jobs]
        found.append([(r.generated.tolist(), r.text, r.finish_reason, r.matched) for r in requests])
        steps.append(core.totals.steps)
    assert found[0] == found[1]
    assert sum(len(job.request.jumped) for job in jobs) > 150
    if "n_slots" in options:
        assert core.scheduler.n_preempted > 0
    elif "chunk_tokens" not in options:
        assert steps[1] < 0.7 * steps[0]


class Guesses:
    """Instead of a Jumper: any tokens that the constraint allows next, mostly not those that the model would choose."""

    def __init__(self) -> None:
        self.rng = random.Random(0)
        self.n_guessed = 0

    def tokens(self, request: Request) -> list[int]:
        at, guessed = request.matcher.fork(), []
        for _ in range(self.rng.randrange(6)):
            allowed = np.flatnonzero(np.unpackbits(at.mask().view(np.uint8), bitorder="little"))
            allowed = [i for i in allowed.tolist() if i not in request.eos_ids]
            if not allowed:
                break
            guessed.append(self.rng.choice(allowed[:3]))
            assert at.accept(guessed[-1])
        self.n_guessed += len(guessed)
        return guessed


@pytest.mark.parametrize("options", [{}, {"ahead": True, "spans": True}, {"chunk_tokens": 2}, {"n_slots": 80}])
def test_wrong_drafts_are_taken_back(options):
    pattern = "[ab]{3,9}(cat|dog)[xyz]{0,20}"
    found = []
    for guesses in (None, Guesses()):
        jobs = [bound(pattern, "exact" if guesses else "off", PROMPT[:k], 25, k % 4) for k in range(8, 14)]
        jobs += [
            bound(pattern, jobs[0].jump, PROMPT[:k], 25, temperature=1.0, seed=k, stop=("tx",)) for k in range(8, 14)
        ]
        core, log = make_core(
            n_slots=options.get("n_slots", 900), lookahead=1, **{k: v for k, v in options.items() if k != "n_slots"}
        )
        if guesses is not None:
            core.commit._jumper = guesses
        drive(core, log, jobs)
        found.append([(job.request.generated.tolist(), job.request.text, job.request.finish_reason) for job in jobs])
    assert found[0] == found[1]
    assert 0 < sum(len(job.request.jumped) for job in jobs) < guesses.n_guessed / 2


def test_nothing_to_choose_needs_no_pass():
    job = bound("only this")
    core, log = run([job])
    assert (job.request.text, job.request.finish_reason) == ("only this", "constraint")
    assert core.totals.steps == 0
    assert [e.body.ids for e in log.since(0) if isinstance(e.body, Jumped)] == [tuple(b"only this")]


def test_jumps_survive_preemption_and_eviction():
    """A pool too small for all: texts are those of a large pool."""
    found = []
    for n_slots in (2000, 90):
        jobs = [bound(prompt=PROMPT[: 10 + 3 * i], arrives=i, temperature=1.0, seed=i) for i in range(8)]
        core, _ = run(jobs, n_slots=n_slots, max_batch=8, lookahead=1)
        found.append([job.request.text for job in jobs])
    assert core.scheduler.n_preempted > 0
    assert found[0] == found[1]


def test_beside_requests_without_a_constraint():
    free = [Job(PROMPT[:k], 12, k % 3) for k in range(5, 12)]
    alone = [Job(PROMPT[:k], 12, k % 3) for k in range(5, 12)]
    run(alone, max_batch=16, ahead=True)
    run([*free, *(bound(arrives=i) for i in range(4))], max_batch=16, ahead=True)
    assert [job.request.generated.tolist() for job in free] == [job.request.generated.tolist() for job in alone]


class FakeTokenizer:
    """Letters, and a few longer tokens; texts are spelled by the longest first."""

    table = (b"", b"a", b"b", b"c", b"ab", b"bc", b"abc", b"cc")
    n_vocab = len(table)
    bytes_table = table

    def token_bytes(self, token: int) -> bytes:
        return self.table[token]

    def decode(self, ids) -> str:
        return b"".join(map(self.token_bytes, ids)).decode()

    def encode(self, text: str, first: bool = True) -> list[int]:
        ids = []
        while text:
            n, token = max((len(d), i) for i, d in enumerate(self.table) if d and text.startswith(d.decode()))
            ids.append(token)
            text = text[n:]
        return ids


@pytest.mark.parametrize(
    ("pattern", "before", "expected"),
    [
        ("abc", [], [6]),
        ("ab[abc]", [], []),  # "abc" may come: neither "a" nor "ab" is settled
        ("ab[ab]", [], [4]),
        ("ab(c|a)", [], []),
        ("aab[ab]", [], [1, 4]),
        ("(a|b)bc", [1], []),  # the text "abc" is one token, which does not begin with "a"
        ("(a|b)cc", [2], []),  # "bcc" is spelled "bc", "c"
        ("(a|c)a", [3], [1]),
        ("abc(c|a)?", [], [6]),
        ("[ab]{2}a[ac]", [1, 2], [1]),  # however "ab" was spelled
    ],
)
def test_what_a_longer_token_could_absorb_is_left_to_the_model(pattern, before, expected):
    tokenizer = FakeTokenizer()
    made = Constraints(tokenizer.table, (), (0,)).compile(Constraint("regex", pattern))
    request = Request(0, "c", np.array([1], np.int32), 1, 0, 50, SamplingParams(), 0, matcher=made)
    for token in before:
        assert made.accept(token)
        request.append(token)
    assert Jumper(tokenizer).tokens(request) == expected


def test_the_spelling_of_what_went_before_costs_no_second_try():
    class Counting(FakeTokenizer):
        n = 0

        def encode(self, text: str, first: bool = True) -> list[int]:
            self.n += 1
            return super().encode(text, first)

    tokenizer = Counting()
    made = Constraints(tokenizer.table, (), (0,)).compile(Constraint("regex", "[ab]{6}a[ac]"))
    request = Request(0, "c", np.array([1], np.int32), 1, 0, 50, SamplingParams(), 0, matcher=made)
    for token in [1, 2] * 3:  # the tokenizer itself spells it in three tokens
        assert made.accept(token)
        request.append(token)
    assert Jumper(tokenizer).tokens(request) == [1]
    assert tokenizer.n == 1
