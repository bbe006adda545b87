"""The contract between the language and the backends: plain frozen values, and one protocol.

A caller makes a `GenCall` or a `ScoreCall`, submits it with an inbox of its own, and reads the inbox:
any number of `Chunk` (only if the call streams), then exactly one `Reply` or `Failure`. There are no
futures and no callbacks: nothing of the caller ever runs on the backend's thread. The inbox is anything
with a `put` that never blocks, such as `queue.SimpleQueue`.

Not here: what a backend does with a call (`engine/`, `backends/`), and what a program is (`lang/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, get_args

# ---------------------------------------------------------------------------------------------- prompt


class Text(NamedTuple):
    """Literal text. Special tokens in it are only text, unless `special` says that the program wrote them."""

    text: str
    special: bool = False


class Token(int):
    """An id with what a constraint had to say. As a number it is the id.

    `jumped`: there was no choice, so it was taken without a pass of its own. `removed`: see `Completion`.
    """

    removed: float | None
    jumped: bool

    def __new__(cls, id_: int, removed: float | None = None, jumped: bool = False) -> Token:
        """Of a token that was drawn freely by default."""
        made = super().__new__(cls, id_)
        made.removed, made.jumped = removed, jumped
        return made


class Generated(NamedTuple):
    """Text that the model wrote, with its token ids, which are never encoded again.

    `ids` is empty where the backend gives no ids; then the text is encoded like any other. With `over` they spell more
    than the text: first `over`, the end of the literal text before it, whose own tokens they replace.
    """

    text: str
    ids: tuple[int, ...] = ()
    over: str = ""


class RoleBegin(NamedTuple):
    """A message of the role `name` begins."""

    name: str


class RoleEnd(NamedTuple):
    """The message of the role `name` ends."""

    name: str


class Media(NamedTuple):
    """An image or a video as a part of the prompt; `sha256` (hex) is its identity, `data` its bytes."""

    kind: Literal["image", "video"]
    sha256: str
    data: bytes


Segment = Text | Generated | RoleBegin | RoleEnd | Media
Prompt = tuple[Segment, ...]


# ----------------------------------------------------------------------------------------------- calls


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are chosen and when to stop.

    Order of operations on the logits: penalties and bias, mask of the constraint, temperature, top-k,
    top-p, min-p. `temperature` 0 is greedy. `top_k` -1 and `top_p` 1.0 mean off. `seed` None lets the
    backend choose one. `stop` strings and matches of `stop_regex` are not part of the text.
    `stop_token_ids` end the text before the token. `min_tokens` counts generated tokens before any stop
    is obeyed. `max_tokens` 0 only computes the prompt (a prefix hint). With `heal` the first tokens may replace the end
    of the prompt's literal text where they would have merged with it; neither number counts tokens that lie within it.
    """

    max_tokens: int = 128
    min_tokens: int = 0
    n: int = 1
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    stop_regex: tuple[str, ...] = ()
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    ignore_eos: bool = False
    seed: int | None = None
    heal: bool = False


ConstraintKind = Literal["regex", "choices", "schema", "grammar"]
CONSTRAINT_KINDS: frozenset[ConstraintKind] = frozenset(get_args(ConstraintKind))


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the generated text must match, in full.

    kind      value
    regex     a Python regular expression
    choices   a tuple of strings, one of which is the text
    schema    a JSON Schema as JSON text
    grammar   a Lark grammar
    """

    kind: ConstraintKind
    value: str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogprobSpec:
    """Which log probabilities the reply holds: natural logs under the model's own distribution.

    `top` alternatives for each generated token; prompt tokens from index `prompt_start` on (None: no
    prompt logprobs).
    """

    top: int = 0
    prompt_start: int | None = None


@dataclass(frozen=True, slots=True)
class GenCall:
    """Ask for text after `prompt`. `call_id` is unique in the process, `stream_id` names the asking stream."""

    call_id: str
    prompt: Prompt
    sampling: SamplingParams = field(default_factory=SamplingParams)
    constraint: Constraint | None = None
    logprobs: LogprobSpec | None = None
    stream: bool = False
    stream_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ScoreCall:
    """Ask for the log probability of each of `choices` after `prompt`, all from one common boundary.

    The boundary is the longest token prefix that the prompt shares with prompt + choice for every
    choice, so that merged tokens at the seam are scored exactly and alike. With `unconditional` each
    choice's tokens are also scored without the prompt.
    """

    call_id: str
    prompt: Prompt
    choices: tuple[str, ...]
    unconditional: bool = False
    stream_id: str = ""
    name: str = ""


Call = GenCall | ScoreCall


# --------------------------------------------------------------------------------------------- answers


class TokenLogprob(NamedTuple):
    """One token with its log probability (natural log)."""

    id: int
    logprob: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `cached` + `computed` cover the prompt; `jumped` of `generated` took no forward pass."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    jumped_tokens: int = 0
    first_token_s: float | None = None
    seconds: float = 0.0


FinishReason = Literal["stop", "length", "constraint", "prefix"]


@dataclass(frozen=True, slots=True)
class Completion:
    """One generated text. `ids` decode to `over` and the `text` without its last `len(tail)` characters.

    The ids are `Token`s where a constraint had a say. `tail` is not empty only where a stop string cut the text inside
    a token. `matched` is what ended the text: the stop string, the text that matched a stop regex, or the stop token's
    id. `over` is the end of the prompt that was healed. `removed` has for each generated token the probability that the
    constraint took away from the others, of the model's own distribution: from 0 to 1, None where there was no choice,
    or no constraint.
    """

    text: str
    ids: tuple[int, ...] = ()
    tail: str = ""
    finish_reason: FinishReason = "stop"
    matched: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    top_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None = None
    over: str = ""
    removed: tuple[float | None, ...] | None = None

    def segments(self) -> Prompt:
        """What to append to the prompt for this text."""
        covered = self.text[: len(self.text) - len(self.tail)]
        parts: list[Segment] = []
        if covered or self.ids:
            parts.append(Generated(covered, self.ids, self.over))
        if self.tail:
            parts.append(Text(self.tail))
        return tuple(parts)


@dataclass(frozen=True, slots=True)
class ChoiceScore:
    """Token logprobs of one choice from the common boundary on, and those without the prompt if asked for."""

    tokens: tuple[TokenLogprob, ...]
    unconditional: tuple[TokenLogprob, ...] | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """New text of a streaming call; `index` says of which of its n texts."""

    call_id: str
    text: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The end of a call that went well. A GenCall has `completions` (n of them), a ScoreCall `scores`."""

    call_id: str
    completions: tuple[Completion, ...] = ()
    scores: tuple[ChoiceScore, ...] = ()
    usage: Usage = field(default_factory=Usage)
    prompt_logprobs: tuple[TokenLogprob | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The end of a call that failed. `error` holds no frames and no tensors; a traceback is text in it."""

    call_id: str
    error: Exception


class Inbox(Protocol):
    """Where a backend puts the answers of a call; `put` must not block and must be safe from any thread."""

    def put(self, item: Chunk | Reply | Failure, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do. What it cannot do is an `Unsupported` error at submit, never ignored."""

    ids: bool = False  # completions carry token ids
    logprobs: bool = False
    scores: bool = False  # ScoreCall
    prefix_hint: bool = False  # GenCall with max_tokens 0
    constraints: frozenset[str] = frozenset()  # of CONSTRAINT_KINDS
    seed: bool = False
    n: bool = False
    images: bool = False
    heal: bool = False


class Backend(Protocol):
    """Something that answers calls. Every method is safe from any thread, and only `close` may wait."""

    @property
    def capabilities(self) -> Capabilities: ...

    def render(self, prompt: Prompt) -> str:
        """The text of the prompt as the model will see it."""
        ...

    @property
    def renderer(self) -> Callable[[Prompt], str]:
        """The same as a function that holds nothing of the backend but what it needs: no model, no connection."""
        ...

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Start the call. Raises BackendClosed, Unsupported or UsageError; later failures go to the inbox."""
        ...

    def cancel(self, call_id: str) -> None:
        """Stop the call soon; its inbox gets a Failure with Cancelled. Unknown ids are ignored."""
        ...

    def flush(self) -> None:
        """Forget what is cached (running calls keep what they hold)."""
        ...

    def stats(self) -> Mapping[str, float]:
        """Counters of this backend, plain numbers."""
        ...

    def close(self) -> None:
        """End all calls with BackendClosed and give everything back. A second close does nothing."""
        ...
