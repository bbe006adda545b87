"""Calls to requests: prompts become ids, constraints matchers, and what cannot be served is refused.

This happens on the caller's thread; nothing here touches the engine's.

Not here: what sampling parameters may be (`ranges.py`), calls in flight and their answers (`backend.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nbsglang.calls import Call, Constraint, GenCall, Prompt, SamplingParams, ScoreCall, Text
from nbsglang.engine.config import Config
from nbsglang.engine.grammar.matcher import Matcher
from nbsglang.engine.heal import End, Healer, HealingMatcher
from nbsglang.engine.prompt import Encoded, Renderer
from nbsglang.engine.radix import common_prefix
from nbsglang.engine.ranges import check_ids, check_sampling
from nbsglang.engine.request import Request
from nbsglang.engine.sampler import uniform
from nbsglang.engine.slots import Ints
from nbsglang.engine.stops import StopMatcher
from nbsglang.engine.store import cache_folder
from nbsglang.engine.tokenizer import Tokenizer
from nbsglang.errors import PromptTooLong, UsageError
from nbsglang.events import Body, Constrained, Control

if TYPE_CHECKING:
    from nbsglang.engine.grammar.constraints import Constraints


class Intake:
    """Makes the requests of calls; a prompt with its answer has at most `n_context` and `n_slots` tokens."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        renderer: Renderer,
        emit: Callable[[Body], object],
        n_vocab: int,
        n_context: int,
        n_slots: int,
        config: Config,
    ) -> None:
        self._tokenizer = tokenizer
        self._renderer = renderer
        self._emit = emit
        self._n_vocab, self._n_context, self._n_slots = n_vocab, n_context, n_slots
        self._lock = threading.Lock()  # for what follows
        self._seed = config.seed
        self._jump = config.jump
        self._never = tokenizer.special_ids | frozenset(tokenizer.hf.added_tokens_decoder)  # added tokens are no text
        self._healer = Healer(tokenizer, self._never)
        self._constraints: Constraints | None = None  # made at the first one: it reads the whole vocabulary

    def requests(self, call: Call) -> list[Request]:
        """The requests of a call, their ids still 0. Raises UsageError, ConstraintError or PromptTooLong."""
        if isinstance(call, ScoreCall):
            return self._score_requests(call)
        requests = self._gen_requests(call)
        if call.constraint is not None:
            self._emit(_constrained(call.call_id, call.constraint, requests[0].matcher))
        return requests

    def _gen_requests(self, call: GenCall) -> list[Request]:
        params = call.sampling
        check_sampling(params)
        check_ids(params, call.logprobs, self._n_vocab)
        encoded = self._encoded(call.prompt)
        ids, max_new, end = self._healed(encoded, params)
        scored_from = call.logprobs.prompt_start if call.logprobs else None
        last = len(ids) if params.max_tokens == 0 else len(ids) - 1
        seed = params.seed if params.seed is not None else self._draw_seed()
        return [
            Request(
                id=0,
                call_id=call.call_id,
                row=np.resize(ids, len(ids) + min(max_new, 256)),
                n_tokens=len(ids),
                want_from=last if scored_from is None or place else min(last, max(scored_from - 1, 0)),
                max_new=max_new,
                sampling=params,
                seed=seed,
                eos_ids=frozenset(self._tokenizer.eos_ids),
                matcher=self._matcher(call.constraint, end),
                stops=StopMatcher(params.stop, params.stop_regex) if params.stop or params.stop_regex else None,
                detokenizer=self._tokenizer.detokenizer(skip=len(end.text.encode())) if max_new else None,
                streams=call.stream,
                n_top=call.logprobs.top if call.logprobs else None,
                place=place,
                jump=self._jump if call.constraint is not None and call.logprobs is None else "off",
                over=end.text,
                is_free=call.constraint is None,
            )
            for place in range(params.n)
        ]

    def _healed(self, encoded: Encoded, params: SamplingParams) -> tuple[Ints, int, End]:
        """The ids to go on from, how many new tokens there may be, and the end of the prompt that is taken back."""
        ids = _as_ids(encoded)
        room = self._room(ids, params.max_tokens)
        if params.heal and params.max_tokens:
            end = self._healer.end(encoded.ids, encoded.n_literal)
            if end.ids:
                return ids[: len(ids) - len(end.ids)], min(params.max_tokens, room), end
        return ids, min(params.max_tokens, room), End()

    def _matcher(self, constraint: Constraint | None, end: End) -> Matcher | None:
        inner = None
        if constraint is not None:
            inner = self.compile(constraint)
            if end.ids:
                inner.seed(end.text.encode())
        return HealingMatcher(end, inner) if end.ids else inner

    def compile(self, constraint: Constraint) -> Matcher:
        """A matcher at the beginning of a constraint. Raises ConstraintError."""
        with self._lock:
            if self._constraints is None:
                from nbsglang.engine.grammar.constraints import Constraints

                words, folder = self._tokenizer, cache_folder() / "vocabularies"
                self._constraints = Constraints(words.bytes_table, words.eos_ids, self._never, folder=folder)
            constraints = self._constraints
        return constraints.compile(constraint)

    def _score_requests(self, call: ScoreCall) -> list[Request]:
        """One request for each choice, then, if asked for, one for each choice without the prompt."""
        if not call.choices:
            raise UsageError("select needs at least one choice")
        if "" in call.choices:
            raise UsageError('a choice is the empty string ""; give every choice some text')
        prompt = self._encode(call.prompt, may_be_empty=True)
        full = [self._encode((*call.prompt, Text(choice))) for choice in call.choices]
        start = min(common_prefix(prompt, ids) for ids in full)
        start = min(start, *(len(ids) - 1 for ids in full))
        if start == 0:
            raise UsageError("select needs some text before its choices: the first token has no probability")
        requests = [self._score_request(call.call_id, ids, start) for ids in full]
        if call.unconditional:
            before = np.array(self._tokenizer.bos_ids or self._tokenizer.eos_ids[:1], np.int32)
            alone = [np.concatenate([before, ids[start:]]) for ids in full]
            requests += [self._score_request(call.call_id, ids, max(len(before), 1)) for ids in alone]
        return requests

    def _score_request(self, call_id: str, ids: Ints, start: int) -> Request:
        self._room(ids, 0)
        return Request(0, call_id, ids, len(ids), start - 1, 0, SamplingParams(max_tokens=0), 0)

    def _encode(self, prompt: Prompt, may_be_empty: bool = False) -> Ints:
        return _as_ids(self._encoded(prompt, may_be_empty))

    def _encoded(self, prompt: Prompt, may_be_empty: bool = False) -> Encoded:
        try:
            encoded = self._renderer.encode(prompt)
        except TypeError as error:  # what the tokenizer says of text that is not Unicode
            raise UsageError(f"the prompt is no valid text (a lone surrogate, perhaps): {error}") from None
        if encoded.anew is not None:
            self._emit(Control("prompt encoded anew", f"the chat template rewrites it from token {encoded.anew} on"))
        wide = np.array(encoded.ids, np.int64)
        outside = wide[(wide < 0) | (wide >= self._n_vocab)]
        if len(outside):
            raise UsageError(f"token id {outside[0]} is none of the model's {self._n_vocab}; is this its tokenizer?")
        if not encoded.ids and not may_be_empty:
            raise UsageError("the prompt is empty and the model has no BOS token: give it some text")
        return encoded

    def _room(self, ids: Ints, n_wanted: int) -> int:
        """How many tokens may follow; PromptTooLong if there is no room for even one that is wanted."""
        longest = min(self._n_context, self._n_slots)
        if len(ids) + min(n_wanted, 1) > longest:
            limit = "the model's context" if self._n_context <= self._n_slots else "the KV pool (kv_tokens)"
            raise PromptTooLong(f"the prompt has {len(ids)} tokens, but {limit} holds {longest} with the answer")
        return longest - len(ids)

    def _draw_seed(self) -> int:
        """A seed for a call that has none: the engine's seed and the number of calls before it decide."""
        with self._lock:
            self._seed += 1
            return int(uniform(self._seed, 0, 0) * (1 << 53))


def _as_ids(encoded: Encoded) -> Ints:
    return np.array(encoded.ids, np.int32)


def _constrained(call_id: str, constraint: Constraint, matcher: Matcher | None) -> Constrained:
    from nbsglang.engine.grammar.automatic import AutomatonMatcher  # loaded by now, as by every constraint
    from nbsglang.engine.grammar.graph import text_of

    inner = matcher.inner if isinstance(matcher, HealingMatcher) else matcher
    by = "automaton" if isinstance(inner, AutomatonMatcher) else "llguidance"
    return Constrained(call_id, constraint.kind, text_of(constraint), by)
