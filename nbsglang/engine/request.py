"""One sequence on its way through the engine, from the queue to the end: a single type, no phases.

What it needs next follows from counts: `n_computed` of its tokens are in the KV cache, `n_planned` more
are computed in the current step, logits are wanted from index `want_from` on. Chunked prefill, decode,
preemption (`n_computed` back to 0) and the scoring of given tokens are the same arithmetic. `n_pending` tokens
are drawn but have not reached the host: the next step is planned by counts before it knows them. The last `n_draft`
tokens are guesses whose logits are all wanted: what the model would have chosen otherwise is taken back.

Not here: calls and inboxes (`backend.py`), which step computes what (`scheduler.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nbsglang.calls import FinishReason, SamplingParams, TokenLogprob
from nbsglang.engine.config import Jump
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.radix_node import RadixNode
from nbsglang.engine.slots import Ints
from nbsglang.engine.stops import StopMatcher
from nbsglang.engine.tokenizer import Detokenizer


@dataclass(slots=True, eq=False)
class Request:
    """Token ids, their slots, and how to go on.

    `row` and `slots` are int32 buffers of one capacity; the first `n_tokens` of `row` are the prompt and
    what was generated, the first `n_computed` of `slots` hold their KV. `want_from` is the index of the
    first token whose logits are still wanted: the last token of a prompt to continue, an earlier one to
    score given tokens, and `n_tokens` where no logits are wanted (a prefix hint).
    """

    id: int
    call_id: str
    row: Ints
    n_tokens: int
    want_from: int
    max_new: int
    sampling: SamplingParams
    seed: int
    eos_ids: frozenset[int] = frozenset()
    matcher: Matcher | None = None
    stops: StopMatcher | None = None
    detokenizer: Detokenizer | None = None
    streams: bool = False
    n_top: int | None = None  # logprobs of generated tokens are wanted, with so many alternatives
    place: int = 0  # which of the call's texts this is
    jump: Jump = "off"  # what happens to text that the constraint forces
    over: str = ""  # the end of the prompt's text, which the first generated tokens spell anew
    is_free: bool = False  # the matcher is there for that alone

    n_prompt: int = field(init=False)
    scores_only: bool = field(init=False)  # nothing is generated, but given tokens are scored
    end_ids: frozenset[int] = field(init=False)  # tokens that end the text and are not part of it
    is_penalised: bool = field(init=False)  # tokens of the text change the logits of those that follow
    needs_text: bool = field(init=False)  # the next token depends on the values of those before it
    is_watched: bool = field(init=False)  # each token is looked at when it comes, not all of them at the end
    slots: Ints = field(init=False)
    n_computed: int = field(default=0, init=False)
    n_planned: int = field(default=0, init=False)
    n_pending: int = field(default=0, init=False)  # tokens after `n_tokens` that the host has not seen yet
    drawn_at: int = field(default=0, init=False)  # where the last pending token stands among those of its step
    n_draft: int = field(default=0, init=False)  # of the last tokens, those that the model has yet to confirm
    n_tries: int = field(default=8, init=False)  # how many drafts may be tried at once
    n_stale: int = field(default=0, init=False)  # rows under way whose tokens are of no use any more
    leaps: bool = field(default=False, init=False)  # forced text has followed the last token that was chosen
    jumped: set[int] = field(default_factory=set, init=False)  # which of the generated tokens were forced
    removed: list[float | None] = field(default_factory=list, init=False)  # probabilities that masks have taken away
    n_over: int = field(default=0, init=False)  # bytes of `over` still to come
    n_within: int = field(default=0, init=False)  # generated tokens that lie within it
    n_shown: int = field(default=0, init=False)  # generated tokens that went through the detokenizer
    n_tree: int = field(default=0, init=False)  # leading tokens that the radix tree owns
    node: RadixNode | None = field(default=None, init=False)  # where these end; locked by this request
    admitted: bool = field(default=False, init=False)  # it ran before, though it may have been preempted since
    n_lost: int = field(default=0, init=False)  # leading tokens that a preemption has thrown away
    n_cached: int = field(default=0, init=False)  # prompt tokens that the first admission found in the tree
    n_passed: int = field(default=0, init=False)  # later arrivals admitted before it
    text: str = field(default="", init=False)  # what `stops` and `detokenizer` let through so far
    scores: list[TokenLogprob] = field(default_factory=list, init=False)  # of tokens want_from+1 .. n_prompt-1
    logprobs: list[TokenLogprob] = field(default_factory=list, init=False)  # of generated tokens
    tops: list[tuple[TokenLogprob, ...]] = field(default_factory=list, init=False)
    unwanted: bool = field(default=False, init=False)  # set on any thread: nobody waits for it any more
    finish_reason: FinishReason | None = field(default=None, init=False)
    matched: str | int | None = field(default=None, init=False)
    t_queued: float = field(default=0.0, init=False)
    t_first: float | None = field(default=None, init=False)  # when the first token was sampled
    t_finished: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        params = self.sampling
        self.n_prompt = self.n_tokens
        self.scores_only = self.max_new == 0 and self.want_from < self.n_prompt
        self.slots = np.zeros(len(self.row), np.int32)
        self.n_over = len(self.over.encode())
        is_bound = self.matcher is not None and not self.is_free  # a constraint allows EOS at its end only
        self.end_ids = self.eos_ids if is_bound or not params.ignore_eos else frozenset()
        self.end_ids |= frozenset(params.stop_token_ids)
        self._look()

    def _look(self) -> None:
        params, is_bound = self.sampling, self.matcher is not None
        penalties = (params.repetition_penalty != 1.0, params.frequency_penalty, params.presence_penalty)
        self.is_penalised = any(penalties)
        self.needs_text = is_bound or self.is_penalised
        self.is_watched = self.streams or is_bound or self.stops is not None or self.n_top is not None

    def heal(self, n_bytes: int) -> None:
        """A token of so many bytes has come while the end of the prompt was being spelled anew."""
        if n_bytes <= self.n_over:
            self.n_within += 1
            self.max_new += 1  # it is none of the answer's
        self.n_over = max(self.n_over - n_bytes, 0)
        if not self.n_over and self.is_free:
            self.matcher = None
            self._look()

    @property
    def tokens(self) -> Ints:
        """Prompt and generated ids, int32 [n_tokens]."""
        return self.row[: self.n_tokens]

    @property
    def generated(self) -> Ints:
        """Generated ids, int32 [n_tokens - n_prompt]."""
        return self.row[self.n_prompt : self.n_tokens]

    @property
    def n_new(self) -> int:
        """Generated tokens that stay."""
        return self.n_tokens - self.n_draft - self.n_prompt

    @property
    def n_known(self) -> int:
        """Tokens with those that are on their way from the device."""
        return self.n_tokens + self.n_pending

    @property
    def n_drawn(self) -> int:
        """Generated tokens with those that are on their way from the device, without those within `over`."""
        return self.n_known - self.n_prompt - self.n_within

    @property
    def goal(self) -> int:
        """How many tokens must be computed: the last one of a scored or of a full text is only looked up."""
        known = self.n_tokens + self.n_pending
        is_full = self.n_pending > 0 and known - self.n_prompt >= self.max_new
        return known - 1 if self.scores_only or is_full else known

    @property
    def n_missing(self) -> int:
        """Tokens still to compute before the request can go on."""
        return self.goal - self.n_computed

    @property
    def n_prefilling(self) -> int:
        """Planned tokens that are of the prompt, or are computed anew after a preemption."""
        return min(self.n_planned, max(max(self.n_prompt, self.n_lost) - self.n_computed, 0))

    @property
    def n_settled(self) -> int:
        """Computed tokens that stay: one that was planned ahead may follow on a text that has ended."""
        return min(self.n_computed, self.n_tokens - self.n_draft)

    @property
    def is_adjusted(self) -> bool:
        """Whether the logits of the next token are changed before it is drawn."""
        return self.needs_text or bool(self.sampling.logit_bias) or self.n_drawn < self.sampling.min_tokens

    @property
    def ended(self) -> bool:
        """Finished, failed or aborted."""
        return self.t_finished > 0

    def make_room(self, n: int) -> None:
        """Let `row` and `slots` hold `n` tokens; they grow by doubling."""
        if n > len(self.row):
            self.row = np.resize(self.row, max(n, 2 * len(self.row)))
            grown = np.zeros(len(self.row), np.int32)
            grown[: len(self.slots)] = self.slots
            self.slots = grown

    def drop_drafts(self, n: int | None = None) -> None:
        """Forget the last `n` drafts, or all."""
        n = self.n_draft if n is None else n
        self.n_tokens -= n
        self.n_draft -= n

    def append(self, token: int) -> None:
        """Add a generated token."""
        if self.n_tokens == len(self.row):
            self.make_room(self.n_tokens + 1)
        self.row[self.n_tokens] = token
        self.n_tokens += 1
