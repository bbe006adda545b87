"""Tiny random models and a byte tokenizer, made on the spot: `from tests.tiny import tiny_model, byte_tokenizer`.

They have the shapes that matter (grouped heads, windows, soft caps, experts, learned positions) and no
knowledge at all: for tests that compare numbers, not for tests of quality.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedConfig, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

VOCAB_SIZE = 300  # more rows than the tokenizer has ids (260), as in many real models
N_POSITIONS = 512
WINDOW = 8  # of the architectures with sliding windows: short, so that small tests reach beyond it
BOS, EOS, IM_START, IM_END = 256, 257, 258, 259

_LLAMA: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "max_position_embeddings": N_POSITIONS,
    "bos_token_id": BOS,
    "eos_token_id": [EOS, IM_END],
    "pad_token_id": None,
}
_MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
_EXPERTS: dict[str, Any] = {"num_local_experts": 4, "num_experts_per_tok": 2}
_GPT2: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "n_positions": N_POSITIONS,
    "n_embd": 48,
    "n_layer": 2,
    "n_head": 4,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
}
_GEMMA2 = {
    **_LLAMA,
    "num_hidden_layers": 3,
    "layer_types": _MIXED,
    "sliding_window": WINDOW,
    "query_pre_attn_scalar": 12,
    "tie_word_embeddings": False,  # tied, a random Gemma only repeats its last token
}
_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
_NEXT = {
    "num_hidden_layers": 2,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
}

SERVED: dict[str, dict[str, Any]] = {
    "llama": _LLAMA,
    "qwen2": _LLAMA,  # biases on q, k and v
    "qwen3": {**_LLAMA, "head_dim": 16},  # norms on q and k; heads wider than hidden / heads
    "mistral": {**_LLAMA, "sliding_window": WINDOW},
    "gemma2": {**_GEMMA2, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 20.0},
    "gemma3_text": _GEMMA2,
    "mixtral": {**_LLAMA, **_EXPERTS, "sliding_window": None},
    "gpt_oss": {  # attention sinks
        **_LLAMA,
        **_EXPERTS,
        "layer_types": _MIXED[:2],
        "sliding_window": WINDOW,
        "rope_parameters": _ROPE,
    },
    "gpt2": _GPT2,
    "gpt_neox": {key: _LLAMA[key] for key in _LLAMA if key not in {"head_dim", "num_key_value_heads"}},
}
REFUSED: dict[str, dict[str, Any]] = {
    "falcon": {key: _LLAMA[key] for key in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")},
    "bloom": {"vocab_size": VOCAB_SIZE, "hidden_size": 48, "n_layer": 2, "n_head": 4},
    "qwen3_next": {**_LLAMA, **_NEXT},
    "stablelm": {**_LLAMA, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 16},
}
_ALIASES = {"gemma3": "gemma3_text"}


def tiny_config(kind: str) -> PreTrainedConfig:
    """The config of a tiny model: a key of SERVED or REFUSED, or "gemma3" for its text model."""
    kind = _ALIASES.get(kind, kind)
    fields = {**SERVED, **REFUSED}[kind]
    # Copied, since transformers keeps lists and dicts of a config and may write to them.
    return AutoConfig.for_model(kind, **deepcopy(fields))


def tiny_model(kind: str = "llama", seed: int = 0) -> torch.nn.Module:
    """A causal language model with random weights from `seed`: float32, on the CPU, in eval mode.

    The global random state is left as it was. Weights are larger than a fresh model's, so that logits are
    far apart, and norms are not all ones, so that a norm that was left out shows.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(tiny_config(kind), dtype=torch.float32)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(0.0, 0.25)
                else:
                    parameter.add_(torch.randn_like(parameter) * 0.1)
    model.generation_config = GenerationConfig(bos_token_id=BOS, eos_token_id=[EOS, IM_END], do_sample=False)
    return model.eval()


_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_tokenizer(chat: bool = True, bos: bool = False, merges: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """A tokenizer whose ids 0..255 are the bytes of UTF-8, and 256..259 the special tokens.

    `merges` of two parts each, as in "a b", are the ids from 260 on. `chat` gives it a ChatML template. With `bos`,
    encoding puts `<|bos|>` in front, and so does the template, as in Llama: a chat that is rendered and then encoded
    with special tokens has two.
    """
    letters = bytes_to_unicode()  # byte -> the printable character that stands for it in the vocabulary
    names = ["<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>"]
    texts = [*(letters[byte] for byte in range(256)), *(names if merges else ()), *(m.replace(" ", "") for m in merges)]
    pairs = [tuple(merge.split()) for merge in merges]
    core = Tokenizer(models.BPE(vocab={text: token for token, text in enumerate(texts)}, merges=pairs))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    if bos:
        core.post_processor = processors.TemplateProcessing(
            single="<|bos|> $A", pair="<|bos|> $A $B", special_tokens=[("<|bos|>", BOS)]
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<|bos|>",
        eos_token="<|im_end|>" if chat else "<|eos|>",
        extra_special_tokens=names[2:],
        clean_up_tokenization_spaces=False,
        model_max_length=N_POSITIONS,
    )
    if chat:
        tokenizer.chat_template = ("{{ bos_token }}" if bos else "") + _CHATML
    return tokenizer


def tiny_gguf(path: Path) -> None:
    """Write the tiny llama of seed 0 with the byte tokenizer as a GGUF file in float32, and two merges (hi, hi!).

    Its query and key weights come back with their rows in another order: they are not permuted here as GGUF has it.
    """
    import gguf

    config, words = tiny_config("llama"), byte_tokenizer()
    tokens = words.convert_ids_to_tokens(list(range(len(words))))
    tokens += [f"<unused{i}>" for i in range(len(words), VOCAB_SIZE - 2)] + ["hi", "hi!"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(N_POSITIONS)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(VOCAB_SIZE)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3] * (VOCAB_SIZE - 258) + [1, 1])  # 1: normal, 3: control
    writer.add_token_merges(["h i", "hi !"])  # two, since transformers 5.17 takes a list of one for its only item
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(IM_END)
    writer.add_chat_template(_CHATML)
    for name, weight in tiny_model("llama").state_dict().items():
        writer.add_tensor(_gguf_name(name), weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(name: str) -> str:
    for ours, theirs in _GGUF_NAMES.items():
        name = name.replace(ours, theirs)
    return name


_GGUF_NAMES = {
    "model.layers.": "blk.",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.o_proj": "attn_output",
    "self_attn.": "attn_",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
    "mlp.": "ffn_",
    "_proj": "",
}
