"""A transformers model of the common shape, computed with few and large kernels: merged projections, fused norms.

Which models that is follows from the shape of their layers, not from their names, and is proved by comparing logits.
The merged weights are the module's own: its parameters become views of them, with the values that they had.

Not here: the kernels, and attention (`kernels/`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import torch

from nbsglang.engine.pool import KVPool
from nbsglang.kernels.norm import add_rms_norm, rms_norm, sum_rms_norm
from nbsglang.kernels.rope import HeadNorms, rope_store
from nbsglang.kernels.skinny import skinny_gated, skinny_linear

# Queries [rows, heads, dim]; queries, keys and values of these rows [rows, (heads + 2 * kv) * dim]; two pools.
Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
_LAYER = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
_ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
_HEAD_NORMS = {"q_norm", "k_norm"}
_ROPES = {"default", "linear", "llama3", "yarn"}  # whose angles follow from the position alone
_MLP = {"gate_proj", "up_proj", "down_proj", "act_fn"}


class Merged:
    """Linear layers that read the same rows, as one product. `parts` are the module's, whose weights are views now."""

    def __init__(self, *parts: torch.nn.Linear) -> None:
        self._parts = parts
        self._is_owner = not _are_neighbours([part.weight.data for part in parts])
        if not self._is_owner:  # another engine has merged them
            n_rows = sum(part.out_features for part in parts)
            self.weight = parts[0].weight.data.as_strided((n_rows, parts[0].in_features), (parts[0].in_features, 1))
            self.bias = torch.cat([part.bias.data for part in parts]) if parts[0].bias is not None else None
            return
        self.weight = torch.cat([part.weight.data for part in parts])
        self.bias = torch.cat([part.bias.data for part in parts]) if parts[0].bias is not None else None
        at = 0
        for part in parts:
            n = part.out_features
            part.weight.data = self.weight[at : at + n]
            if self.bias is not None:
                part.bias.data = self.bias[at : at + n]
            at += n

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        return skinny_linear(rows, self.weight, self.bias)

    @property
    def holds(self) -> bool:
        """Whether the module's weights are still these: a user may have put others in their place."""
        return self._parts[0].weight.data_ptr() == self.weight.data_ptr() and all(
            part.weight.untyped_storage().data_ptr() == self.weight.untyped_storage().data_ptr() for part in self._parts
        )

    def release(self) -> None:
        """Give each layer a weight of its own again, with the same values."""
        for part in self._parts if self._is_owner else ():
            part.weight.data = part.weight.data.clone()
            if part.bias is not None:
                part.bias.data = part.bias.data.clone()


def _are_neighbours(weights: list[torch.Tensor]) -> bool:
    """Whether they lie one after the other in one storage."""
    if any(weight.untyped_storage().data_ptr() != weights[0].untyped_storage().data_ptr() for weight in weights):
        return False
    return all(a.data_ptr() + a.numel() * a.element_size() == b.data_ptr() for a, b in pairwise(weights))


@dataclass(frozen=True, slots=True)
class _Layer:
    norm: Any
    qkv: Merged
    heads: HeadNorms | None
    out: torch.nn.Linear
    mlp_norm: Any
    gate_up: Merged
    down: torch.nn.Linear


class FusedModel:
    """See the module. Made by `fused`."""

    def __init__(self, module: torch.nn.Module, layers: list[_Layer]) -> None:
        self._module = module
        self._modules = _ids(module)
        inner = cast(Any, module).model
        self._embed, self._rotary, self._norm, self._head = (
            inner.embed_tokens,
            inner.rotary_emb,
            inner.norm,
            cast(Any, module).lm_head,
        )
        self._layers = layers
        widest = max(len(layer.gate_up.weight) for layer in layers)
        self._zeros = layers[0].down.weight.new_zeros(max(widest, layers[0].down.out_features))

    @property
    def holds(self) -> bool:
        """Whether the layers are still the module's, and their weights the merged ones."""
        if self._modules != _ids(self._module):
            return False
        return all(layer.qkv.holds and layer.gate_up.holds for layer in self._layers)

    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        slots: torch.Tensor,
        pool: KVPool,
        attend: Attend,
        wanted: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """All layers for the rows `ids` [n] at `positions` and `slots` [n]: what `logits` makes logits of.

        Returns the last layer's output and the sum of those before it, in float32, [n, hidden] each; of the rows
        `wanted` alone if given. Of the others the last layer needs keys and values only: what follows is left out.
        """
        hidden = self._embed(ids).float()  # the sum over the layers loses too much in 16 bits
        attended = None  # what attention gave in the layer before, which `hidden` has not got yet
        for number, layer in enumerate(self._layers):
            if number == 0:
                rows = layer.qkv(rms_norm(hidden, layer.norm.weight, _eps(layer.norm)))
                angles = self._rotary(hidden[:1], positions[None])  # small kernels: meanwhile the product is at work
                cos, sin = (part[0].contiguous() for part in angles)
            else:
                rows = layer.qkv(add_rms_norm(rows, hidden, layer.norm.weight, _eps(layer.norm), attended))
            k_pool, v_pool = pool.k[number], pool.v[number]
            query = rope_store(rows, cos, sin, slots, k_pool, v_pool, layer.heads)
            rows = attend(query, rows, k_pool, v_pool).reshape(len(rows), -1)
            if wanted is not None and number == len(self._layers) - 1:
                rows, hidden = rows[wanted], hidden[wanted]
                if not len(rows):  # chunks in the middle of prompts
                    return hidden, hidden
            attended = _times(rows, layer.out)
            has_next = number < len(self._layers) - 1
            norm = sum_rms_norm if has_next else add_rms_norm
            rows = norm(attended, hidden, layer.mlp_norm.weight, _eps(layer.mlp_norm))
            rows = skinny_gated(rows, layer.gate_up.weight, layer.gate_up.bias, self._zeros)
            rows = skinny_linear(rows, layer.down.weight, layer.down.bias, zeros=self._zeros)
        return rows, hidden

    def logits(self, rows: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Logits float32 [n, vocabulary] of what `forward` returned, or of some of its rows, which may be changed."""
        if not len(rows):  # chunks in the middle of prompts
            return rows.new_empty(0, self._head.out_features, dtype=torch.float32)
        rows = add_rms_norm(rows, hidden, self._norm.weight, _eps(self._norm))
        return skinny_linear(rows, self._head.weight, self._head.bias, wide=True)

    def release(self) -> None:
        """Give the module its weights back as they were."""
        for layer in self._layers:
            layer.qkv.release()
            layer.gate_up.release()


def fused(module: torch.nn.Module) -> FusedModel | None:
    """The module's fast form, or None if it is not of this shape, or hooked or wrapped anywhere."""
    inner: Any = getattr(module, "model", None)
    parts = {"embed_tokens", "layers", "norm", "rotary_emb"}
    if inner is None or {name for name, _ in inner.named_children()} != parts:
        return None
    top = dict(module.named_children())
    if top.keys() != {"model", "lm_head"} or not _is_plain(top["lm_head"]):
        return None
    if str(getattr(inner.rotary_emb, "rope_type", "default")) not in _ROPES:
        return None
    if not all(_has_shape(layer) for layer in inner.layers) or not _is_norm(inner.norm):
        return None
    if any(_is_hooked(part) for part in inner.modules()):
        return None
    return FusedModel(module, [_merged(layer) for layer in inner.layers])


def _times(rows: torch.Tensor, linear: torch.nn.Linear) -> torch.Tensor:
    return skinny_linear(rows, linear.weight, linear.bias)


def _merged(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    heads = None
    if hasattr(attention, "q_norm"):
        heads = HeadNorms(attention.q_norm.weight, attention.k_norm.weight, _eps(attention.q_norm))
    return _Layer(
        layer.input_layernorm,
        Merged(attention.q_proj, attention.k_proj, attention.v_proj),
        heads,
        attention.o_proj,
        layer.post_attention_layernorm,
        Merged(mlp.gate_proj, mlp.up_proj),
        mlp.down_proj,
    )


def _has_shape(layer: Any) -> bool:
    names = {name for name, _ in layer.named_children()}
    if names != _LAYER or not all(map(_is_norm, (layer.input_layernorm, layer.post_attention_layernorm))):
        return False
    attention = dict(layer.self_attn.named_children())
    mlp = dict(layer.mlp.named_children())
    if attention.keys() - _HEAD_NORMS != _ATTENTION or mlp.keys() != _MLP:
        return False
    linears = [*(attention[name] for name in _ATTENTION), *(mlp[name] for name in _MLP - {"act_fn"})]
    silu = isinstance(mlp["act_fn"], torch.nn.SiLU) or type(mlp["act_fn"]).__name__ == "SiLUActivation"
    return (
        silu
        and all(map(_is_plain, linears))
        and _alike(attention, "q_proj", "k_proj", "v_proj")
        and _alike(mlp, "gate_proj", "up_proj")
    )


def _ids(module: torch.nn.Module) -> list[int]:
    return [id(part) for part in module.modules()]


def _alike(parts: dict[str, Any], *names: str) -> bool:
    return len({parts[name].bias is None for name in names}) == 1


def _is_plain(part: object) -> bool:
    return type(part) is torch.nn.Linear and part.weight.is_floating_point()


def _is_norm(part: Any) -> bool:
    """A norm with a weight and an epsilon; that it is this norm the comparison of logits tells."""
    names = [name for name, _ in part.named_parameters()]
    return names == ["weight"] and _eps(part) > 0


def _eps(norm: Any) -> float:
    return float(getattr(norm, "variance_epsilon", getattr(norm, "eps", 0.0)))


def _is_hooked(part: torch.nn.Module) -> bool:
    hooks = (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks)
    return any(hooks) or "forward" in part.__dict__
