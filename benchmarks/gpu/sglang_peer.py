"""SGLang as the workloads use it: its offline engine in this process's event loop, random weights, its defaults.

Written for 0.5.17 against its public interface (`sglang.Engine`: async_generate, flush_cache, shutdown). Choices are
not scored: the session asks for one token after each instead. Imported only when it is chosen.

Not here: its server and its language.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

Ids = list[int]


class SGLang:
    """SGLang's engine; made inside the event loop that it is used in, which it remembers."""

    name = "sglang"

    def __init__(self, folder: Path, **options: Any) -> None:
        import sglang

        arguments = {
            "model_path": str(folder),
            "load_format": "dummy",
            "skip_tokenizer_init": True,
            "dtype": "bfloat16",
            "context_length": 16_384,
            "random_seed": 0,
        }
        self._engine = sglang.Engine(**{**arguments, **options})
        self._n_computed = 0
        self.firsts: list[float] = []

    async def call(self, ids: Ids, n_out: int, temperature: float = 0.0) -> Ids:
        """Without a tokenizer it answers with ids."""
        params = {"max_new_tokens": n_out, "temperature": temperature, "ignore_eos": True}
        reply = await self._engine.async_generate(input_ids=ids, sampling_params=params)
        self._n_computed += len(ids) - reply["meta_info"]["cached_tokens"]
        return list(reply["output_ids"])

    async def reset(self) -> None:
        """Empty the radix cache. A coroutine inside of its manager; the engine's own method would run a second loop."""
        done = self._engine.tokenizer_manager.flush_cache()
        if inspect.isawaitable(done):
            await done
        self._n_computed = 0

    def computed(self) -> int:
        """As the replies say."""
        return self._n_computed

    def close(self) -> None:
        """Stop its processes."""
        self._engine.shutdown()
