"""A backend that answers from a script, for tests and for trying programs without a model.

One token is one character, its id the character's code point; so texts, ids, `max_tokens` and usage agree exactly.
Prompts are rendered as ChatML. Nothing is cached.

Not here: what the script answers (`scripted.py`); any language model, and any imitation of one.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from nbsglang.backends.scripted import Scores, Script, Scripted
from nbsglang.calls import (
    CONSTRAINT_KINDS,
    Call,
    Capabilities,
    Chunk,
    Failure,
    GenCall,
    Generated,
    Inbox,
    Prompt,
    Reply,
    RoleBegin,
    RoleEnd,
    ScoreCall,
    Text,
)
from nbsglang.current import forget_backend
from nbsglang.errors import BackendClosed, Cancelled, Unsupported, UsageError

_CAN_ALL = Capabilities(
    ids=True,
    logprobs=True,
    scores=True,
    prefix_hint=True,
    constraints=CONSTRAINT_KINDS,
    seed=True,
    n=True,
    heal=True,  # nothing merges with a token that is one character
)


class _Due(NamedTuple):
    """Something to put in an inbox at a time."""

    at: float
    number: int
    call_id: str
    inbox: Inbox
    item: Chunk | Reply | Failure


class MockBackend:
    """Answers each call from `script`; `calls` has the last 1,000 submitted, `cancelled` the ids of those cancelled.

    script      a string (or an exception to fail with): the answer to every call.
                A list: one answer after the other, in order of submission (a call with n=2 takes two).
                A dict: by the gen's name, else by a regex that is found in the rendered prompt.
                A callable: gets the call and returns the answer.
                None: "mock" to gens, the first choice to selects.
    scores      for selects: choice -> token logprobs (or one number for each character); a dict or a callable.
                Without it the scripted answer must be one of the choices, and is the likely one.
    delay       seconds from submit to reply; chunks of a streaming call are spread over them.
    chunk       characters of a streamed chunk.

    A scripted text that does not fit the call's constraint fails the call. A prefix hint is answered, but takes
    nothing from the script.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        scores: Scores | None = None,
        delay: float = 0.0,
        chunk: int = 4,
        capabilities: Capabilities = _CAN_ALL,
        render: Callable[[Prompt], str] | None = None,
    ) -> None:
        if chunk < 1 or delay < 0:
            raise UsageError(f"chunk must be at least 1 and delay at least 0, not {chunk} and {delay}")
        self._delay = delay
        self._chunk = chunk
        self._capabilities = capabilities
        self._render = render or _chatml
        self._scripted = Scripted(script, scores, self._render, delay)
        self._numbers = itertools.count()
        self._wake = threading.Condition()  # guards what follows; a script may ask for `calls` while it is held
        self._calls: deque[Call] = deque(maxlen=1000)
        self._cancelled: list[str] = []
        self._due: list[_Due] = []
        self._pending: dict[str, Inbox] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._counts = dict.fromkeys(("calls", "prompt_tokens", "generated_tokens"), 0)

    @property
    def capabilities(self) -> Capabilities:
        """What it can do: all but images, unless told otherwise."""
        return self._capabilities

    @property
    def calls(self) -> list[Call]:
        """The calls submitted, oldest first: the last 1,000 of them."""
        with self._wake:
            return list(self._calls)

    @property
    def cancelled(self) -> list[str]:
        """The ids of the calls that were cancelled, in order."""
        with self._wake:
            return list(self._cancelled)

    def render(self, prompt: Prompt) -> str:
        """The prompt as ChatML; what is outside of roles is plain text."""
        return self._render(prompt)

    @property
    def renderer(self) -> Callable[[Prompt], str]:
        """What `render` calls."""
        return self._render

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Answer at once, or after the delay."""
        if isinstance(call, ScoreCall) and not self._capabilities.scores:
            raise Unsupported("this mock cannot score choices")
        with self._wake:
            if self._closed:
                raise BackendClosed("the mock backend is closed")
            self._calls.append(call)
            items = self._answers(call)
            if self._delay == 0:
                for item in items:
                    inbox.put(item)
            else:
                self._schedule(call, inbox, items)

    def cancel(self, call_id: str) -> None:
        """Take the call back, if it waits."""
        with self._wake:
            inbox = self._pending.pop(call_id, None)
            if inbox is not None:
                self._cancelled.append(call_id)
                inbox.put(Failure(call_id, Cancelled("the call was cancelled")))
                self._wake.notify()

    def flush(self) -> None:
        """Nothing is cached."""

    def stats(self) -> Mapping[str, float]:
        """How many calls were answered, and their tokens."""
        with self._wake:
            return dict(self._counts)

    def close(self) -> None:
        """End the waiting calls."""
        with self._wake:
            self._closed = True
            for call_id, inbox in self._pending.items():
                inbox.put(Failure(call_id, BackendClosed("the mock backend was closed during the call")))
            self._pending.clear()
            self._wake.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        forget_backend(self)

    # ------------------------------------------------------------------------------------- the delay

    def _schedule(self, call: Call, inbox: Inbox, items: list[Chunk | Reply | Failure]) -> None:
        now = time.monotonic()
        self._pending[call.call_id] = inbox
        for n, item in enumerate(items, 1):
            at = now + self._delay * n / len(items)
            heapq.heappush(self._due, _Due(at, next(self._numbers), call.call_id, inbox, item))
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="nbsglang-mock", daemon=True)
            self._thread.start()
        self._wake.notify()

    def _deliver(self) -> None:
        """Put what is due; ends when nothing waits any more."""
        with self._wake:
            while self._pending:
                due = self._due[0]
                late = time.monotonic() - due.at
                if due.call_id in self._pending and late < 0:
                    self._wake.wait(-late)
                    continue
                heapq.heappop(self._due)
                if due.call_id in self._pending:
                    if not isinstance(due.item, Chunk):
                        del self._pending[due.call_id]
                    due.inbox.put(due.item)
            self._due.clear()
            self._thread = None

    # ----------------------------------------------------------------------------------- the answers

    def _answers(self, call: Call) -> list[Chunk | Reply | Failure]:
        try:
            reply = self._scripted.reply(call)
        except Exception as error:  # a script's own errors too
            return [Failure(call.call_id, error.with_traceback(None))]
        self._counts["calls"] += 1
        self._counts["prompt_tokens"] += reply.usage.prompt_tokens
        self._counts["generated_tokens"] += reply.usage.generated_tokens
        chunks = self._chunks(call, reply) if isinstance(call, GenCall) and call.stream else ()
        return [*chunks, reply]

    def _chunks(self, call: GenCall, reply: Reply) -> Iterator[Chunk]:
        for index, done in enumerate(reply.completions):
            for at in range(0, len(done.text), self._chunk):
                piece = done.text[at : at + self._chunk]
                yield Chunk(call.call_id, piece, index)


def _chatml(prompt: Prompt) -> str:
    pieces = []
    for segment in prompt:
        if isinstance(segment, (Text, Generated)):
            pieces.append(segment.text)
        elif isinstance(segment, RoleBegin):
            pieces.append(f"<|im_start|>{segment.name}\n")
        elif isinstance(segment, RoleEnd):
            pieces.append("<|im_end|>\n")
        else:
            raise Unsupported("the mock backend takes no images")
    return "".join(pieces)
