"""The user's door to the engine: load a model, answer calls, generate, close.

An Engine is a Backend for programs and a plain generator of text by itself. It can be built twice,
closed, and rebuilt in a cell that runs again; one that is garbage-collected closes itself.

Not here: the steps (`core.py`), the thread (`loop.py`), calls and replies (`backend.py`).
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import queue
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
import psutil
import torch

from nbsglang import current
from nbsglang.calls import (
    Call,
    Capabilities,
    Chunk,
    Constraint,
    Failure,
    FinishReason,
    GenCall,
    Generated,
    Inbox,
    LogprobSpec,
    Prompt,
    Reply,
    SamplingParams,
    Text,
    TokenLogprob,
    Usage,
)
from nbsglang.engine.backend import Desk
from nbsglang.engine.config import Config
from nbsglang.engine.core import Core
from nbsglang.engine.core import Output as StepOutput
from nbsglang.engine.load import load
from nbsglang.engine.loop import Loop
from nbsglang.engine.model import Model
from nbsglang.engine.pool import KVPool
from nbsglang.engine.prompt import Renderer
from nbsglang.engine.request import Request
from nbsglang.engine.scheduler import Limits
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import BackendClosed, UsageError
from nbsglang.events import Control, EventLog, Loading, Ready, Snapshot

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SLICE_S = 0.05  # waits are cut, so that an interrupt is noticed at once on every system
_CPU_STEP_S = 0.25  # aim of a prefill step on a CPU: an interrupt waits for the end of a step
_CPU_POOL_BYTES = 2 << 30


class Output(NamedTuple):
    """One generated text with its ids; `logprobs` and `top_logprobs` where they were asked for."""

    text: str
    ids: tuple[int, ...]
    finish_reason: FinishReason
    logprobs: tuple[TokenLogprob, ...] | None
    top_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None
    usage: Usage


class Engine:
    """An in-process engine around one model.

    `model` is "smollm2", a folder, a GGUF file, a hub id or a live transformers module (then with its
    `tokenizer`), which stays the user's and is given back untouched at close. `dtype` "auto" is float32
    on a CPU and bfloat16 on CUDA. `kv_tokens` fixes the KV pool in tokens; otherwise it takes the share
    `kv_memory` of the free memory (0.85 on CUDA; on a CPU a quarter, at most 2 GiB). At most `max_batch`
    requests run at once, and a step computes at most `chunk_tokens` prompt tokens (on a CPU chosen so that
    a step takes about 0.25 s). `policy` orders the queue: "prefix" (longest cached prefix first, with
    ageing), "fcfs", "random" or "dfs_weight"; `caching=False` switches the radix cache off, for
    comparison. `verify` compares logits with those of transformers once. `seed` makes unseeded sampling
    repeatable. `log` receives the events.

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
        policy: Literal["prefix", "fcfs", "random", "dfs_weight"] = "prefix",
        caching: bool = True,
        lookahead: int = 64,
        verify: bool = True,
        seed: int = 0,
        name: str | None = None,
        log: EventLog | None = None,
        allow_pickle: bool = False,
    ) -> None:
        config = Config(kv_tokens, kv_memory, max_batch, chunk_tokens, policy, caching, lookahead, seed)
        self.log = log if log is not None else current.event_log()
        source = model if model_path is None else model_path
        loaded = load(source, tokenizer, dtype, device, self._progress, allow_pickle=allow_pickle)
        self.name = name or loaded.name
        self.tokenizer = loaded.tokenizer
        emit = partial(self.log.emit, self.name)  # not a method of ours: the thread must not keep us alive
        self._model = Model(loaded.module, loaded.name, verify)
        try:
            words = Tokenizer(loaded.tokenizer, n_vocab=self._model.n_vocab, eos_ids=_eos_ids(loaded.module))
            n_slots = config.kv_tokens or _pool_tokens(self._model, config.kv_memory)
            core = Core(self._model, words, n_slots, _limits(config, self._model), policy, emit, caching)
        except BaseException:
            self._model.release()
            raise
        self._renderer = Renderer(words)
        self._desk = Desk(words, self._renderer, emit, self._model.n_context, n_slots, seed)
        self._loop = Loop(core, _Delivery(core, self._desk), self.name)
        self._finalizer = weakref.finalize(self, _shut_down, self._loop, self._desk, self._model, core, emit)
        self._call_ids = itertools.count(1)
        emit(Ready(self.name, loaded.name, str(self._model.device), str(self._model.dtype), n_slots))

    def _progress(self, what: str, done: int, total: int) -> None:
        self.log.emit("loading", Loading(what, done, total))

    def __repr__(self) -> str:
        state = "open" if self._loop.runs else "closed"
        return f"<nbsglang.Engine {self.name!r} on {self._model.device}, {state}>"

    # ------------------------------------------------------------------------------ the Backend protocol

    @property
    def capabilities(self) -> Capabilities:
        """What this backend can do: all but images."""
        kinds = frozenset({"regex", "choices", "schema", "grammar"})
        return Capabilities(
            ids=True, logprobs=True, scores=True, prefix_hint=True, constraints=kinds, seed=True, n=True
        )

    def render(self, prompt: Prompt) -> str:
        """The text of the prompt as the model will see it, the chat template applied."""
        return self._renderer.render(prompt)

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Start a call; see `nbsglang.calls.Backend`."""
        requests = self._desk.open(call, inbox)
        if not self._loop.post(partial(_submit, requests)):
            self._desk.forget(call.call_id)
            raise BackendClosed(f"the engine {self.name!r} is closed")

    def cancel(self, call_id: str) -> None:
        """Stop a call: its inbox gets a Failure now, its memory comes back after the current step."""
        requests = self._desk.requests(call_id)
        self._desk.cancelled(call_id)
        self._loop.post(partial(_abort, requests))

    def flush(self) -> None:
        """Empty the KV cache but for what running calls hold, after the current step."""
        self._loop.post(_flush)

    def close(self) -> None:
        """End all calls with BackendClosed, stop the thread, give all memory and the module back."""
        self._finalizer()
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
        grammar, and return_logprob with top_logprobs_num. One prompt gives one Output, or a list of n with
        n > 1; a list of prompts gives a flat list in their order. An interrupt cancels the calls.
        """
        prompts, single = _prompts(prompt)
        inbox: queue.SimpleQueue[Chunk | Reply | Failure] = queue.SimpleQueue()
        calls = [self._gen_call(p, sampling, stream=False) for p in prompts]
        replies: dict[str, Reply] = {}
        try:
            for call in calls:
                self.submit(call, inbox)
            while len(replies) < len(calls):
                item = _wait(inbox)
                if isinstance(item, Failure):
                    raise item.error
                if isinstance(item, Reply):
                    replies[item.call_id] = item
        finally:
            for call in calls:
                if call.call_id not in replies:
                    self.cancel(call.call_id)
        outputs = [output for call in calls for output in _outputs(replies[call.call_id])]
        return outputs[0] if single and len(outputs) == 1 else outputs

    async def agenerate(
        self, prompt: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]], **sampling: Any
    ) -> Output | list[Output]:
        """`generate` for a coroutine; cancelling the task cancels the calls."""
        prompts, single = _prompts(prompt)
        calls = [self._gen_call(p, sampling, stream=False) for p in prompts]
        inbox = _AsyncInbox()
        replies: dict[str, Reply] = {}
        try:
            for call in calls:
                self.submit(call, inbox)
            while len(replies) < len(calls):
                item = await inbox.get()
                if isinstance(item, Failure):
                    raise item.error
                if isinstance(item, Reply):
                    replies[item.call_id] = item
        finally:
            for call in calls:
                if call.call_id not in replies:
                    self.cancel(call.call_id)
        outputs = [output for call in calls for output in _outputs(replies[call.call_id])]
        return outputs[0] if single and len(outputs) == 1 else outputs

    def stream(self, prompt: str | Sequence[int], **sampling: Any) -> Iterator[str]:
        """Continue one prompt and yield its text in pieces; leaving the loop cancels the call."""
        call = self._gen_call(prompt, sampling, stream=True)
        inbox: queue.SimpleQueue[Chunk | Reply | Failure] = queue.SimpleQueue()
        self.submit(call, inbox)
        try:
            while not isinstance(item := _wait(inbox), Reply):
                yield _piece(item)
        finally:
            self.cancel(call.call_id)

    async def astream(self, prompt: str | Sequence[int], **sampling: Any) -> AsyncIterator[str]:
        """`stream` for a coroutine."""
        call = self._gen_call(prompt, sampling, stream=True)
        inbox = _AsyncInbox()
        self.submit(call, inbox)
        try:
            while not isinstance(item := await inbox.get(), Reply):
                yield _piece(item)
        finally:
            self.cancel(call.call_id)

    def _gen_call(self, prompt: str | Sequence[int], sampling: dict[str, Any], stream: bool) -> GenCall:
        params, constraint, logprobs = _options(sampling)
        if stream and params.n > 1:
            raise UsageError("stream yields one text: use n=1")
        segment = Text(prompt, special=True) if isinstance(prompt, str) else Generated("", tuple(map(int, prompt)))
        call_id = f"{self.name}-{id(self):x}-{next(self._call_ids)}"
        return GenCall(call_id, (segment,), params, constraint, logprobs, stream)

    # ------------------------------------------------------------------------------------------ looking

    def stats(self) -> Mapping[str, float]:
        """Counters since the engine began (tokens, steps, seconds by part) and the state of the pool."""
        return self._ask(_stats)

    def tree(self) -> Snapshot:
        """The radix tree as plain values; `nbsglang.viz` draws it."""
        return self._ask(lambda core: core.tree.snapshot())

    def flush_cache(self) -> int:
        """Empty the KV cache and wait. Returns the number of freed tokens."""
        return self._ask(lambda core: core.flush("asked"))

    def _ask(self, question: Callable[[Core], Answer]) -> Answer:
        """Let the engine's thread answer between two steps."""
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()

        def command(core: Core) -> list[StepOutput]:
            answers.put(question(core))
            return []

        if not self._loop.post(command):
            raise BackendClosed(f"the engine {self.name!r} is closed")
        while True:
            try:
                return answers.get(timeout=_SLICE_S)
            except queue.Empty:
                if not self._loop.runs:
                    raise BackendClosed(f"the engine {self.name!r} was closed") from None


Answer = TypeVar("Answer")


# -------------------------------------------------------------------------------------- on the thread


class _Delivery:
    """Where the loop's outputs go. Not a method of Engine: the thread must not keep an Engine alive."""

    def __init__(self, core: Core, desk: Desk) -> None:
        self._core = core
        self._desk = desk

    def deliver(self, outputs: list[StepOutput]) -> None:
        """Pass outputs to their calls; what is left of calls that failed is dropped."""
        for orphan in self._desk.deliver(outputs):
            self._core.abort(orphan, "error")

    def crashed(self, why: str) -> None:
        """The thread ends because of a bug of ours: fail what it had."""
        self._desk.close(f"the engine stopped because of an internal error:\n{why}")


def _submit(requests: Sequence[Request], core: Core) -> list[StepOutput]:
    for request in requests:
        core.submit(request)
    return []


def _abort(requests: Sequence[Request], core: Core) -> list[StepOutput]:
    for request in requests:
        core.abort(request)
    return []


def _flush(core: Core) -> list[StepOutput]:
    core.flush("asked")
    return []


def _stats(core: Core) -> dict[str, float]:
    totals, scheduler, tree = core.totals, core.scheduler, core.tree
    return {
        **asdict(totals),
        "hit_rate": totals.cached_tokens / totals.prompt_tokens if totals.prompt_tokens else 0.0,
        "kv_tokens": scheduler.slots.n_slots,
        "kv_free": scheduler.slots.n_free,
        "kv_cached": tree.n_tokens,
        "kv_locked": tree.n_locked,
        "running": len(scheduler.running),
        "waiting": len(scheduler.waiting),
    }


def _shut_down(loop: Loop, desk: Desk, model: Model, core: Core, emit: Callable[[Control], object]) -> None:
    """Close everything; runs once, also when an Engine is garbage-collected or the interpreter ends."""
    desk.close("the engine was closed")
    loop.close()
    model.release()
    core.release()
    emit(Control("closed", ""))
    gc.collect()
    if model.device.type == "cuda":
        torch.cuda.empty_cache()


# --------------------------------------------------------------------------------------------- inboxes


def _wait(inbox: queue.SimpleQueue[Chunk | Reply | Failure]) -> Chunk | Reply | Failure:
    while True:
        try:
            return inbox.get(timeout=_SLICE_S)
        except queue.Empty:
            continue


class _AsyncInbox:
    """An inbox that a coroutine of the current event loop reads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[Chunk | Reply | Failure] = asyncio.Queue()

    def put(self, item: Chunk | Reply | Failure, /) -> None:
        """From any thread."""
        with suppress(RuntimeError):  # the event loop is closed: nobody reads any more
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    async def get(self) -> Chunk | Reply | Failure:
        """The next item."""
        return await self._items.get()


def _piece(item: Chunk | Failure) -> str:
    if isinstance(item, Failure):
        raise item.error
    return item.text


def _outputs(reply: Reply) -> list[Output]:
    return [Output(c.text, c.ids, c.finish_reason, c.logprobs, c.top_logprobs, reply.usage) for c in reply.completions]


# ------------------------------------------------------------------------------------------- arguments


def _prompts(prompt: Any) -> tuple[list[Any], bool]:
    """A list of prompts, and whether it was a single one."""
    if isinstance(prompt, str):
        return [prompt], True
    items = list(prompt)
    if items and not isinstance(items[0], str | Sequence | np.ndarray):
        return [items], True
    if not items:
        raise UsageError("generate needs a prompt: a text, a list of ids, or a list of these")
    return items, False


def _options(sampling: dict[str, Any]) -> tuple[SamplingParams, Constraint | None, LogprobSpec | None]:
    rest = dict(sampling)
    constraint = None
    for key, kind in _CONSTRAINTS.items():
        value = rest.pop(key, None)
        if value is not None and constraint is not None:
            raise UsageError("one text can have one constraint only: regex, choices, json_schema or grammar")
        if value is not None:
            constraint = Constraint(kind, tuple(value) if kind == "choices" else _as_json(value))
    top = rest.pop("top_logprobs_num", 0) or 0
    logprobs = LogprobSpec(top) if rest.pop("return_logprob", False) or top else None
    for key in ("stop", "stop_regex", "stop_token_ids"):
        if key in rest:
            value = rest[key]
            rest[key] = (value,) if isinstance(value, str | int) else tuple(value or ())
    bias = rest.get("logit_bias")
    if isinstance(bias, Mapping):
        rest["logit_bias"] = tuple((int(k), float(v)) for k, v in bias.items())
    unknown = rest.keys() - {f.name for f in fields(SamplingParams)}
    if unknown:
        known = [*(f.name for f in fields(SamplingParams)), *_CONSTRAINTS, "return_logprob", "top_logprobs_num"]
        raise UsageError(f"unknown option {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    return SamplingParams(**rest), constraint, logprobs


_CONSTRAINTS: dict[str, Literal["regex", "choices", "schema", "grammar"]] = {
    "regex": "regex",
    "choices": "choices",
    "json_schema": "schema",
    "grammar": "grammar",
}


def _as_json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# ----------------------------------------------------------------------------------------------- sizes


def _eos_ids(module: torch.nn.Module) -> tuple[int, ...]:
    config = getattr(module, "generation_config", None)
    eos = getattr(config, "eos_token_id", None)
    return tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),)


def _pool_tokens(model: Model, share: float | None) -> int:
    """The size of the pool in tokens, from the free memory."""
    if model.device.type == "cuda":
        n_bytes = torch.cuda.mem_get_info(model.device)[0] * (share or 0.85)
    else:
        free = psutil.virtual_memory().available
        n_bytes = free * share if share else min(free * 0.25, _CPU_POOL_BYTES)
    n_tokens = int(n_bytes // KVPool.bytes_per_token(model.shapes, model.dtype))
    if n_tokens < 16:
        raise UsageError(
            f"{n_bytes / 1e6:.0f} MB of free memory hold {n_tokens} tokens only; free some, or set kv_tokens"
        )
    return n_tokens


def _limits(config: Config, model: Model) -> Limits:
    on_cpu = model.device.type == "cpu"
    max_batch = (64 if on_cpu else 256) if config.max_batch == "auto" else config.max_batch
    chunk = config.chunk_tokens or (_cpu_chunk(model) if on_cpu else 4096)
    return Limits(max_batch, chunk, config.lookahead)


def _cpu_chunk(model: Model, n_tokens: int = 64) -> int:
    """Prompt tokens that take about `_CPU_STEP_S`, a power of two, by a measurement."""
    ids, positions = np.zeros(n_tokens, np.int64), np.arange(n_tokens)
    seconds = min(_timed(lambda: model.dry_run(ids, positions)) for _ in range(2))
    n = int(n_tokens * _CPU_STEP_S / seconds)
    return max(16, min(1 << (n.bit_length() - 1) if n else 0, 1024))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
