"""The benchmarks of the GPU step, on a fake engine and on a tiny random model: every engine does the same work, the hit
rates are what they can be, the peers' adapters speak their interfaces, and what is taken away shows.

Not here: times, and the peers themselves.
"""

from __future__ import annotations

import asyncio
import json
import sys
import types
from importlib.machinery import ModuleSpec
from itertools import chain
from pathlib import Path

import pytest

from benchmarks import gpu_constrained
from benchmarks.gpu import ablation, report
from benchmarks.gpu.__main__ import main, pair
from benchmarks.gpu.alphabet import ids_of, text_of, tokenizer
from benchmarks.gpu.characters import PATTERN, n_valid
from benchmarks.gpu.engines import Unavailable, open_player
from benchmarks.gpu.fake import Fake
from benchmarks.gpu.flat import Table, flat_table
from benchmarks.gpu.goals import GOALS
from benchmarks.gpu.language import PROGRAMS as IN_LANGUAGE
from benchmarks.gpu.loop import Loop
from benchmarks.gpu.measure import measure, play, result_of
from benchmarks.gpu.optimum import Notes, optimum
from benchmarks.gpu.ours import Ours, open_engine
from benchmarks.gpu.players import Coroutines, Language
from benchmarks.gpu.session import Session
from benchmarks.gpu.sglang_peer import SGLang
from benchmarks.gpu.shapes import SHAPES, random_model, shape_of
from benchmarks.gpu.vllm_peer import VLLM
from benchmarks.gpu.workloads import DEFAULT, NAMES, build, greedy
from nbsglang.engine.model import Model
from nbsglang.engine.tokenizer import Tokenizer
from tests.tiny import byte_tokenizer, tiny_model

VOCAB = SHAPES["tiny"].vocab
SMALL = 0.03


@pytest.fixture(scope="module")
def loop():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def module():
    return random_model(SHAPES["tiny"], "cpu")


@pytest.fixture(scope="module")
def engine(module):
    with open_engine(module, tokenizer(VOCAB), kv_tokens=20_000) as engine:
        yield engine


# -------------------------------------------------------------------------------------------- workloads


def test_sizes_are_those_of_the_tables():
    works = {name: build(name, 128_256) for name in NAMES}
    assert {
        name: (len(work.items), work.n_calls, work.n_out) for name, work in works.items() if "chat" not in name
    } == {
        "few_shot": (1000, 1000, 1000),
        "select4": (200, 800, 0),
        "tree_of_thought": (32, 32 * 39, 32 * 39 * 128),
        "judge": (64, 64 * 6, 64 * (5 * 128 + 64)),
        "self_consistency": (4, 256, 256 * 128),
        "agents": (100, 600, 600 * 60),
        "plain": (256, 256, 256 * 256),
        "single": (4, 4, 4 * 128),
        "rag": (40, 40, 40 * 100),
        "skeleton": (32, 32 * 9, 32 * 880),
        "judge_one": (4, 24, 4 * 704),
        "tree_one": (2, 78, 78 * 128),
        "json": (64, 64, 64 * 400),
    }
    for name, low, high in (("chat_short", 4, 8), ("chat_long", 256, 512)):
        items = works[name].items
        assert len(items) == 64
        assert {n for item in items for n in item["n_outs"]} <= set(range(low, high + 1))
        assert all(256 <= len(part) <= 512 for item in items for part in item["parts"][1:])
        assert all(item["parts"][0][:50] == items[0]["parts"][0][:50] for item in items)
    first = {name: works[name].items[0] for name in works}
    assert len(first["few_shot"]["prompt"]) == 680
    assert len(first["rag"]["prompt"]) == 8060
    assert [len(part) for part in first["agents"]["parts"]] == [1850, 150, 150, 150, 150, 150]
    assert len({tuple(item["prompt"][:600]) for item in works["few_shot"].items}) == 10
    assert len({tuple(item["prompt"][:8000]) for item in works["rag"].items}) == 8
    assert set(GOALS) == set(NAMES)
    assert all(goal.floor <= goal.goal < goal.best_peer for goal in GOALS.values())


def test_other_seeds_have_other_tokens_and_the_same_sizes():
    for name in NAMES:
        assert build(name, VOCAB, 0, SMALL) == build(name, VOCAB, 0, SMALL)
        assert build(name, VOCAB, 0, SMALL) != build(name, VOCAB, 1, SMALL)
        assert len(build(name, VOCAB, 0, SMALL).items) == len(build(name, VOCAB, 1, SMALL).items)


@pytest.mark.parametrize("name", NAMES)
def test_programs_make_all_calls_and_tokens(name, loop):
    work, fake = build(name, VOCAB, 0, SMALL), Fake(VOCAB)
    player = Coroutines(fake, loop)
    _, played = play(player, work)
    assert len(fake.calls) + len(fake.scored) == work.n_calls == played.notes().n_prompts
    assert sum(n_out for _, n_out in fake.calls) == work.n_out == played.notes().n_out
    assert all(0 <= token < VOCAB for ids, _ in fake.calls for token in ids)
    assert len(played.outs) == len(work.items)
    result = result_of(work, [(2.0, played)])
    assert result.hit_rate is None
    assert result.programs_s == len(work.items) / 2
    assert result.valid == (0 if name == "json" else None)


def test_the_turns_of_a_chat_and_the_merge_of_a_judge_hold_what_was_generated(loop):
    fake = Fake(VOCAB)
    _, played = play(Coroutines(fake, loop), build("chat_long", VOCAB, 0, SMALL))
    work = build("chat_long", VOCAB, 0, SMALL)
    parts, outs = work.items[0]["parts"], played.outs[0]
    assert (parts[0] + outs[0] + parts[1] + outs[1] + parts[2] + outs[2] + parts[3], len(outs[3])) in fake.calls
    work = build("judge", VOCAB, 0, SMALL)
    _, played = play(Coroutines(fake, loop), work)
    item, outs = work.items[0], played.outs[0]
    assert (item["base"] + list(chain(*outs[:5])) + item["merge"], item["n_final"]) in fake.calls


def test_branches_and_programs_run_side_by_side_or_not(loop):
    work = build("judge", VOCAB, 0, SMALL)
    sides = [play(Coroutines(Fake(VOCAB), loop, parallel), work)[1] for parallel in (True, False)]
    assert [played.notes().peak for played in sides] == [5 * len(work.items), len(work.items)]
    assert sides[0].outs == sides[1].outs
    assert play(Coroutines(Fake(VOCAB), loop), build("judge_one", VOCAB, 0, SMALL))[1].notes().peak == 5
    assert play(Coroutines(Fake(VOCAB), loop), build("single", VOCAB, 0, SMALL))[1].notes().peak == 1


def test_an_engine_that_makes_fewer_tokens_is_caught(loop):
    class Lazy(Fake):
        async def call(self, ids, n_out, temperature=0.0):
            return (await super().call(ids, n_out, temperature))[1:]

    with pytest.raises(ValueError, match="made 0 tokens of 1"):
        play(Coroutines(Lazy(VOCAB), loop), build("few_shot", VOCAB, 0, SMALL))


# ---------------------------------------------------------------------------------------------- optimum


def test_optimum_knows_what_was_generated_when_it_was():
    notes = Notes()
    notes.asked([1, 2, 3])
    notes.asked([1, 2, 3])
    notes.made([1, 2, 3], [4, 5])
    notes.asked([1, 2, 3, 4, 5, 6])
    notes.made([1, 2, 3], [4, 5])
    notes.made([1, 2, 3, 4, 5, 6], [7])
    # 12 prompt tokens; hits: none, 2 (the last one's logits are wanted), and 1 2 3 4 (5 was never computed)
    assert optimum(notes) == (6 / 12, 6, 7)
    assert (notes.n_prompts, notes.n_out, notes.peak) == (3, 5, 2)
    notes = Notes()
    for choice in ([7, 8], [7, 9]):
        notes.scored([1, 2], choice)
    assert optimum(notes) == (1 / 6, 3, 4)


# ---------------------------------------------------------------------------------------- ids and models


def test_any_ids_are_a_text():
    words = Tokenizer(tokenizer(3000), n_vocab=3000)
    ids = [0, 2999, 7, 7, 1234] * 20
    assert ids_of(text_of(ids)) == ids == words.encode(text_of(ids))
    assert words.decode(ids) == text_of(ids)
    assert words.encode(text_of(ids), first=False) == ids
    assert (words.bos_ids, words.eos_ids, words.special_ids) == ((), (), frozenset())
    with pytest.raises(ValueError, match="do not fit"):
        tokenizer(2_000_000)


def test_shapes_are_llamas():
    config = SHAPES["llama8b"].config()
    assert (config.hidden_size, config.num_hidden_layers, config.num_key_value_heads) == (4096, 32, 8)
    assert (config.vocab_size, config.head_dim, config.intermediate_size) == (128_256, 128, 14_336)
    assert config.rope_parameters["rope_theta"] == 500_000.0
    assert config.eos_token_id is None
    assert shape_of("tiny", 300).vocab == 300


def test_a_random_model_has_its_frequencies_and_follows_its_seed():
    a, b, other = (random_model(SHAPES["tiny"], "cpu", seed) for seed in (0, 0, 1))
    assert a.model.rotary_emb.inv_freq[0] == 1.0
    assert a.model.norm.weight.eq(1).all()
    assert (a.lm_head.weight == b.lm_head.weight).all()
    assert not (a.lm_head.weight == other.lm_head.weight).all()
    assert a.lm_head.weight.std().item() == pytest.approx(0.25, rel=0.05)


# ------------------------------------------------------------------------------------ ours on a tiny model


@pytest.mark.parametrize("name", DEFAULT)
def test_ours_our_language_and_transformers_make_the_same(name, loop, engine, module):
    work = greedy(build(name, VOCAB, 0, SMALL))
    players = (Coroutines(Ours(engine), loop), Language(engine), Coroutines(Loop(module), loop))
    timed = [play(player, work) for player in players]
    ours, language, transformers = (played.outs for _, played in timed)
    assert ours == transformers
    assert language == ours
    rates = [result_of(work, [run]) for run in timed]
    assert rates[0].hit_rate == pytest.approx(rates[0].optimum)
    # A fork's hint computes the prompt's last token, which a sample that has nothing to add computes again.
    n_hints = players[1].watched.n_hints
    n_tokens = timed[1][1].notes().n_prompt_tokens
    assert rates[1].optimum - n_hints / n_tokens - 1e-9 <= rates[1].hit_rate <= rates[1].optimum + 1e-9
    assert rates[2].hit_rate == 0


def test_sampled_workloads_reach_their_optimum_too(loop, engine):
    for name in ("tree_of_thought", "self_consistency"):
        result = measure(Coroutines(Ours(engine), loop), name, VOCAB, SMALL, runs=2)
        assert result.hit_rate == pytest.approx(result.optimum)
        assert len(result.runs) == 2
        assert result.ttft > 0
        assert {"seconds", "programs_s", "out_s", "hit_rate", "optimum", "ttft"} <= result.for_json().keys()


def test_scores_are_those_of_transformers(loop, engine, module):
    item = build("select4", VOCAB, 0, SMALL).items[0]
    ours, theirs = (loop.run(Session(a).score(item["prompt"], item["choices"])) for a in (Ours(engine), Loop(module)))
    assert ours == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("jump", ["canonical", "off"])
def test_json_is_constrained_and_checked(loop, jump):
    with open_engine(tiny_model("llama"), byte_tokenizer(), kv_tokens=4000, jump=jump) as engine:
        ours = Ours(engine)
        session = Session(ours)
        loop.run(session.constrained([1, 2, 3], 450, 1.0))
        assert ours.computed() == 3  # however many of the generated tokens were computed
        assert (engine.stats()["generated_tokens"] > engine.stats()["steps"] + 50) is (jump == "canonical")
    assert n_valid(session.texts) == 1
    assert n_valid([session.texts[0] + "x", ""]) == 0
    assert "characters" not in IN_LANGUAGE
    with pytest.raises(NotImplementedError, match="transformers has no constraints"):
        loop.run(Session(Loop(tiny_model("llama"))).constrained([1], 5, 1.0))
    assert PATTERN.count("{1,16}") == 5


# --------------------------------------------------------------------------------------------- ablations


@pytest.fixture(scope="module")
def ablated(module):
    asked = {
        ("few_shot", 0.05): ("full", "no cache", "no tree", "fcfs", "random order"),
        ("judge", 0.05): ("full", "no cache", "no parallelism", "language, no tree", "no hint, no tree"),
        ("tree_of_thought", SMALL): ("full", "no tree", "no parallelism"),
    }
    # A fixed chunk: by itself it follows the machine's speed.
    options = {"kv_tokens": 20_000, "chunk_tokens": 256}
    return {
        name: ablation.ablate(build(name, VOCAB, 0, scale), module, VOCAB, names=variants, options=options)
        for (name, scale), variants in asked.items()
    }


def test_each_mechanism_shows_in_the_hit_rate(ablated):
    rates = {name: {variant: r.hit_rate for variant, r in results.items()} for name, results in ablated.items()}
    few_shot, judge = rates["few_shot"], rates["judge"]
    assert few_shot["full"] == pytest.approx(ablated["few_shot"]["full"].optimum)
    assert few_shot["no cache"] == judge["no cache"] == 0
    assert few_shot["no tree"] == 0  # no question begins with a whole earlier one
    assert few_shot["fcfs"] < few_shot["full"] / 2  # the questions come in turns from all subjects
    assert few_shot["random order"] < few_shot["full"]
    assert judge["no hint, no tree"] == 0  # the hint made the essay a whole prompt that branches can find
    assert judge["language, no tree"] > 0.3
    assert 0 < rates["tree_of_thought"]["no tree"] < rates["tree_of_thought"]["full"]


def test_without_parallelism_fewer_run_at_once(ablated):
    for name in ("judge", "tree_of_thought"):
        assert ablated[name]["no parallelism"].peak < ablated[name]["full"].peak
    assert "no parallelism" in ablation.table(ablated["judge"])


def test_hints_are_only_given_where_they_are_wanted(engine):
    work = build("judge", VOCAB, 0, SMALL)
    hinting, silent = Language(engine), Language(engine, hint=False)
    outs = [play(player, work)[1].outs for player in (hinting, silent)]
    assert hinting.watched.n_hints == len(work.items)
    assert silent.watched.n_hints == 0
    assert outs[0] == outs[1]


def test_a_flat_table_is_laid_over_the_engine_for_a_while(engine, loop):
    player = Coroutines(Ours(engine), loop)
    work = greedy(build("agents", VOCAB, 0, SMALL))
    expected = play(player, work)[1].outs
    with flat_table(engine) as table:
        assert isinstance(table, Table)
        _, played = play(player, work)
        assert played.outs == expected
        rate = result_of(work, [(1.0, played)]).hit_rate
    assert not {"_cacheable", "_next", "finish", "flush"} & vars(engine._loop._core.scheduler).keys()
    result = measure(player, "agents", VOCAB, SMALL)
    assert 0 < rate < result.hit_rate == pytest.approx(result.optimum)


# ----------------------------------------------------------------------------------------------- the peers


class FakeVLLM(types.ModuleType):
    """What the adapter uses of vLLM; remembers what it was asked."""

    def __init__(self):
        super().__init__("vllm")
        self.__spec__ = ModuleSpec("vllm", None)
        self.sampling_params = types.ModuleType("vllm.sampling_params")
        self.sampling_params.RequestOutputKind = types.SimpleNamespace(FINAL_ONLY="final only")
        self.SamplingParams = self.TokensPrompt = lambda **fields: types.SimpleNamespace(**fields)
        self.AsyncEngineArgs = lambda **fields: fields
        self.AsyncLLMEngine = types.SimpleNamespace(from_engine_args=self._open)
        self.asked, self.n_resets, self.closed, self.arguments = {}, 0, False, None

    def _open(self, arguments):
        asyncio.get_running_loop()
        self.arguments = arguments
        return self

    async def generate(self, prompt, params, request_id):
        assert request_id not in self.asked
        self.asked[request_id] = (prompt.prompt_token_ids, params)
        await asyncio.sleep(0)
        completion = types.SimpleNamespace(token_ids=[1] * params.max_tokens)
        yield types.SimpleNamespace(outputs=[completion], num_cached_tokens=1)

    async def reset_prefix_cache(self):
        self.n_resets += 1

    def shutdown(self):
        self.closed = True


class FakeSGLang(types.ModuleType):
    """What the adapter uses of SGLang; remembers what it was asked."""

    def __init__(self):
        super().__init__("sglang")
        self.__spec__ = ModuleSpec("sglang", None)
        self.asked, self.n_resets, self.closed, self.arguments = [], 0, False, None
        self.tokenizer_manager = types.SimpleNamespace(flush_cache=self._flush)

    def Engine(self, **arguments):  # noqa: N802 (its name)
        asyncio.get_running_loop()
        self.arguments = arguments
        return self

    async def async_generate(self, prompt=None, sampling_params=None, input_ids=None):
        self.asked.append((input_ids, sampling_params))
        await asyncio.sleep(0)
        made = [2] * sampling_params["max_new_tokens"]
        return {"output_ids": made, "meta_info": {"cached_tokens": 1, "prompt_tokens": len(input_ids)}}

    async def _flush(self):
        self.n_resets += 1

    def shutdown(self):
        self.closed = True


def test_vllm_is_asked_in_its_own_words(loop, monkeypatch):
    fake = FakeVLLM()
    monkeypatch.setitem(sys.modules, "vllm", fake)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", fake.sampling_params)
    opened = open_player("vllm", SHAPES["tiny"], "cpu", loop, {"max_num_seqs": 99})
    assert fake.arguments["load_format"] == "dummy"
    assert fake.arguments["max_num_seqs"] == 99
    assert json.loads((Path(fake.arguments["model"]) / "config.json").read_text())["vocab_size"] == VOCAB
    fake.asked.clear()
    for name in DEFAULT:
        work = build(name, VOCAB, 0, SMALL)
        _, played = play(opened.player, work)
        assert result_of(work, [(1.0, played)]).hit_rate == pytest.approx(work.n_calls / played.notes().n_prompt_tokens)
    assert fake.n_resets == len(DEFAULT)
    params = {params.output_kind for _, params in fake.asked.values()}
    assert params == {"final only"}
    assert all(params.ignore_eos and not params.detokenize for _, params in fake.asked.values())
    opened.player.close()
    assert fake.closed
    assert not hasattr(VLLM, "score")


def test_sglang_is_asked_in_its_own_words(loop, monkeypatch):
    fake = FakeSGLang()
    monkeypatch.setitem(sys.modules, "sglang", fake)
    opened = open_player("sglang", SHAPES["tiny"], "cpu", loop)
    assert fake.arguments["load_format"] == "dummy"
    assert fake.arguments["skip_tokenizer_init"]
    for name in DEFAULT:
        work = build(name, VOCAB, 0, SMALL)
        _, played = play(opened.player, work)
        assert result_of(work, [(1.0, played)]).hit_rate == pytest.approx(work.n_calls / played.notes().n_prompt_tokens)
    assert fake.n_resets == len(DEFAULT)
    assert all(params["ignore_eos"] for _, params in fake.asked)
    assert {params["temperature"] for _, params in fake.asked} == {0.0, 1.0}
    opened.player.close()
    assert fake.closed
    assert not hasattr(SGLang, "score")


def test_a_peer_that_is_not_there_is_skipped(loop, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("vllm", "sglang"):
        with pytest.raises(Unavailable, match=name):
            open_player(name, SHAPES["tiny"], "cpu", loop)
    assert main(["--model", "tiny", "--engine", "vllm", "--device", "cpu"]) == 3
    assert "skipped: vllm is not installed" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize("engine_name", ["ours", "language", "transformers"])
def test_the_command_writes_what_was_measured(engine_name, tmp_path, capsys):
    out = tmp_path / "new" / "result.json"
    arguments = ["--model", "tiny", "--device", "cpu", "--scale", "0.02", "--engine", engine_name, "--out", str(out)]
    if engine_name != "transformers":
        arguments += ["--option", "kv_tokens=20000"]
    assert main([*arguments, "--only", "few_shot", "single", "json", "--commit", "abc"]) == 0
    result = json.loads(out.read_text())
    assert {"engine", "versions", "machine", "commit", "command", "workloads", "start_up_s"} <= result.keys()
    assert result["commit"] == "abc"
    assert result["workloads"].keys() == {"few_shot", "single"}
    assert result["workloads"]["few_shot"]["seconds"] > 0
    shown = capsys.readouterr().out
    assert "json: skipped" in shown
    assert "few_shot" in shown


def test_options_of_the_engine_are_read():
    assert pair("kv_tokens=200") == ("kv_tokens", 200)
    assert pair("policy=fcfs") == ("policy", "fcfs")
    assert pair("graphs=False") == ("graphs", False)


def test_table_and_picture_say_whether_a_goal_is_met():
    workloads = {
        "judge": {"seconds": 5.0, "out_s": 9000.0, "hit_rate": 0.8, "optimum": 0.81, "ttft": 0.1},
        "plain": {"seconds": 13.0, "out_s": 5000.0, "optimum": 0.0},
    }
    lines = report.table(workloads).splitlines()
    assert "1.71x" in lines[1]
    assert " yes" in lines[1]
    assert " no" in lines[2]
    assert "1.71x" not in report.table(workloads, comparable=False)
    picture = report.picture(workloads)
    assert picture.startswith("<svg")
    assert picture.count("<text") == 5


def test_texts_under_a_constraint_and_under_none_have_equal_numbers_of_tokens(tmp_path, capsys):
    out = tmp_path / "new" / "constrained.json"
    sizes = ["--rows", "3", "--prompt", "5", "--new", "12", "--runs", "1", "--temperatures", "1"]
    arguments = ["--model", "tiny", "--device", "cpu", "--only", "characters", *sizes, "--out", str(out)]
    assert gpu_constrained.main(arguments) == 0
    written = json.loads(out.read_text())
    assert {"engine", "versions", "machine", "command", "rows"} <= written.keys()
    found = written["vocabularies"]["characters"]["temperature 1"]
    assert found["ratio"] == pytest.approx(found["bound"]["tokens_s"] / found["free"]["tokens_s"], rel=1e-3)
    assert found["first"]["parts_ms"].keys() == {"plan", "pack", "run", "commit"}
    assert "characters, temperature 1" in capsys.readouterr().out


def test_a_constraint_that_texts_come_to_the_end_of_is_no_benchmark(module):
    words, made = Tokenizer(tokenizer(VOCAB), n_vocab=VOCAB), Model(module, "tiny")
    sizes = gpu_constrained.Sizes(2, 4, 12, 1)
    with pytest.raises(ValueError, match="came to its end"):
        gpu_constrained.compared(made, words, "[\\U00010000-\\U0001FFFF]{6}", sizes, [0.0])
    made.release()


def test_the_ablations_have_a_command(tmp_path, capsys):
    out = tmp_path / "ablation.json"
    arguments = ["--model", "tiny", "--device", "cpu", "--scale", "0.02", "--only", "few_shot", "--out", str(out)]
    ablation.main([*arguments, "--variants", "full", "no cache", "--pool", "0", "--option", "kv_tokens=20000"])
    found = json.loads(out.read_text())["workloads"]["few_shot"]
    assert found["no cache"]["hit_rate"] == 0 < found["full"]["hit_rate"]
    assert "no cache" in capsys.readouterr().out
