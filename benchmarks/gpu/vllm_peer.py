"""vLLM as the workloads use it: its asynchronous engine in this process's event loop, random weights, its defaults.

Written for 0.26 against its public interface (AsyncEngineArgs, AsyncLLMEngine, SamplingParams, TokensPrompt). Choices
are not scored: the session asks for one token after each instead. Imported only when it is chosen.

Not here: its server.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

Ids = list[int]


class VLLM:
    """vLLM's engine; made inside the event loop that it is used in."""

    name = "vllm"

    def __init__(self, folder: Path, **options: Any) -> None:
        import vllm

        self._vllm = vllm
        arguments = {
            "model": str(folder),
            "load_format": "dummy",
            "skip_tokenizer_init": True,
            "dtype": "bfloat16",
            "enable_prefix_caching": True,
            "max_model_len": 16_384,
            "seed": 0,
        }
        self._engine = vllm.AsyncLLMEngine.from_engine_args(vllm.AsyncEngineArgs(**{**arguments, **options}))
        self._ids = itertools.count()
        self._n_computed = 0
        self._counts = True
        self.firsts: list[float] = []

    async def call(self, ids: Ids, n_out: int, temperature: float = 0.0) -> Ids:
        """Only the finished output is sent to us, which is what costs it least."""
        from vllm.sampling_params import RequestOutputKind

        params = self._vllm.SamplingParams(
            max_tokens=n_out,
            temperature=temperature,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt = self._vllm.TokensPrompt(prompt_token_ids=ids)
        last: Any = None
        async for output in self._engine.generate(prompt, params, str(next(self._ids))):
            last = output
        cached = last.num_cached_tokens
        self._counts = self._counts and cached is not None
        self._n_computed += len(ids) - (cached or 0)
        return list(last.outputs[0].token_ids)

    async def reset(self) -> None:
        """Empty the prefix cache."""
        await self._engine.reset_prefix_cache()
        self._n_computed = 0

    def computed(self) -> int | None:
        """As the outputs say, if they do."""
        return self._n_computed if self._counts else None

    def close(self) -> None:
        """Stop its processes."""
        self._engine.shutdown()
