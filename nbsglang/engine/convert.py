"""From a GGUF file to a folder that loads fast: the weights as safetensors in float32, config and tokenizer.

transformers reads GGUF, but takes tens of seconds for what the converted copy gives in one. Float32 holds
the dequantised weights exactly, which neither bf16 nor float16 does.

Not here: where GGUF files come from (`fetch.py`), and how a folder becomes a module (`load.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbsglang.engine.store import Progress, exclusive, intact, no_progress, publish

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_SINGLE_DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL]}


def converted_folder(root: Path, gguf: str, sha256: str) -> Path:
    """Where in the cache `root` the converted copy of the file of this name and hash is, or will be."""
    return root / "converted" / f"{gguf.removesuffix('.gguf')}-{sha256[:32]}"


def convert(
    gguf: Path, sha256: str, root: Path, progress: Progress = no_progress, *, single_digits: bool = False
) -> Path:
    """The folder with the converted copy of `gguf`, whose hash is `sha256`; made if it is not there whole.

    `single_digits` says that the tokenizer takes digits one by one, which transformers does not read.
    Raises what transformers raises for a file that it cannot read.
    """
    target = converted_folder(root, gguf.name, sha256)
    if not intact(target):
        with exclusive(root, progress):
            if not intact(target):  # another process may have made it meanwhile
                publish(root, target, lambda folder: _write(gguf, folder, progress, single_digits))
    return target


def _write(gguf: Path, folder: Path, progress: Progress, single_digits: bool) -> None:
    import torch  # here, so that a look into the cache does not pay for these imports
    from transformers import AutoModelForCausalLM, AutoTokenizer

    what = f"converting {gguf.name}"
    with quiet():
        progress(what, 0, 3)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, trust_remote_code=False)
        progress(what, 1, 3)
        module = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, trust_remote_code=False
        )
        progress(what, 2, 3)
        # Newer transformers take the module for a quantised one, and would not save it.
        for owner, attribute in ((module, "hf_quantizer"), (module.config, "quantization_config")):
            vars(owner).pop(attribute, None)
        module.save_pretrained(folder)
        plain_tokenizer(tokenizer, module.config, single_digits).save_pretrained(folder)
        progress(what, 3, 3)


def plain_tokenizer(tokenizer: Any, config: Any, single_digits: bool = False) -> Any:
    """The tokenizer without what transformers' reader adds to it, which changes from version to version.

    Some versions take the wrong token for the end of a turn, clean up spaces (so that decoding loses some),
    or give byte-level tokens the decoder of SentencePiece. The ids of the special tokens are right in `config`.
    """
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    make: Any = PreTrainedTokenizerFast  # its constructor has no types
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    if "ByteLevel" in json.dumps(state["decoder"]):
        state["normalizer"] = None
        state["decoder"] = _BYTE_LEVEL
        state["pre_tokenizer"] = _SINGLE_DIGITS if single_digits else state["pre_tokenizer"]
        state["model"] |= {"byte_fallback": False, "fuse_unk": False, "unk_token": None}
    special = {
        f"{role}_token": tokenizer.convert_ids_to_tokens(token_id)
        for role in ("bos", "eos", "pad")
        if isinstance(token_id := getattr(config, f"{role}_token_id", None), int)
    }
    return make(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)),
        chat_template=tokenizer.chat_template,
        clean_up_tokenization_spaces=False,
        **special,
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Without the progress bars of transformers: progress goes to our own log.

    (The bar of its GGUF reader has no switch, and is seen at a first conversion.)
    """
    from transformers.utils import logging as untyped

    logging: Any = untyped
    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()
