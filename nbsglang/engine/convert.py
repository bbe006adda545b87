"""From a GGUF file to a folder that loads fast: the weights as safetensors in float32, config and tokenizer.

transformers reads GGUF, but takes tens of seconds for what the converted copy gives in one. Float32 holds
the dequantised weights exactly, which neither bf16 nor float16 does.

Not here: where GGUF files come from (`fetch.py`), and how a folder becomes a module (`load.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbsglang.engine.store import Progress, exclusive, intact, no_progress, publish


def converted_folder(root: Path, gguf: str, sha256: str) -> Path:
    """Where in the cache `root` the converted copy of the file of this name and hash is, or will be."""
    return root / "converted" / f"{gguf.removesuffix('.gguf')}-{sha256[:32]}"


def convert(gguf: Path, sha256: str, root: Path, progress: Progress = no_progress) -> Path:
    """The folder with the converted copy of `gguf`, whose hash is `sha256`; made if it is not there whole.

    Raises what transformers raises for a file that it cannot read.
    """
    target = converted_folder(root, gguf.name, sha256)
    if not intact(target):
        with exclusive(root, progress):
            if not intact(target):  # another process may have made it meanwhile
                publish(root, target, lambda folder: _write(gguf, folder, progress))
    return target


def _write(gguf: Path, folder: Path, progress: Progress) -> None:
    import torch  # here, so that a look into the cache does not pay for these imports
    from transformers import AutoModelForCausalLM, AutoTokenizer

    what = f"converting {gguf.name}"
    with quiet():
        progress(what, 0, 3)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, trust_remote_code=False)
        tokenizer.save_pretrained(folder)
        progress(what, 1, 3)
        module = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, trust_remote_code=False
        )
        progress(what, 2, 3)
        # Newer transformers take the module for a quantised one, and would not save it.
        for owner, attribute in ((module, "hf_quantizer"), (module.config, "quantization_config")):
            vars(owner).pop(attribute, None)
        module.save_pretrained(folder)
        progress(what, 3, 3)


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
