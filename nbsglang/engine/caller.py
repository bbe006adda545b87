"""The engine's own caller: prompts as texts or ids become calls, whose replies it awaits, also in a coroutine.

Not here: the words that options are given in (`options.py`), the inboxes that wait (`inbox.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from nbsglang.calls import (
    Chunk,
    Failure,
    FinishReason,
    GenCall,
    Generated,
    Inbox,
    Reply,
    Text,
    TokenLogprob,
    Usage,
)
from nbsglang.engine.access import Access
from nbsglang.engine.inbox import Awaiting, Waiting
from nbsglang.engine.options import options, prompts
from nbsglang.errors import UsageError


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


class Caller:
    """Makes calls of its own and waits for them; what is not waited for any more is cancelled. Safe from any thread.

    `sampling` are the options as users write them.
    """

    def __init__(self, access: Access, name: str) -> None:
        self._access = access
        self._name = name
        self._numbers = itertools.count(1)

    def generate(self, prompt: Any, sampling: Mapping[str, Any]) -> Output | list[Output]:
        """The text after a prompt, or the texts after several; see `Engine.generate`."""
        calls, single = self._calls(prompt, sampling)
        return _outputs(calls, self._replies(calls), single)

    async def agenerate(self, prompt: Any, sampling: Mapping[str, Any]) -> Output | list[Output]:
        """`generate` for a coroutine."""
        calls, single = self._calls(prompt, sampling)
        replies: dict[str, Reply] = {}
        inbox = Awaiting()
        with self._asking(calls, inbox, replies):
            while len(replies) < len(calls):
                _keep(await inbox.get(), replies)
        return _outputs(calls, replies, single)

    def stream(self, prompt: str | Sequence[int], sampling: Mapping[str, Any]) -> Iterator[str]:
        """The text after one prompt in pieces."""
        call = self._call(prompt, sampling, stream=True)
        inbox = Waiting()
        self._access.submit(call, inbox)
        try:
            while not isinstance(item := inbox.get(), Reply):
                yield _piece(item)
        finally:
            self._access.cancel(call.call_id)

    async def astream(self, prompt: str | Sequence[int], sampling: Mapping[str, Any]) -> AsyncGenerator[str]:
        """`stream` for a coroutine."""
        call = self._call(prompt, sampling, stream=True)
        inbox = Awaiting()
        self._access.submit(call, inbox)
        try:
            while not isinstance(item := await inbox.get(), Reply):
                yield _piece(item)
        finally:
            self._access.cancel(call.call_id)

    def reply(self, call: GenCall) -> Reply:
        """Submit one call and wait for its reply."""
        return self._replies([call])[call.call_id]

    def call_id(self) -> str:
        """An id that is unique in the process."""
        return f"{self._name}-{id(self):x}-{next(self._numbers)}"

    def _calls(self, prompt: Any, sampling: Mapping[str, Any]) -> tuple[list[GenCall], bool]:
        """A call for each prompt, and whether there was a single one."""
        each, single = prompts(prompt)
        return [self._call(p, sampling, stream=False) for p in each], single

    def _call(self, prompt: str | Sequence[int], sampling: Mapping[str, Any], stream: bool) -> GenCall:
        params, constraint, logprobs = options(sampling)
        if params.heal and not isinstance(prompt, str):
            raise UsageError("heal needs a prompt as text: ids stay as they are")
        if stream and params.n > 1:
            raise UsageError("stream yields one text: use n=1")
        segment = Text(prompt, special=True) if isinstance(prompt, str) else Generated("", tuple(map(int, prompt)))
        return GenCall(self.call_id(), (segment,), params, constraint, logprobs, stream)

    def _replies(self, calls: list[GenCall]) -> dict[str, Reply]:
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
                self._access.submit(call, inbox)
            yield
        finally:
            for call in calls:
                if call.call_id not in replies:
                    self._access.cancel(call.call_id)


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
