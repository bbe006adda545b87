"""The user's door to the engine: load a model, answer calls, generate, close.

An Engine is a Backend for programs and a plain generator of text by itself. It can be built twice,
closed, and rebuilt in a cell that runs again; one that is garbage-collected closes itself.

Not here: the steps (`core.py`), the thread (`loop.py`), calls and replies (`backend.py`).
"""

from __future__ import annotations

import gc
import itertools
import queue
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import torch

from nbsglang import current
from nbsglang.calls import (
    Call,
    Capabilities,
    Chunk,
    Failure,
    FinishReason,
    GenCall,
    Generated,
    Inbox,
    Prompt,
    Reply,
    Text,
    TokenLogprob,
    Usage,
)
from nbsglang.engine.allowed import Allowed
from nbsglang.engine.backend import Desk
from nbsglang.engine.commit import Output as StepOutput
from nbsglang.engine.config import Config, Jump, Policy
from nbsglang.engine.core import Core
from nbsglang.engine.inbox import Awaiting, Waiting
from nbsglang.engine.intake import Intake
from nbsglang.engine.load import load
from nbsglang.engine.look import advance, compared, question, spelled, standing
from nbsglang.engine.loop import Loop
from nbsglang.engine.model import Model
from nbsglang.engine.options import options, prompts
from nbsglang.engine.prompt import Renderer
from nbsglang.engine.request import Request
from nbsglang.engine.sizes import batch_rows, eos_ids, limits, pace, pool_tokens
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import BackendClosed, UsageError
from nbsglang.events import ConstraintGraph, Control, EventLog, Loading, Ready, Snapshot

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SLICE_S = 0.05  # a question to the engine's thread looks this often whether the thread still runs


class Output(NamedTuple):
    """One generated text with its ids; `logprobs` and `top_logprobs` where they were asked for.

    `removed` and `over` are those of `nbsglang.calls.Completion`.
    """

    text: str
    ids: tuple[int, ...]
    finish_reason: FinishReason
    logprobs: tuple[TokenLogprob, ...] | None
    top_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None
    usage: Usage
    removed: tuple[float | None, ...] | None = None
    over: str = ""


class Engine:
    """An in-process engine around one model.

    `model` is "smollm2", a folder, a GGUF file, a hub id or a live transformers module (then with its
    `tokenizer`), which stays the user's and is given back untouched at close. `dtype` "auto" is float32
    on a CPU and bfloat16 on CUDA. `kv_tokens` fixes the KV pool in tokens; otherwise it takes the share
    `kv_memory` of the free memory (0.85 on CUDA; on a CPU a quarter, at most 2 GiB). At most `max_batch`
    requests run at once, and a step computes at most `chunk_tokens` prompt tokens (on a CPU as many
    as take about 0.8 s). `policy` orders the queue: "prefix" (longest cached prefix first, with
    ageing), "fcfs", "random" or "dfs_weight"; `caching=False` switches the radix cache off, for
    comparison. `verify` compares logits with those of transformers once. `fuse` lets a model of the common shape run on
    merged weights and fused kernels on CUDA, `graphs` captures its decode steps. `jump` says what happens to text that
    a constraint forces: "canonical" takes it at once, spelled as the tokenizer spells it; "exact" has the model check
    that spelling in one pass, so that texts are those of "off", which asks the model for each token. `seed` makes
    unseeded sampling repeatable. `log` receives the events, as those of `source`, which is unique.

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
        self.source = f"{self.name}-{uuid.uuid4().hex[:6]}"
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
        self._words = words
        self._renderer = Renderer(words)
        n_context, n_vocab = self._model.n_context, self._model.n_vocab
        self._intake = Intake(words, self._renderer, emit, n_vocab, n_context, n_slots, config)
        self._desk = Desk(words)
        self._loop = Loop(core, _Delivery(core, self._desk, self._model, emit), self.name)
        self._finalizer = weakref.finalize(self, self._loop.stop)
        self._call_ids = itertools.count(1)
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
        kinds = frozenset({"regex", "choices", "schema", "grammar"})
        return Capabilities(
            ids=True,
            logprobs=True,
            scores=True,
            prefix_hint=self._caching,
            constraints=kinds,
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
        requests = self._intake.requests(call)
        self._desk.open(call, inbox, requests)
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
        calls, single = self._gen_calls(prompt, sampling)
        return _outputs(calls, self._answers(calls), single)

    async def agenerate(
        self, prompt: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]], **sampling: Any
    ) -> Output | list[Output]:
        """`generate` for a coroutine; cancelling the task cancels the calls."""
        calls, single = self._gen_calls(prompt, sampling)
        replies: dict[str, Reply] = {}
        inbox = Awaiting()
        with self._asking(calls, inbox, replies):
            while len(replies) < len(calls):
                _keep(await inbox.get(), replies)
        return _outputs(calls, replies, single)

    def stream(self, prompt: str | Sequence[int], **sampling: Any) -> Iterator[str]:
        """Continue one prompt and yield its text in pieces; leaving the loop cancels the call."""
        call = self._gen_call(prompt, sampling, stream=True)
        inbox = Waiting()
        self.submit(call, inbox)
        try:
            while not isinstance(item := inbox.get(), Reply):
                yield _piece(item)
        finally:
            self.cancel(call.call_id)

    async def astream(self, prompt: str | Sequence[int], **sampling: Any) -> AsyncIterator[str]:
        """`stream` for a coroutine."""
        call = self._gen_call(prompt, sampling, stream=True)
        inbox = Awaiting()
        self.submit(call, inbox)
        try:
            while not isinstance(item := await inbox.get(), Reply):
                yield _piece(item)
        finally:
            self.cancel(call.call_id)

    def _gen_calls(self, prompt: Any, sampling: dict[str, Any]) -> tuple[list[GenCall], bool]:
        """A call for each prompt, and whether there was a single one."""
        each, single = prompts(prompt)
        return [self._gen_call(p, sampling, stream=False) for p in each], single

    def _answers(self, calls: list[GenCall]) -> dict[str, Reply]:
        """Submit the calls and wait for all replies."""
        replies: dict[str, Reply] = {}
        inbox = Waiting()
        with self._asking(calls, inbox, replies):
            while len(replies) < len(calls):
                _keep(inbox.get(), replies)
        return replies

    @contextmanager
    def _asking(self, calls: list[GenCall], inbox: Inbox, replies: dict[str, Reply]) -> Iterator[None]:
        """Submit the calls; those that have no reply at the end are cancelled."""
        try:
            for call in calls:
                self.submit(call, inbox)
            yield
        finally:
            for call in calls:
                if call.call_id not in replies:
                    self.cancel(call.call_id)

    def _gen_call(self, prompt: str | Sequence[int], sampling: dict[str, Any], stream: bool) -> GenCall:
        params, constraint, logprobs = options(sampling)
        if params.heal and not isinstance(prompt, str):
            raise UsageError("heal needs a prompt as text: ids stay as they are")
        if stream and params.n > 1:
            raise UsageError("stream yields one text: use n=1")
        segment = Text(prompt, special=True) if isinstance(prompt, str) else Generated("", tuple(map(int, prompt)))
        return GenCall(self._call_id(), (segment,), params, constraint, logprobs, stream)

    def _call_id(self) -> str:
        return f"{self.name}-{id(self):x}-{next(self._call_ids)}"

    # ------------------------------------------------------------------------------------------ looking

    def stats(self) -> Mapping[str, float]:
        """Counters since the engine began (tokens, steps, seconds by part) and the state of the pool."""
        return self._ask(_stats)

    def tree(self) -> Snapshot:
        """The radix tree as plain values; `nbsglang.viz` draws it."""
        return self._ask(lambda core: core.tree.snapshot())

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
        constraint = options(given)[1]
        matcher = None if constraint is None else self._intake.compile(constraint)
        so_far = spelled(after, self._words)
        if constraint is not None and matcher is not None:
            advance(matcher, so_far, constraint, self._words)
        at = self._ask(lambda core: standing(matcher)) if matcher is not None else None
        if isinstance(at, Exception):
            raise at
        call = question(self._call_id(), prompt, so_far, self._model.n_vocab)
        tops = self._answers([call])[call.call_id].completions[0].top_logprobs
        assert tops is not None
        return compared(tops[0], at, constraint, so_far.text, n, self._words)

    def prepare(self) -> int:
        """Capture now all that is else captured while the engine is idle, or when steps lack it: see `graphs`.

        Some seconds on a large GPU after the first step, nothing elsewhere. Returns how many sizes of steps there were.
        """
        n = 0
        while self._ask(_do_chore):
            n += 1
        return n

    def flush_cache(self) -> int:
        """Empty the KV cache and wait. Returns the number of freed tokens."""
        return self._ask(lambda core: core.flush("asked"))

    def _ask(self, question: Callable[[Core], Answer]) -> Answer:
        """Let the engine's thread answer between two steps."""
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()

        if not self._loop.post(lambda core: answers.put(question(core))):
            raise BackendClosed(f"the engine {self.name!r} is closed")
        while True:
            try:
                return answers.get(timeout=_SLICE_S)
            except queue.Empty:
                if not self._loop.runs:
                    raise BackendClosed(f"the engine {self.name!r} was closed") from None


Answer = TypeVar("Answer")


class _Delivery:
    """Where the loop's outputs go. Not a method of Engine: the thread must not keep an Engine alive."""

    def __init__(self, core: Core, desk: Desk, model: Model, emit: Callable[[Control], object]) -> None:
        self._core = core
        self._desk = desk
        self._model = model
        self._emit = emit

    def deliver(self, outputs: list[StepOutput]) -> None:
        """Pass outputs to their calls; what is left of calls that failed is dropped."""
        for orphan in self._desk.deliver(outputs):
            self._core.abort(orphan, "error")

    def ended(self, crash: str | None) -> None:
        """Fail what is left, give the module and all memory back."""
        why = "the engine was closed" if crash is None else f"the engine stopped by an internal error:\n{crash}"
        self._desk.close(why)
        self._model.release()
        self._core.release()
        self._emit(Control("closed", crash or ""))
        gc.collect()
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()


def _submit(requests: Sequence[Request], core: Core) -> None:
    for request in requests:
        core.submit(request)


def _abort(requests: Sequence[Request], core: Core) -> None:
    for request in requests:
        core.abort(request)


def _do_chore(core: Core) -> bool:
    """Whether there was one."""
    had_one = core.model.has_chores
    if had_one:
        core.model.do_chore()
    return had_one


def _stats(core: Core) -> dict[str, float]:
    totals, scheduler, tree = core.totals, core.scheduler, core.tree
    return {
        **asdict(totals),
        "preempted": scheduler.n_preempted,
        "hit_rate": totals.cached_tokens / totals.prompt_tokens if totals.prompt_tokens else 0.0,
        "kv_tokens": scheduler.slots.n_slots,
        "kv_free": scheduler.slots.n_free,
        "kv_cached": tree.n_tokens,
        "kv_locked": tree.n_locked,
        "running": len(scheduler.running),
        "waiting": len(scheduler.waiting),
    }


def _piece(item: Chunk | Failure) -> str:
    if isinstance(item, Failure):
        raise item.error
    return item.text


def _keep(item: Chunk | Reply | Failure, replies: dict[str, Reply]) -> None:
    if isinstance(item, Failure):
        raise item.error
    if isinstance(item, Reply):
        replies[item.call_id] = item


def _outputs(calls: list[GenCall], replies: dict[str, Reply], single: bool) -> Output | list[Output]:
    outputs = [
        Output(
            c.text, c.ids, c.finish_reason, c.logprobs, c.top_logprobs, replies[call.call_id].usage, c.removed, c.over
        )
        for call in calls
        for c in replies[call.call_id].completions
    ]
    return outputs[0] if single and len(outputs) == 1 else outputs
