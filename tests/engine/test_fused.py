"""A model of the common shape on merged weights gives its own logits, and is given back as it was."""

from __future__ import annotations

import copy

import pytest
import torch

from nbsglang.engine.fused import fused
from nbsglang.engine.pool import KVPool, LayerShape
from tests.tiny import tiny_model

SHAPED = ["llama", "qwen2", "qwen3"]
OTHERS = ["gemma2", "gemma3", "mixtral", "gpt2", "gpt_oss", "falcon"]


def causal(slots: torch.Tensor, n_heads: int):
    """Attention of one request's whole prompt, written out."""

    def attend(query, k_pool, v_pool):
        group = n_heads // k_pool.shape[1]
        keys, values = (pool[slots].transpose(0, 1).repeat_interleave(group, 0) for pool in (k_pool, v_pool))
        return torch.nn.functional.scaled_dot_product_attention(
            query.transpose(0, 1), keys, values, is_causal=True
        ).transpose(0, 1)

    return attend


def logits_of(module: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return module(ids[None], use_cache=False).logits[0]


@pytest.mark.parametrize("kind", SHAPED)
def test_logits_are_the_modules_own(kind):
    module = tiny_model(kind)
    ids = torch.arange(3, 30)
    expected = logits_of(module, ids)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = fused(module)
    assert model is not None
    config = module.config
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    shape = LayerShape(config.num_key_value_heads, dim, dim)
    pool = KVPool((shape,) * config.num_hidden_layers, 50, torch.float32, torch.device("cpu"))
    slots, positions = torch.arange(27).flip(0) + 5, torch.arange(27)
    attend = causal(slots, config.num_attention_heads)
    with torch.inference_mode():
        rows, hidden = model.forward(ids, positions, slots, pool, attend)
        assert rows.shape == hidden.shape == (27, config.hidden_size)
        none = model.logits(rows[:0], hidden[:0])
        wanted = torch.tensor([3, 26])
        some = model.logits(rows[wanted], hidden[wanted])
        logits = model.logits(rows, hidden)  # last: it may overwrite both
    assert none.shape == (0, expected.shape[1])
    assert (logits - expected).abs().max() < 1e-5
    assert (some - expected[[3, 26]]).abs().max() < 1e-5
    assert torch.equal(logits_of(module, ids), expected), "the module's own forward is the same to the bit"
    model.release()
    assert torch.equal(logits_of(module, ids), expected)
    after = module.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    storages = [p.untyped_storage().data_ptr() for p in module.model.layers.parameters()]
    assert len(set(storages)) == len(storages)


@pytest.mark.parametrize("kind", OTHERS)
def test_other_shapes_have_none(kind):
    assert fused(tiny_model(kind)) is None


def test_what_is_hooked_wrapped_or_special_has_none():
    module = tiny_model("llama")
    handle = module.model.layers[1].mlp.register_forward_hook(lambda *args: None)
    assert fused(module) is None
    handle.remove()
    attention = module.model.layers[0].self_attn
    plain, attention.q_proj = attention.q_proj, torch.nn.Sequential(attention.q_proj)
    assert fused(module) is None
    attention.q_proj = plain
    module.model.rotary_emb.rope_type = "dynamic"
    assert fused(module) is None


def test_a_second_engine_uses_the_same_merged_weights():
    module = tiny_model("llama")
    first, second = fused(module), fused(module)
    assert first is not None
    assert second is not None
    assert first._layers[0].qkv.weight.data_ptr() == second._layers[0].qkv.weight.data_ptr()
    second.release()
    assert first.holds


def test_changes_in_place_are_seen_and_others_noticed():
    module = tiny_model("llama")
    model = fused(module)
    assert model is not None
    with torch.no_grad():
        module.model.layers[0].self_attn.k_proj.weight.fill_(0.5)
    assert (model._layers[0].qkv.weight == 0.5).any()
    assert model.holds
    other = copy.deepcopy(module.model.layers[0].self_attn.k_proj)
    old, module.model.layers[0].self_attn.k_proj = module.model.layers[0].self_attn.k_proj, other
    assert not model.holds
    module.model.layers[0].self_attn.k_proj = old
    assert model.holds
    old.weight.data = old.weight.data.clone()
    assert not model.holds
