"""Models of a given shape with random weights, made on their device, and folders from which the peers make the same.

Not here: trained models; the workloads ignore what is generated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig


@dataclass(frozen=True, slots=True)
class Shape:
    """A Llama's sizes, and how its weights are drawn."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    dtype: torch.dtype
    std: float = 0.02
    context: int = 131_072
    theta: float = 500_000.0

    def config(self) -> LlamaConfig:
        """As transformers and the peers read it. Nothing ends a text."""
        return LlamaConfig(
            architectures=["LlamaForCausalLM"],
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.head_dim,
            intermediate_size=self.intermediate,
            vocab_size=self.vocab,
            max_position_embeddings=self.context,
            rope_parameters={"rope_type": "default", "rope_theta": self.theta},
            rms_norm_eps=1e-5,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=None,
            dtype=self.dtype,
        )


SHAPES = {
    "llama8b": Shape(4096, 32, 32, 8, 128, 14336, 128_256, torch.bfloat16),
    "llama1b": Shape(2048, 16, 32, 8, 64, 8192, 128_256, torch.bfloat16),
    # Large weights, so that logits are far apart and greedy outputs can be compared.
    "tiny": Shape(48, 2, 4, 2, 12, 96, 512, torch.float32, std=0.25),
}


def shape_of(name: str, n_vocab: int | None = None) -> Shape:
    """The shape `name`, with another vocabulary if wanted."""
    shape = SHAPES[name]
    return replace(shape, vocab=n_vocab) if n_vocab else shape


def random_model(shape: Shape, device: torch.device | str, seed: int = 0) -> Any:
    """The module in eval mode. Its tensors are made on the device: 16 GB of random weights take a second there."""
    config = shape.config()
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(config, dtype=shape.dtype)
    module = module.to_empty(device=device)
    with torch.device(device):  # its frequencies are computed when it is made: on the meta device that was nothing
        module.model.rotary_emb = type(module.model.rotary_emb)(config=config)
    generator = torch.Generator(device).manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=shape.std, generator=generator)
            else:
                parameter.fill_(1.0)
    module.generation_config = GenerationConfig(do_sample=False)
    return module.eval()


def write_config(shape: Shape, folder: Path) -> Path:
    """A folder with a config and no weights, for engines that draw their own."""
    config: Any = shape.config()
    config.save_pretrained(folder)
    return folder
