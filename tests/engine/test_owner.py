"""The module belongs to its user: it keeps working beside the engine, and its changes reach the cache."""

from __future__ import annotations

import threading

import pytest
import torch

from nbsglang.engine.engine import Engine
from nbsglang.events import Control
from tests.tiny import byte_tokenizer, tiny_model

PROMPT = list(range(30, 60))


def greedy(module: torch.nn.Module, prompt: list[int], n: int = 12) -> list[int]:
    ids = torch.tensor([prompt])
    with torch.no_grad():
        out = module.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, eos_token_id=None)
    return out[0, len(prompt) :].tolist()


def ours(engine: Engine, prompt: list[int], n: int = 12) -> list[int]:
    return list(engine.generate(prompt, max_tokens=n, temperature=0, ignore_eos=True).ids)


@pytest.fixture
def module():
    return tiny_model("llama")


@pytest.fixture
def engine(module):
    with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=400) as engine:
        yield engine


def flushes(engine: Engine) -> int:
    return sum(isinstance(e.body, Control) and "weights" in e.body.detail for e in engine.log.since())


def test_a_training_step_between_two_runs_flushes_the_cache(module, engine):
    before = ours(engine, PROMPT)
    n = flushes(engine)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    module.train()
    module(input_ids=torch.tensor([PROMPT]), labels=torch.tensor([PROMPT])).loss.backward()
    optimizer.step()
    after = ours(engine, PROMPT)
    assert module.training, "the user's mode is as it was"
    module.eval()
    assert after == greedy(module, PROMPT)
    assert after != before
    assert flushes(engine) == n + 1
    assert ours(engine, PROMPT) == after
    assert flushes(engine) == n + 1, "nothing changed since"


def test_writes_through_data_are_noticed(module, engine):
    ours(engine, PROMPT)
    for parameter in module.parameters():
        parameter.data.mul_(1.5)  # raises no version
    assert ours(engine, PROMPT) == greedy(module, PROMPT)


def test_loading_a_state_dict_is_noticed(module, engine):
    ours(engine, PROMPT)
    module.load_state_dict(tiny_model("llama", seed=5).state_dict())
    assert ours(engine, PROMPT) == greedy(tiny_model("llama", seed=5), PROMPT)


def test_generate_and_forward_work_while_the_engine_is_open(module, engine):
    expected = greedy(tiny_model("llama"), PROMPT)
    wrong: list[str] = []

    def user() -> None:
        for _ in range(6):
            if greedy(module, PROMPT) != expected:
                wrong.append("generate")

    thread = threading.Thread(target=user)
    thread.start()
    for i in range(6):
        if ours(engine, PROMPT[i:]) != greedy(tiny_model("llama"), PROMPT[i:]):
            wrong.append("engine")
    thread.join()
    assert not wrong


def test_a_failing_call_of_the_user_does_not_block_the_engine(module, engine):
    with pytest.raises((IndexError, RuntimeError)):
        module(input_ids=torch.tensor([[10_000]]))
    assert len(ours(engine, PROMPT)) == 12


def test_a_module_with_a_hook_runs_its_hook(module):
    calls = []

    def double(_module, _args, output):
        calls.append(1)
        return output * 1.25

    handle = module.model.layers[0].mlp.register_forward_hook(double)
    with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=400) as engine:
        assert ours(engine, PROMPT) == greedy(module, PROMPT)
        assert calls
    handle.remove()
    assert greedy(module, PROMPT) == greedy(tiny_model("llama"), PROMPT)


def test_switching_a_lora_adapter_switches_the_answers():
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    config = LoraConfig(r=4, lora_alpha=64, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    module = get_peft_model(tiny_model("llama"), config, adapter_name="one")
    module.add_adapter("two", config)
    module.eval()
    with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=400) as engine:
        texts = {}
        for adapter in ("one", "two", "one"):
            module.set_adapter(adapter)
            ids = ours(engine, PROMPT)
            assert ids == greedy(module, PROMPT)
            assert texts.setdefault(adapter, ids) == ids
        assert texts["one"] != texts["two"]
        with module.disable_adapter():
            assert ours(engine, PROMPT) == greedy(tiny_model("llama"), PROMPT)


def test_close_gives_the_module_back_as_it_was(module):
    before = (module.config._attn_implementation, dict(module._forward_hooks), dict(module._forward_pre_hooks))
    weights = {name: p.clone() for name, p in module.named_parameters()}
    engine = Engine(module, tokenizer=byte_tokenizer(), kv_tokens=100)
    ours(engine, PROMPT)
    engine.close()
    assert (module.config._attn_implementation, dict(module._forward_hooks), dict(module._forward_pre_hooks)) == before
    assert all(torch.equal(p, weights[name]) for name, p in module.named_parameters())


def test_a_module_made_in_inference_mode_is_served():
    with torch.inference_mode():
        module = tiny_model("llama")
    with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=400) as engine:
        first = ours(engine, PROMPT)
        with torch.inference_mode():
            module.register_buffer("extra", torch.ones(3))
        assert ours(engine, PROMPT) == first


def test_a_long_rope_model_is_served_up_to_its_original_context():
    from transformers import AutoModelForCausalLM, Phi3Config

    from nbsglang.errors import PromptTooLong

    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 6, "long_factor": [4.0] * 6}
    config = Phi3Config(
        vocab_size=300,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        original_max_position_embeddings=64,
        rope_parameters={**rope, "original_max_position_embeddings": 64},
        pad_token_id=0,
    )
    module = AutoModelForCausalLM.from_config(config).eval()
    with Engine(module, tokenizer=byte_tokenizer(), kv_tokens=400) as engine:
        assert ours(engine, PROMPT) == greedy(module, PROMPT)
        with pytest.raises(PromptTooLong, match="64"):
            engine.generate(list(range(70)), max_tokens=1)
