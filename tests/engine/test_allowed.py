"""What a constraint allows at one place and how likely it is: against the module's own logits, token by token."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

import nbsglang as sgl
from nbsglang.calls import Constraint, TokenLogprob
from nbsglang.engine.allowed import Allowed
from nbsglang.engine.engine import Engine
from nbsglang.engine.grammar.automatic import AutomatonMatcher
from nbsglang.engine.grammar.constraints import Constraints
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.look import Standing, compared, standing
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import BackendClosed, ConstraintError, TextRefused, Unsupported, UsageError
from nbsglang.events import EventLog, Masked
from tests.tiny import BOS, EOS, IM_END, VOCAB_SIZE, byte_tokenizer, tiny_model

PROMPT = "Grade: "
MERGES = ("a b", "ab c", "h i")  # ids 260 to 262: a text has more than one spelling
GRADES = ["A", "Above", "Bad"]


@pytest.fixture(scope="module")
def module() -> torch.nn.Module:
    return tiny_model("llama")


@pytest.fixture(scope="module")
def engine(module: torch.nn.Module) -> Iterator[Engine]:
    with Engine(module, tokenizer=byte_tokenizer(merges=MERGES), kv_tokens=500, log=EventLog()) as engine:
        yield engine


@pytest.fixture(scope="module")
def constraints() -> Constraints:
    words = Tokenizer(byte_tokenizer(merges=MERGES), n_vocab=VOCAB_SIZE, eos_ids=[EOS])
    return Constraints(words.bytes_table, words.eos_ids, words.special_ids)


def matcher_after(constraints: Constraints, constraint: Constraint, ids: list[int]) -> Matcher:
    matcher = constraints.compile(constraint)
    assert all(matcher.accept(token) for token in ids)
    return matcher


def likely(found: Allowed) -> list[tuple[int, float]]:
    """The listed tokens with their probabilities, whose last digits depend on what the cache holds."""
    return [(each.id, round(each.probability, 5)) for each in (*found.tokens, *found.banned)]


@pytest.mark.parametrize(
    ("kind", "value", "after", "ids"),
    [
        ("regex", "[a-m]x?", "", []),
        ("regex", "[a-m]x?", "a", [97]),
        ("regex", "(ab)*c+|hi!", "ab", [260]),
        ("regex", "(ab)*c+|hi!", "aba", [260, 97]),
        ("regex", "(ab)*c+|hi!", [97, 98], [97, 98]),  # spelled otherwise than the tokenizer does
        ("regex", "é+", "é", list("é".encode())),
        ("choices", tuple(GRADES), "", []),
        ("choices", tuple(GRADES), "A", [65]),
        ("choices", tuple(GRADES), "Bad", list(b"Bad")),  # nothing may follow but the end
        ("schema", '{"type": "boolean"}', "t", [116]),
        ("grammar", 'start: "hi" | "ab" /[0-9]+/', "ab", [260]),
    ],
)
def test_it_is_what_accept_and_the_modules_logits_say(engine, module, constraints, kind, value, after, ids):
    option = {"json_schema" if kind == "schema" else kind: value}
    found = engine.allowed(PROMPT, after=after, n=None, **option)
    with torch.inference_mode():
        logits = module(torch.tensor([[*PROMPT.encode(), *ids]])).logits[0, -1]
    probs = torch.softmax(logits.double(), -1)
    constraint = Constraint(kind, value)
    fits = {i for i in range(VOCAB_SIZE) if matcher_after(constraints, constraint, ids).accept(i)}
    done = matcher_after(constraints, constraint, ids).done
    assert {each.id for each in found.tokens} == fits
    assert {each.id for each in found.banned} == set(range(VOCAB_SIZE)) - fits
    assert (found.n_vocab, found.n_allowed, found.done) == (VOCAB_SIZE, len(fits), done)
    kept = sum(probs[token].item() for token in sorted(fits))
    assert found.kept == pytest.approx(kept, rel=1e-4)
    assert found.removed == pytest.approx(1 - kept, abs=1e-5)
    for each in (*found.tokens, *found.banned):
        assert each.probability == pytest.approx(probs[each.id].item(), rel=1e-4)
        assert each.share == pytest.approx(probs[each.id].item() / kept if each.id in fits else 0, rel=1e-4)
        assert each.ends == (each.id in (EOS, IM_END))
    assert {EOS, IM_END} & fits == ({EOS, IM_END} if done else set())
    assert BOS not in fits
    for listed in (found.tokens, found.banned):
        assert [each.probability for each in listed] == sorted((e.probability for e in listed), reverse=True)


def test_the_removed_mass_is_the_one_that_a_step_under_the_constraint_reports(engine):
    found = engine.allowed(PROMPT, choices=GRADES)
    start = engine.log.seq
    out = engine.generate(PROMPT, choices=GRADES, max_tokens=8, temperature=0)
    assert found.removed == pytest.approx(out.removed[0], abs=1e-5)
    assert found.tokens[0].id == out.ids[0]
    assert not [e for e in engine.log.since(0, start) if isinstance(e.body, Masked)], "looking masks no step"


def test_without_a_constraint_everything_is_allowed(engine):
    found = engine.allowed(PROMPT, n=3)
    assert (found.n_allowed, found.banned, found.removed, found.done) == (VOCAB_SIZE, (), 0, True)
    assert found.kept == pytest.approx(1, abs=1e-5)
    assert len(found.tokens) == 3
    assert found.tokens[0].share == pytest.approx(found.tokens[0].probability, rel=1e-4)
    assert likely(engine.allowed(PROMPT, after="ab")) == likely(engine.allowed([*PROMPT.encode(), 260]))


@pytest.mark.parametrize(
    ("value", "after", "start", "end"),
    [
        ("[a-m]x?", "z", 0, 1),
        ("[a-m]x?", "axx", 2, 3),
        ("hello", "heLlo", 2, 3),
        ("a[0-9]b", "ab", 1, 2),
        ("[aè]+", "aéa", 1, 2),
        ("a+b", [97, EOS], 1, 2),
    ],
)
def test_a_text_that_does_not_fit_is_refused_with_its_place(engine, value, after, start, end):
    with pytest.raises(TextRefused, match=f"characters {start} to {end}") as refused:
        engine.allowed(PROMPT, regex=value, after=after)
    assert (refused.value.start, refused.value.end) == (start, end)
    assert isinstance(refused.value, ConstraintError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"regex": "a", "choices": ["b"]}, "one constraint"),
        ({"choices": "ab"}, "list of texts"),
        ({"regex": "("}, "regex"),
        ({"regex": "a", "n": -1}, "must not be negative"),
        ({"after": ["a"]}, "one prompt"),
    ],
)
def test_what_makes_no_sense_is_refused(engine, options, words):
    with pytest.raises(UsageError, match=words):
        engine.allowed(PROMPT, **options)
    with pytest.raises(UsageError, match="one prompt"):
        engine.allowed([PROMPT, PROMPT], regex="a")


def test_the_table_shows_hostile_text_harmlessly_in_few_lines(engine):
    text = str(engine.allowed(PROMPT, regex="[\x1b\u202e\n]{2}|a{2}", after="\x1b", n=5))
    assert text == repr(engine.allowed(PROMPT, regex="[\x1b\u202e\n]{2}|a{2}", after="\x1b", n=5))
    assert all(line.isprintable() for line in text.split("\n"))
    assert len(text.split("\n")) <= 16
    assert "'\\x1b'" in text


def test_tokens_without_a_text_of_their_own_are_told_apart(engine):
    text = str(engine.allowed(PROMPT, regex="[é-ÿ]+", n=None))
    assert "'\ufffd' id 195 " in text
    assert "'' id 299 " in text


def test_shares_are_right_where_all_that_is_allowed_is_next_to_impossible(constraints):
    words = Tokenizer(byte_tokenizer(merges=MERGES), n_vocab=VOCAB_SIZE, eos_ids=[EOS])
    constraint = Constraint("choices", ("a", "b"))
    tops = [TokenLogprob(i, {97: -2000.0, 98: -2000.7}.get(i, -5.7), chr(i)) for i in range(VOCAB_SIZE)]
    tops.sort(key=lambda top: -top.logprob)
    at = standing(constraints.compile(constraint))
    assert isinstance(at, Standing)
    found = compared(tops, at, constraint, "", 5, words)
    assert found.kept == 0
    assert found["a"].share == pytest.approx(1 / (1 + 2.718281828**-0.7))
    with pytest.raises(KeyError):
        found["nothing"]


def test_masks_are_made_on_the_engines_thread_and_rows_come_back(engine, monkeypatch):
    grammar, threads = 'start: "hi" /[a-c]+/', []
    engine.allowed(PROMPT, grammar=grammar)
    table = engine._intake._constraints._external.table
    n_free = len(table._free)
    take = table.take
    monkeypatch.setattr(table, "take", lambda: (threads.append(threading.get_ident()), take())[1])
    for after in ("", "hi", "hia"):
        engine.allowed(PROMPT, grammar=grammar, after=after, n=1)
    assert len(threads) == 3
    assert threading.get_ident() not in threads
    assert len(table._free) == n_free


def test_a_constraint_past_its_budget_is_the_callers_error_alone(engine, monkeypatch):
    def mask(matcher):
        raise ConstraintError("past its budget")

    monkeypatch.setattr(AutomatonMatcher, "mask", mask)
    with pytest.raises(ConstraintError, match="past its budget"):
        engine.allowed(PROMPT, regex="a+")
    monkeypatch.undo()
    assert engine.allowed(PROMPT, regex="a+").n_allowed == 1


def test_a_program_asks_at_the_end_of_its_own_prompt(engine):
    @sgl.function
    def program(s):
        s += sgl.user("Anna?") + sgl.assistant_begin()
        s["seen"] = s.allowed(type=bool, n=2)
        s += sgl.gen("grade", choices=None, regex="True|False", max_tokens=8, temperature=0)

    state = program.run(backend=engine)
    seen = state["seen"]
    assert seen.removed == pytest.approx(state.get_meta_info("grade")["removed"][0], abs=1e-5)
    prompt = state.snapshot().prompt
    assert likely(engine.allowed(prompt[:-1], regex="(True|False)", n=2)) == likely(seen)
    assert engine.allowed(prompt[:-1], after=state["grade"], choices=["True", "False"]).n_allowed == 2, "both EOS"
    with pytest.raises(UsageError, match="one constraint"):
        state.allowed(type=int, regex="a")


def test_a_backend_that_cannot_tell_says_so(engine):
    @sgl.function
    def program(s):
        s += "Grade: "

    with pytest.raises(Unsupported, match="an Engine can"):
        program.run(backend=sgl.MockBackend()).allowed(choices=GRADES)
    found = program.run(backend=sgl.MockBackend()).allowed(choices=GRADES, backend=engine)
    assert likely(found) == likely(engine.allowed(PROMPT, choices=GRADES))


def test_a_closed_engine_says_so(module):
    engine = Engine(module, tokenizer=byte_tokenizer(), kv_tokens=100, log=EventLog(), verify=False)
    engine.close()
    with pytest.raises(BackendClosed):
        engine.allowed(PROMPT, regex="a")
