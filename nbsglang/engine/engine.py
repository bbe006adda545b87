"""The user's door to the engine: load a model, answer calls, generate, close.

An Engine is a Backend for programs and a plain generator of text by itself. It can be built twice,
closed, and rebuilt in a cell that runs again; one that is garbage-collected closes itself.

Not here: the steps (`core.py`), the thread (`loop.py`), the ways to it and back (`access.py`, `outlet.py`), calls and
replies (`backend.py`), plain generation (`caller.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import torch

from nbsglang import current
from nbsglang.calls import CONSTRAINT_KINDS, Call, Capabilities, Inbox, Prompt
from nbsglang.engine.access import Access
from nbsglang.engine.allowed import Allowed
from nbsglang.engine.backend import Desk
from nbsglang.engine.caller import Caller, Output
from nbsglang.engine.config import Config, Jump, Policy
from nbsglang.engine.core import Core
from nbsglang.engine.intake import Intake
from nbsglang.engine.load import load
from nbsglang.engine.look import Look
from nbsglang.engine.loop import Loop
from nbsglang.engine.model import Model
from nbsglang.engine.options import options
from nbsglang.engine.outlet import Outlet
from nbsglang.engine.prompt import Renderer
from nbsglang.engine.sizes import batch_rows, eos_ids, limits, pace, pool_tokens
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.engine.totals import stats
from nbsglang.errors import UsageError
from nbsglang.events import ConstraintGraph, EventLog, Loading, Ready, Snapshot

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Engine", "Output"]


class Engine:
    """An in-process engine around one model.

    `model` is "smollm2", a folder, a GGUF file, a hub id or a live transformers module (then with its
    `tokenizer`), which stays the user's and is given back untouched at close. `dtype` "auto" is float32
    on a CPU and bfloat16 on CUDA. `kv_tokens` fixes the KV pool in tokens; otherwise it takes the share
    `kv_memory` of the free memory (0.85 on CUDA; on a CPU a quarter, at most 2 GiB). At most `max_batch`
    requests run at once, and a step computes at most `chunk_tokens` prompt tokens (on a CPU as many
    as take about 0.8 s). `policy` orders the queue: "prefix" (longest cached prefix first, with
    ageing; by steps and arrival where nothing has to be evicted), "fcfs", "random" or "dfs_weight"; `caching=False`
    switches the radix cache off, for comparison, and takes requests as they come. `verify` compares logits with those
    of transformers once. `fuse` lets a model of the common shape run on merged weights and fused kernels on CUDA,
    `graphs` captures its decode steps. `jump` says what happens to text that a constraint forces: "canonical" takes it
    at once, spelled as the tokenizer spells it; "exact" has the model check that spelling in one pass, so that texts
    are those of "off", which asks the model for each token. `seed` makes unseeded sampling repeatable. `log` receives
    the events, as those of `source`, which is unique.

    Raises ModelNotFound, ModelRefused, DownloadError or UsageError.
    """

    def __init__(
        self,
        model: str | Path | torch.nn.Module = "smollm2",
        *,
        tokenizer: PreTrainedTokenizerBase | str | Path | None = None,
        model_path: str | Path | None = None,
        device: torch.device | str = "auto",
        dtype: torch.dtype | str = "auto",
        kv_tokens: int | None = None,
        kv_memory: float | None = None,
        max_batch: int | Literal["auto"] = "auto",
        chunk_tokens: int | None = None,
        policy: Policy = "prefix",
        caching: bool = True,
        lookahead: int = 64,
        verify: bool = True,
        fuse: bool = True,
        graphs: bool = True,
        jump: Jump = "canonical",
        seed: int = 0,
        name: str | None = None,
        log: EventLog | None = None,
        allow_pickle: bool = False,
    ) -> None:
        config = Config(kv_tokens, kv_memory, max_batch, chunk_tokens, policy, caching, lookahead, seed, jump)
        self.log = log if log is not None else current.event_log()
        source = model if model_path is None else model_path
        loaded = load(source, tokenizer, dtype, device, self._progress, allow_pickle=allow_pickle)
        self.name = name or loaded.name
        self.tokenizer = loaded.tokenizer
        self.source = f"{self.name}-{uuid4().hex[:6]}"
        self._caching = caching
        emit = partial(self.log.emit, self.source)  # not a method of ours: the thread must not keep us alive
        device_of = next(loaded.module.parameters()).device
        n_captured = batch_rows(config, device_of) if graphs else 0
        self._model = Model(loaded.module, loaded.name, verify, fuse=fuse, n_captured=n_captured)
        try:
            words = Tokenizer(loaded.tokenizer, n_vocab=self._model.n_vocab, eos_ids=eos_ids(loaded.module))
            n_slots = config.kv_tokens or pool_tokens(self._model, config.kv_memory)
            bounds = limits(config, self._model)
            paced = pace(config, self._model.device, bounds.chunk_tokens)
            core = Core(self._model, words, n_slots, bounds, config, emit, paced, log_capacity=self.log.capacity)
        except BaseException:
            self._model.release()
            raise
        self._renderer = Renderer(words)
        n_context, n_vocab = self._model.n_context, self._model.n_vocab
        self._intake = Intake(words, self._renderer, emit, n_vocab, n_context, n_slots, config)
        self._desk = Desk(words)
        self._loop = Loop(core, Outlet(core, self._desk, self._model, emit), self.name)
        self._finalizer = weakref.finalize(self, self._loop.stop)
        self._access = Access(self._intake, self._desk, self._loop, self.name)
        self._caller = Caller(self._access, self.name)
        self._look = Look(self._intake.compile, self._caller, self._access, words, n_vocab)
        emit(Ready(self.name, loaded.name, str(self._model.device), str(self._model.dtype), n_slots))

    def _progress(self, what: str, done: int, total: int) -> None:
        self.log.emit("loading", Loading(what, done, total))

    def __repr__(self) -> str:
        state = "open" if self._loop.runs else "closed"
        return f"<nbsglang.Engine {self.name!r} on {self._model.device}, {state}>"

    @property
    def module(self) -> torch.nn.Module:
        """The transformers module that it runs."""
        return self._model.module

    # ------------------------------------------------------------------------------ the Backend protocol

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do: all but images. Without a cache a prefix hint would be computed for nothing."""
        return Capabilities(
            ids=True,
            logprobs=True,
            scores=True,
            prefix_hint=self._caching,
            constraints=CONSTRAINT_KINDS,
            seed=True,
            n=True,
            heal=True,
        )

    def render(self, prompt: Prompt) -> str:
        """The text of the prompt as the model will see it, the chat template applied."""
        return self._renderer.render(prompt)

    @property
    def renderer(self) -> Callable[[Prompt], str]:
        """`render` without the engine: it holds the tokenizer alone."""
        return self._renderer.render

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Start a call; see `nbsglang.calls.Backend`."""
        self._access.submit(call, inbox)

    def cancel(self, call_id: str) -> None:
        """Stop a call: its inbox gets a Failure now, its memory comes back after the current step."""
        self._access.cancel(call_id)

    def flush(self) -> None:
        """Empty the KV cache but for what running calls hold, after the current step."""
        self._loop.post(lambda core: core.flush("asked"))

    def close(self) -> None:
        """End all calls with BackendClosed, stop the thread, give all memory and the module back."""
        self._desk.close("the engine was closed")
        self._finalizer()
        self._loop.join()
        current.forget_backend(self)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------- generating

    def generate(
        self, prompt: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]], **sampling: Any
    ) -> Output | list[Output]:
        """Continue a prompt, given as text or as ids, or a list of prompts, and wait.

        Text is encoded as the tokenizer does it, special tokens included. `sampling` takes the fields of
        SamplingParams (max_tokens=128, temperature=1.0, stop=...), one of regex, choices, json_schema or
        grammar, and return_logprob with top_logprobs_num. With heal=True the first tokens may replace the end of a text
        where they would have merged with it; the answer goes on exactly after the prompt all the same. One prompt gives
        one Output, or a list of n with n > 1; a list of prompts gives a flat list in their order. An interrupt cancels
        the calls.
        """
        return self._caller.generate(prompt, sampling)

    async def agenerate(
        self, prompt: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]], **sampling: Any
    ) -> Output | list[Output]:
        """`generate` for a coroutine; cancelling the task cancels the calls."""
        return await self._caller.agenerate(prompt, sampling)

    def stream(self, prompt: str | Sequence[int], **sampling: Any) -> Iterator[str]:
        """Continue one prompt and yield its text in pieces; leaving the loop cancels the call."""
        yield from self._caller.stream(prompt, sampling)  # so an engine lives as long as its streams

    async def astream(self, prompt: str | Sequence[int], **sampling: Any) -> AsyncIterator[str]:
        """`stream` for a coroutine."""
        async with aclosing(self._caller.astream(prompt, sampling)) as pieces:
            async for piece in pieces:
                yield piece

    # ------------------------------------------------------------------------------------------ looking

    def stats(self) -> Mapping[str, float]:
        """Counters since the engine began (tokens, steps, seconds by part) and the state of the pool."""
        return self._access.ask(lambda core: stats(core.totals, core.scheduler))

    def tree(self) -> Snapshot:
        """The radix tree as plain values; `nbsglang.viz` draws it."""
        return self._access.ask(lambda core: core.tree.snapshot())

    def fsm(self, **constraint: Any) -> ConstraintGraph:
        """The compressed automaton of `regex=`, `choices=` or `json_schema=`, in the log too; `nbsglang.fsm` draws it.

        Raises ConstraintError for other constraints, and for those that cannot be used.
        """
        from nbsglang.engine.grammar.graph import constraint_graph

        found = options(constraint)[1]
        if found is None:
            raise UsageError("fsm needs a constraint: regex=..., choices=[...] or json_schema=...")
        graph = constraint_graph(found)
        self.log.emit(self.source, graph)
        return graph

    def allowed(
        self,
        prompt: str | Iterable[int] | Prompt,
        *,
        after: str | Iterable[int] = "",
        n: int | None = 20,
        regex: str | None = None,
        choices: Iterable[str] | None = None,
        json_schema: str | Mapping[str, Any] | None = None,
        grammar: str | None = None,
    ) -> Allowed:
        """The tokens that a constraint allows next, and those that it does not, with the model's probabilities.

        `prompt` is a text, ids, or segments as in a state's `snapshot().prompt`; `after` is what has been written under
        the constraint so far, as text or ids. Lists the `n` likeliest of either kind; None: all. Without a constraint
        everything is allowed. Costs one pass for one token, and some tenths of a second for the whole vocabulary, in
        which the engine does nothing else.

        Raises ConstraintError for a constraint that cannot be used, TextRefused where `after` does not fit it.
        """
        given = {"regex": regex, "choices": choices, "json_schema": json_schema, "grammar": grammar}
        return self._look.at(prompt, after, options(given)[1], n)

    def prepare(self) -> int:
        """Do now what is else done while the engine is idle: steps are captured, see `graphs`, and kernels loaded.

        Some seconds on a large GPU after the first step, nothing elsewhere. Returns how many sizes of steps there were.
        """
        n = 0
        while self._access.ask(_do_chore):
            n += 1
        return n

    def flush_cache(self) -> int:
        """Empty the KV cache and wait. Returns the number of freed tokens."""
        return self._access.ask(lambda core: core.flush("asked"))


def _do_chore(core: Core) -> bool:
    """Whether there was one."""
    had_one = core.model.has_chores
    if had_one:
        core.model.do_chore()
    return had_one
