"""The merged layers of a model in torch's reference forms: the module's own logits, for all rows or for some."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from nbsglang.engine.fused import FusedModel, fused
from nbsglang.engine.pool import KVPool, LayerShape
from tests.tiny import VOCAB_SIZE, tiny_model

KINDS = ["llama", "qwen2", "qwen3"]  # plain, with biases, with norms of heads
N = 23


def computed(model: FusedModel, ids: torch.Tensor, wanted: torch.Tensor | None, pool: KVPool) -> torch.Tensor:
    """Logits of a prompt in slots 1 to `N`."""
    positions = torch.arange(len(ids))
    slots = positions + 1

    def attend(query: torch.Tensor, new: torch.Tensor, k_pool: torch.Tensor, v_pool: torch.Tensor) -> torch.Tensor:
        n_kv, dim = k_pool.shape[1:]
        heads = new.view(len(new), -1, dim)  # the rows' own keys and values are those of the pools
        assert torch.equal(heads[:, -2 * n_kv : -n_kv], k_pool[slots])
        assert torch.equal(heads[:, -n_kv:], v_pool[slots])
        q, k, v = (part.transpose(0, 1)[None] for part in (query, k_pool[slots], v_pool[slots]))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)[0].transpose(0, 1)

    with torch.inference_mode():
        return model.logits(*model.forward(ids, positions, slots, pool, attend, wanted))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", [None, [N - 1], [3, 17, 22], []])
def test_logits_are_the_modules_own(kind: str, wanted: list[int] | None) -> None:
    module = tiny_model(kind)
    ids = torch.randint(0, VOCAB_SIZE, (N,), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        expected = module(ids[None]).logits[0]
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    config = module.config
    shape = LayerShape(config.num_key_value_heads, config.head_dim, config.head_dim)
    pool = KVPool((shape,) * config.num_hidden_layers, N + 1, torch.float32, torch.device("cpu"))
    model = fused(module)
    assert model is not None
    rows = None if wanted is None else torch.tensor(wanted, dtype=torch.int64)
    found = computed(model, ids, rows, pool)
    torch.testing.assert_close(found, expected if rows is None else expected[rows], rtol=1e-4, atol=1e-5)
    assert all(bool(k[1 : N + 1].any(-1).all()) for k in pool.k), "keys of all rows are there, whatever is wanted"
    model.release()
    assert all(torch.equal(before[name], weight) for name, weight in module.state_dict().items())
