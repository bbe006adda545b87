"""Token healing: what is taken back, what may come instead, and that texts go on exactly after their prompts."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import cache

import pytest
import torch

import nbsglang as sgl
from nbsglang.calls import Constraint, GenCall, Generated, RoleBegin, RoleEnd, SamplingParams, Text
from nbsglang.engine.engine import Engine
from nbsglang.engine.grammar.constraints import Constraints
from nbsglang.engine.heal import End, Healer, HealingMatcher
from nbsglang.engine.inbox import Waiting
from nbsglang.engine.prompt import Renderer
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import ConstraintError, UsageError
from nbsglang.events import EventLog, Healed
from nbsglang.viz.fold import fold
from tests.engine.grammar.oracle import allowed
from tests.tiny import EOS, IM_END, byte_tokenizer, tiny_model

MERGES = (
    ": /", ":/ /", "a b", "ab c", "c d", "b c", "h t", "t p", "ht tp", "Ĥ x", "Ã Ĥx", "x y", "xy z", "q r", "qr s",
    "z :", "w :",
)  # fmt: skip
# Ã and Ĥ are how a vocabulary spells the two bytes of Â
PROMPTS = ["go to http:", "what: ab", "xy", "some xy", "a b c: q", "just: ", "an end w:", "number xyz", "xyzxyz ab"]


@cache
def words() -> Tokenizer:
    return Tokenizer(byte_tokenizer(merges=MERGES), n_vocab=300, eos_ids=[EOS])


@pytest.fixture(scope="module")
def engine():
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(merges=MERGES), kv_tokens=2000, log=EventLog()) as engine:
        yield engine
        stats = engine.stats()
        assert stats["kv_locked"] == stats["running"] == 0
        assert stats["kv_free"] + stats["kv_cached"] == stats["kv_tokens"]


@pytest.fixture(scope="module")
def healer() -> Healer:
    return Healer(words(), words().special_ids)


def ids_of(text: str) -> list[int]:
    return words().encode(text)


def n_back(ids: list[int]) -> int:
    """By definition: the most last tokens whose text begins a longer token."""
    table = words().bytes_table
    found = 0
    for n in range(1, len(ids)):
        if any(not table[token] for token in ids[-n:]):
            break
        data = b"".join(table[token] for token in ids[-n:])
        whole = data.decode(errors="replace").encode() == data
        if whole and any(len(other) > len(data) and other.startswith(data) for other in table):
            found = n
    return found


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("http:", 1),
        ("http:/", 1),  # ":/" is a token, "://" goes on
        ("http://", 0),
        ("12ab", 1),
        ("12abc", 0),
        ("12cc", 1),
        ("12x", 1),
        ("12 ", 0),
        ("x", 0),  # never all of it
        ("12Â", 2),  # two tokens of one byte: the last alone is half a character
        ("12w:", 0),
        ("12w", 1),
        ("12<|im_end|>", 0),
        ("12h", 1),
        ("12ht", 1),
    ],
)
def test_as_much_is_taken_back_as_a_longer_token_could_absorb(healer, text, taken):
    ids = words().encode(text, special=True)
    end = healer.end(ids, len(ids))
    assert len(end.ids) == taken == n_back(ids)
    assert end.ids == tuple(ids[len(ids) - taken :])
    assert end.text == words().decode(end.ids)


def test_any_run_of_tokens_is_taken_back_by_the_definition(healer):
    draw = random.Random(0)
    for _ in range(3000):
        ids = [draw.choice([*range(97, 123), 58, 47, *range(256, 260 + len(MERGES)), 0xC3]) for _ in range(5)]
        assert len(healer.end(ids, 5).ids) == n_back(ids), ids
        assert len(healer.end(ids, 2).ids) == n_back(ids[-3:]), ids


def expected_mask(end: End, accepted: list[int]) -> set[int] | None:
    """By definition what may come after some tokens; None where the end of the prompt is complete."""
    table, n = words().bytes_table, len(accepted)
    if accepted != list(end.ids[:n]) or n == len(end.ids):
        return None
    rest = b"".join(table[token] for token in end.ids[n:])
    return {end.ids[n]} | {token for token, data in enumerate(table) if len(data) > len(rest) and data.startswith(rest)}


@pytest.mark.parametrize(
    "constraint",
    [
        None,
        Constraint("regex", "[/a-z]{2,5}"),
        Constraint("choices", ("//", "/x", "bc", "yz")),
        Constraint("grammar", "start: /[a-z\\/]+/"),
    ],
)
def test_walks_forks_and_rollbacks(healer, constraint):
    constraints = Constraints(words().bytes_table, words().eos_ids, words().special_ids)
    ends = [healer.end(ids, len(ids)) for ids in map(ids_of, PROMPTS)]
    ends = [*filter(lambda end: end.ids, ends), End((58, 47), "x", ())]
    ends[-1] = healer.end([0, 113, 114], 3)  # "q", "r" apart: two tokens that a third could absorb
    assert len(ends[-1].ids) == 2
    draw = random.Random(1)
    for end in ends:
        for _ in range(6):
            inner = constraints.compile(constraint) if constraint else None
            free = constraints.compile(constraint) if constraint else None
            if inner is not None:
                inner.seed(end.text.encode())
                free.seed(end.text.encode())
            matcher, taken = HealingMatcher(end, inner), []
            while (within := expected_mask(end, taken)) is not None or (inner is not None and not matcher.ended):
                mask = allowed(matcher)
                limits = allowed(free) if free else within
                assert mask == (limits if within is None else limits & within)
                assert mask
                assert matcher.done is (within is None and free.done)
                other = matcher.fork()
                for token in draw.sample(range(300), 30):
                    assert other.fork().accept(token) == (token in mask)
                token = draw.choice(sorted(mask - set(words().eos_ids)) or sorted(mask))
                assert matcher.accept(token)
                if free is not None:
                    assert free.accept(token)
                taken.append(token)
                if draw.random() < 0.4:  # some steps back and on again
                    n = draw.randint(0, len(taken))
                    matcher.rollback(n)
                    if n:
                        again = expected_mask(end, taken[:-n])
                        assert again is None or allowed(matcher) <= again
                    assert all(map(matcher.accept, taken[len(taken) - n :]))
                if len(taken) > 12:
                    break
            with pytest.raises(ConstraintError, match="required prefix"):
                matcher.seed(b"x")
            matcher.close()


def greedy(prompt: str, max_tokens: int, pattern: str | None = None) -> tuple[str, str]:
    """The prompt's healed end and the text after it, by the definition: whole sequences through transformers."""
    ids = ids_of(prompt)
    n = n_back(ids)
    end = End(tuple(ids[len(ids) - n :])) if n else End()
    matcher = None
    if pattern is not None:
        constraints = Constraints(words().bytes_table, words().eos_ids, words().special_ids)
        matcher = constraints.compile(Constraint("regex", words_regex(end, pattern)))
    ids, taken = ids[: len(ids) - n], []
    size = len(words().decode(end.ids))
    while True:
        within = expected_mask(end, taken)
        n_counted = len(taken) - sum(expected_mask(end, taken[: k + 1]) is not None for k in range(len(taken)))
        n_counted -= taken[:n] == list(end.ids) and n > 0  # the last of the prompt's own tokens is none of the text
        if within is None and (n_counted >= max_tokens or (matcher is not None and matcher.ended)):
            break
        with torch.inference_mode():
            logits = tiny_model("llama")(torch.tensor([[*ids, *taken]])).logits[0, -1]
        may = set(range(300)) if within is None else within
        if matcher is not None:
            may &= allowed(matcher)
        token = max(may, key=lambda token: logits[token].item())
        if token in (EOS, IM_END):
            break
        taken.append(token)
        assert matcher is None or matcher.accept(token)
    return words().decode(end.ids), words().decode(taken)[size:]


def words_regex(end: End, pattern: str) -> str:
    return re.escape(words().decode(end.ids)) + f"(?:{pattern})"


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_model_chooses_among_what_may_come(engine, prompt):
    out = engine.generate(prompt, heal=True, max_tokens=5, temperature=0)
    over, text = greedy(prompt, 5)
    assert (out.text, out.over) == (text, over)
    assert words().decode(out.ids) == over + text
    whole = engine.generate(prompt, max_tokens=5, temperature=0)
    assert over or (out.text, out.ids) == (whole.text, whole.ids)
    assert whole.over == ""
    assert "".join(engine.stream(prompt, heal=True, max_tokens=5, temperature=0)) == text


@pytest.mark.parametrize("jump", ["canonical", "exact", "off"])
def test_constraints_begin_after_the_prompt(jump):
    patterns = ["//[a-d]{1,3}", "(//ab|bc|yz)c?", "[/a-z]{4}"]
    with Engine(
        tiny_model("llama"), tokenizer=byte_tokenizer(merges=MERGES), kv_tokens=2000, jump=jump, log=EventLog()
    ) as engine:
        for prompt in PROMPTS:
            for pattern in patterns:
                out = engine.generate(prompt, heal=True, regex=pattern, max_tokens=30, temperature=0)
                assert re.fullmatch(pattern, out.text), out
                assert words().decode(out.ids) == out.over + out.text
                assert out.finish_reason in ("constraint", "stop")
                if jump != "canonical":  # which may spell what is forced in another way
                    assert (out.over, out.text) == greedy(prompt, 30, pattern)
        out = engine.generate("go to http:", heal=True, choices=["//ab", "//cd"], max_tokens=30)
        assert out.over + out.text in ("://ab", "://cd")
        assert jump != "canonical" or words().decode(out.ids[:1]) == "://", "as the tokenizer spells it"
        out = engine.generate("go to http:", heal=True, grammar='start: "//" /[a-c]{2}/', max_tokens=30)
        assert re.fullmatch("//[a-c]{2}", out.text)
        assert out.over == ":"


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("max_tokens", [1, 2, 3])
def test_tokens_within_the_prompt_are_not_counted(engine, prompt, max_tokens):
    seen = set()
    for seed in range(8):
        options = {"heal": True, "max_tokens": max_tokens, "ignore_eos": True, "temperature": 3.0, "seed": seed}
        out = engine.generate(prompt, **options)
        n_within = int(out.over != "" and words().decode(out.ids[:1]) == out.over)
        assert len(out.ids) - n_within == max_tokens
        assert out.finish_reason == "length"
        seen.add(n_within)
        with_min = engine.generate(prompt, **options | {"ignore_eos": False, "min_tokens": max_tokens})
        assert with_min.finish_reason == "length"
        alone = engine.generate(prompt, **options, n=1)
        assert alone.text == out.text
    assert seen <= {0, 1}


def test_several_texts_heal_each_for_itself(engine):
    outs = engine.generate("go to http:", heal=True, n=12, temperature=3.0, seed=1, max_tokens=4)
    assert len({out.text for out in outs}) > 6
    assert {out.over for out in outs} == {":"}
    assert len({out.ids[0] for out in outs}) > 1, "the prompt's own token and others"
    assert all(words().decode(out.ids).startswith(":") for out in outs)


def test_stops_are_looked_for_in_the_new_text_alone(engine):
    out = engine.generate("go to http:", heal=True, regex="//a:b//c", stop=":", max_tokens=30, temperature=0)
    assert (out.text, out.finish_reason) == ("//a", "stop")
    pieces = list(engine.stream("go to http:", heal=True, regex="//a:b//c", stop=":b", max_tokens=30, temperature=0))
    assert "".join(pieces) == "//a"
    cut = engine.generate("go to http:", heal=True, regex="//a:b//c", stop="//", max_tokens=30, temperature=0)
    assert (cut.text, cut.ids, cut.over) == ("", (), ""), "the only token is cut in two: the prompt stays as it is"
    cut = engine.generate("go to http:", heal=True, regex="//a:b//c", stop="/a", max_tokens=30, temperature=0)
    assert (cut.text, cut.ids) == ("/", ())


def test_ids_stay_as_they_are(engine):
    with pytest.raises(UsageError, match="as text"):
        engine.generate(ids_of("go to http:"), heal=True)
    with pytest.raises(UsageError, match="True or False"):
        engine.generate("go to http:", heal="yes")
    inbox = Waiting()
    generated = (Text("go to "), Generated("http:", tuple(ids_of("http:"))))
    engine.submit(GenCall("healed", generated, SamplingParams(max_tokens=3, temperature=0, heal=True)), inbox)
    assert inbox.get().completions[0].over == ""


@pytest.mark.parametrize("prompt", ["x", "12<|im_end|>", "12 ", "12xyz"])
def test_where_nothing_can_merge_nothing_changes(engine, prompt):
    plain = engine.generate(prompt, max_tokens=6, temperature=0)
    healed = engine.generate(prompt, max_tokens=6, temperature=0, heal=True)
    assert healed[:3] == plain[:3]
    assert healed.over == ""


def test_a_prompt_that_fills_the_context_heals_within_it():
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(merges=MERGES), kv_tokens=20, log=EventLog()) as engine:
        for n in range(12, 20):
            prompt = "0" * (n - 2) + "t:"
            assert len(ids_of(prompt)) == n
            out = engine.generate(prompt, heal=True, max_tokens=50, ignore_eos=True, temperature=0)
            assert out.over == ":"
            assert len(out.ids) in (20 - n, 20 - n + 1)


# ------------------------------------------------------------------------------------------- programs


def prompt_ids(engine: Engine, state) -> list[int]:
    return engine._renderer.encode(state._stream.prompt).ids


def test_a_program_goes_on_with_the_tokens_that_the_model_wrote(engine):
    @sgl.function
    def program(s):
        s += "go to http:" + sgl.gen("site", max_tokens=4, heal=True, regex="//[a-d]{3}", temperature=0)
        s += " and ab" + sgl.gen("more", max_tokens=3, heal=True, temperature=0, ignore_eos=True)

    state = program.run(backend=engine)
    assert state.text() == f"go to http:{state['site']} and ab{state['more']}"
    assert re.fullmatch("//[a-d]{3}", state["site"])
    ids = prompt_ids(engine, state)
    assert words().decode(ids) == state.text()
    assert 261 in ids, ids  # "://", in the place of ":"
    assert 58 not in ids
    again = engine.generate(ids, max_tokens=1)
    assert again.usage.cached_tokens >= len(ids) - 2, "what was computed is what the prompt is made of"


def test_branches_heal_the_end_of_what_they_share(engine):
    @sgl.function
    def program(s, heal):
        s += "they all go to http:"
        branches = s.fork(3)
        for number, branch in enumerate(branches):
            branch += sgl.gen("site", max_tokens=4, heal=heal, seed=number, regex="//[a-d]{3}")
        s["sites"] = [branch["site"] for branch in branches]
        branches.join("concate_and_append")
        s += " so ab" + sgl.gen("end", max_tokens=2, temperature=0, heal=heal)

    engine.flush_cache()
    healed = program.run(heal=True, backend=engine)
    sites = healed["sites"]
    assert healed.text().startswith("they all go to http:" + "".join(sites) + " so ab" + healed["end"])
    assert words().decode(prompt_ids(engine, healed)) == healed.text()
    tree = engine.tree()
    edges = [words().decode(tokens) for _, _, tokens, _, _ in tree.nodes]
    assert any(edge.startswith("they all go to http") for edge in edges)
    text = {node: (parent, tokens) for node, parent, tokens, _, _ in tree.nodes}
    paths = set()
    for node in text:
        path, at = [], node
        while at in text:
            at, tokens = text[at]
            path = [*tokens, *path]
        paths.add(tuple(path))
    kept = ids_of("they all go to http:")[:-1]
    for ids in paths:  # after the kept part comes the prompt's own token (of the hint) or one that absorbs it
        if len(ids) > len(kept) and list(ids[: len(kept)]) == kept:
            assert ids[len(kept)] in (58, 260, 261)
    assert engine.stats()["kv_locked"] == 0


def test_in_an_open_message_the_templates_own_tokens_stay(engine):
    renderer = Renderer(words())
    prompt = (RoleBegin("user"), Text("hi ab"), RoleEnd("user"), RoleBegin("assistant"), Text("http:"))
    ids = renderer.encode(prompt).ids
    inbox = Waiting()
    engine.submit(GenCall("chat", prompt, SamplingParams(max_tokens=4, temperature=0, heal=True)), inbox)
    done = inbox.get().completions[0]
    assert done.over == ":"
    closed = (*prompt, *done.segments(), RoleEnd("assistant"))
    assert renderer.encode(closed).ids[: len(ids) - 1 + len(done.ids)] == [*ids[:-1], *done.ids]
    bare = (RoleBegin("user"), Text("hi ab"), RoleEnd("user"), RoleBegin("assistant"))
    engine.submit(GenCall("bare", bare, SamplingParams(max_tokens=4, temperature=0, heal=True)), inbox)
    assert inbox.get().completions[0].over == ""


def test_generated_text_whose_place_has_changed_is_encoded_as_text():
    renderer = Renderer(words())
    healed = Generated("//ab", (261, 262), over=":")
    assert renderer.encode((Text("http:"), healed)).ids == [*ids_of("http"), 261, 262]
    assert renderer.encode((Text("http:/"), healed)).ids == [*ids_of("http:/"), *ids_of("//ab")]
    assert renderer.encode((Text("at"), healed)).ids == [*ids_of("at"), *ids_of("//ab")]
    assert renderer.encode((healed,)).ids == ids_of("//ab")
    twice = renderer.encode((Text("http:"), healed, healed, Text("c"))).ids
    assert twice == [*ids_of("http"), 261, 262, *ids_of("//ab"), *ids_of("c")]


def test_a_backend_that_cannot_heal_refuses_and_a_script_needs_not():
    @sgl.function
    def program(s):
        s += "a" + sgl.gen("x", heal=True)

    assert program.run(backend=sgl.MockBackend("b"))["x"] == "b"
    poor = sgl.MockBackend("b", capabilities=replace(sgl.MockBackend().capabilities, heal=False))
    with pytest.raises(sgl.NbsglangError, match="token healing"):
        program.run(backend=poor).text()


def test_views_show_the_new_text_alone():
    log = EventLog()
    with Engine(tiny_model("llama"), tokenizer=byte_tokenizer(merges=MERGES), kv_tokens=500, log=log) as engine:

        @sgl.function
        def program(s):
            s += "go to http:" + sgl.gen("site", max_tokens=6, heal=True, temperature=0, ignore_eos=True)

        state = program.run(backend=engine, log=log)
        text = state["site"]
    events = log.since(0)
    assert [event.body.over for event in events if isinstance(event.body, Healed)] == [":"]
    ended = next(n for n, event in enumerate(events) if type(event.body).__name__ == "CallEnded")
    before = fold(events[:ended])
    (stream,) = before.streams.values()
    assert before.live_text(stream) == text
    first = next(n for n, event in enumerate(events) if isinstance(event.body, Healed))
    early = fold(events[: first + 1])
    assert early.live_text(next(iter(early.streams.values()))) == ""


@pytest.mark.smollm2
def test_the_default_model_goes_on_as_its_tokenizer_writes(smollm2_folder):
    with Engine("smollm2", kv_tokens=1000, log=EventLog()) as engine:
        prompts = ["The site is at http:", "The capital of France is ", "for i in ra", "She said hello to the wor"]
        for prompt, begin in zip(prompts, ["//", "Paris", "nge", "ld"], strict=True):
            out = engine.generate(prompt, heal=True, max_tokens=5, temperature=0)
            assert out.text.startswith(begin)
            ids = engine.tokenizer(prompt)["input_ids"]
            kept = ids[: len(ids) - len(engine.tokenizer(out.over)["input_ids"])]
            whole = engine.tokenizer(prompt + out.text)["input_ids"]
            assert [*kept, out.ids[0]] == whole[: len(kept) + 1], "the seam is the tokenizer's own"
        assert engine.generate(prompts[0], max_tokens=5, temperature=0).over == ""
