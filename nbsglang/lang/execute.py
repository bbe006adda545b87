"""What one stream does: a generator that takes ops and replies, and gives calls. No threads, no waiting.

The feeder sends each value that the generator asks for: `NEXT_OP` an op, a call its chunks and its reply, `MORE` the
next of these, a `Slot` nothing but the time when it is done. A `Hint` is submitted and never answered. What the
generator raises ends the stream.

Not here: when any of this happens (`feeder.py`), what the calls hold (`stream_calls.py`); what a prompt looks like
(`Backend.render`).
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Any, NamedTuple

from nbsglang.calls import Call, Chunk, Completion, GenCall, Prompt, Reply, RoleBegin, RoleEnd, Text
from nbsglang.errors import BackendError, UsageError
from nbsglang.events import StreamRole, StreamText, VariableSet
from nbsglang.lang import ops, prompts
from nbsglang.lang.choices import decide
from nbsglang.lang.meta import gen_meta, select_meta
from nbsglang.lang.ops import Op
from nbsglang.lang.reasoning import split_reasoning
from nbsglang.lang.scored import scored
from nbsglang.lang.slots import Fault, Slot
from nbsglang.lang.stream import Stream
from nbsglang.lang.stream_calls import derived_seed, gen_call, hint_call, score_call


class Ask(Enum):
    """What a stream may ask for besides calls and slots."""

    NEXT_OP = 0
    MORE = 1


class Hint(NamedTuple):
    """A call whose reply nobody waits for."""

    call: GenCall


Want = Ask | Hint | Call | Slot
Execution = Generator[Want, Any, None]


class Inherited(Exception):
    """The stream cannot go on because of a fault of another stream."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def execute(stream: Stream) -> Execution:
    """The life of a stream; see the module."""
    while True:
        op: Op = yield Ask.NEXT_OP
        part = op.part
        if isinstance(part, ops.Literal):
            _literal(stream, part.text)
        elif isinstance(part, ops.Gen):
            yield from _gen(stream, part, op)
        elif isinstance(part, ops.Select):
            yield from _select(stream, part, op)
        elif isinstance(part, (ops.BeginRole, ops.EndRole)):
            _role(stream, part)
        elif isinstance(part, ops.BeginScope):
            stream.scopes[part.name] = prompts.mark(stream.prompt)
        elif isinstance(part, ops.EndScope):
            text = prompts.plain_text(prompts.since(stream.prompt, stream.scopes.pop(part.name)))
            _fill(stream, op.slots[0], text)
        elif isinstance(part, ops.Fork):
            if part.n > 1 and _hint_pays(stream):
                yield Hint(hint_call(stream))
            op.slots[0].fill(stream.prompt)
        elif isinstance(part, ops.Start):
            yield part.fork
            if part.fork.fault is not None:
                raise Inherited(part.fork.fault)
            _start(stream, part.fork)
        elif isinstance(part, ops.Quote):
            yield part.slot
            if part.slot.fault is not None:
                raise Inherited(part.slot.fault)
            _literal(stream, format(part.slot.value))
        elif isinstance(part, ops.Concat):
            for branch in part.streams:  # all of them are idle: join has waited
                stream.append(prompts.since(branch.prompt, branch.forked_at))


def _literal(stream: Stream, text: str) -> None:
    stream.append((Text(text),))
    stream.run.emit(StreamText(stream.id, text))


def _start(stream: Stream, fork: Slot) -> None:
    prompt: Prompt = fork.value  # type: ignore[assignment]  # what Fork fills its slot with
    stream.append(prompt)
    stream.warm = stream.prompt
    stream.forked_at = prompts.mark(prompt)


def _role(stream: Stream, part: ops.BeginRole | ops.EndRole) -> None:
    current = prompts.open_role(stream.prompt)
    if isinstance(part, ops.BeginRole):
        if current is not None:
            raise UsageError(f"the role {part.role!r} begins inside the role {current!r}: end that one first")
        stream.append((RoleBegin(part.role),))
        stream.run.emit(StreamRole(stream.id, part.role))
        return
    if current != part.role:
        raise UsageError(f"the role {part.role!r} ends, but the open role is {current!r}")
    stream.append((RoleEnd(part.role),))


def _gen(stream: Stream, part: ops.Gen, op: Op) -> Generator[Want, Any, None]:
    wishes = part.logprobs.over(stream.run.options.logprobs)
    call = gen_call(stream, part, op, wishes.spec())
    slot = op.slots[0]
    answer: Chunk | Reply = yield call
    while isinstance(answer, Chunk):
        if answer.index == 0:  # the text that goes on; the other ones of n come with the reply
            stream.shown = (stream.shown[0], stream.shown[1] + answer.text)
            slot.add_chunk(answer.text)
        answer = yield Ask.MORE
    completions = answer.completions
    if not completions and call.sampling.max_tokens == 0:
        completions = (Completion("", finish_reason="prefix"),) * call.sampling.n
    if len(completions) != call.sampling.n:
        raise BackendError(f"the backend gave {len(completions)} texts for a call that wants {call.sampling.n}")
    metas = [gen_meta(answer, done, bool(wishes.text)) for done in completions]
    thoughts, texts = [], [done.text for done in completions]
    if part.split_reasoning:
        pairs = [split_reasoning(text) for text in texts]
        thoughts, texts = [thought for thought, _ in pairs], [text for _, text in pairs]
    stream.append(completions[0].segments() if texts[0] == completions[0].text else (Text(texts[0]),))
    stream.warm = stream.prompt
    values = [_read(part, text, done) for text, done in zip(texts, completions, strict=True)]
    many = call.sampling.n > 1
    _fill(stream, slot, values if many else values[0], metas if many else metas[0])
    if thoughts:
        _fill(stream, op.slots[1], thoughts if many else thoughts[0])


def _read(part: ops.Gen, text: str, done: Completion) -> object:
    """The variable's value of a text. A type cannot be read of a text that the limit has cut off."""
    if part.read is None:
        return text
    try:
        return part.read(text)
    except ValueError:
        if done.finish_reason != "length":
            raise
        shown = text if len(text) <= 60 else "..." + text[-57:]
        message = f"the text was cut off after {len(done.ids)} tokens, before it was a whole value: raise max_tokens"
        raise UsageError(f"{message} ({shown!r})") from None


def _select(stream: Stream, part: ops.Select, op: Op) -> Generator[Want, Any, None]:
    run = stream.run
    seed = part.seed
    if seed is None and run.options.seed is not None:
        seed = derived_seed(run.options.seed, stream.path, stream.n_calls)
    call = score_call(stream, part, op)
    reply: Reply = yield call
    if len(reply.scores) != len(part.choices):
        raise BackendError(f"the backend gave {len(reply.scores)} scores for {len(part.choices)} choices")
    made = decide(part.choices, reply.scores, part.method, part.temperature, seed)
    run.emit(scored(stream.id, call.call_id, part.choices, made))
    if run.streaming:
        op.slots[0].add_chunk(made.decision)
    stream.append((Text(made.decision),))
    stream.warm = stream.prompt
    value = part.values[part.choices.index(made.decision)]
    _fill(stream, op.slots[0], value, select_meta(reply, made))


def _fill(stream: Stream, slot: Slot, value: object, meta: object = None) -> None:
    stream.run.emit(VariableSet(stream.id, slot.name, value if isinstance(value, str) else repr(value)))
    slot.fill(value, meta)


def _hint_pays(stream: Stream) -> bool:
    return stream.run.backend.capabilities.prefix_hint and stream.prompt is not stream.warm
