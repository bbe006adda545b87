"""A backend that calls no model: answers are made up, and what prompts would share is found with the engine's own tree.

It writes the events that an engine writes, so that every view shows what would be cached. A made-up answer has as many
tokens as its generation may write; under a constraint it is one of the shortest texts that fit; of choices it is the
first. Tokens of made-up answers are unlike all others, since different answers share nothing.

Not here: the cell and what is told about it (`nbsglang/notebook/rehearsal.py`).
"""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from nbsglang.calls import (
    CONSTRAINT_KINDS,
    Call,
    Capabilities,
    ChoiceScore,
    Completion,
    GenCall,
    Generated,
    Inbox,
    Prompt,
    Reply,
    ScoreCall,
    Text,
    TokenLogprob,
    Usage,
)
from nbsglang.engine.grammar.shortest import shortest_text
from nbsglang.engine.radix import RadixTree, common_prefix
from nbsglang.engine.radix_node import RadixNode
from nbsglang.engine.slots import Ints
from nbsglang.errors import ConstraintError
from nbsglang.events import Admitted, Constrained, EventLog, Finished, Queued, Ready, Tokens, TokenTexts

_FIRST_MADE_UP = 1 << 24  # above the ids of every vocabulary
_LIKED, _OTHER = -0.1, -2.0
_PAD = " ~"


class Words(Protocol):
    """How a prompt becomes text and token ids."""

    def render(self, prompt: Prompt) -> str: ...
    def encode(self, prompt: Prompt) -> list[int]: ...
    def text_of(self, token: int) -> str: ...


class Assumed(NamedTuple):
    """What was made up for a generation: its name, how many tokens, and why these."""

    name: str
    n_tokens: int
    why: str


class DryBackend:
    """See the module. `assumed` says what was made up, call by call; `n_calls` counts them without prefix hints."""

    capabilities = Capabilities(
        ids=True,
        logprobs=True,
        scores=True,
        prefix_hint=True,
        constraints=CONSTRAINT_KINDS,
        seed=True,
        n=True,
    )

    def __init__(self, words: Words, log: EventLog, model: str, n_slots: int) -> None:
        self.log = log
        self.source = f"dry-{uuid.uuid4().hex[:6]}"
        self.assumed: list[Assumed] = []
        self.n_calls = 0
        self._words = words
        self._tree = RadixTree(self._emit)
        self._lock = threading.Lock()
        self._requests = itertools.count(1)
        self._made_up = itertools.count(_FIRST_MADE_UP)
        self._named: set[int] = set()
        self._pad_tokens = max(1, len(words.encode((Text("x" + _PAD * 32),))) - len(words.encode((Text("x"),)))) / 32
        self._emit(Ready("dry run", model, "", "", n_slots))

    def render(self, prompt: Prompt) -> str:
        """The text of the prompt."""
        return self._words.render(prompt)

    @property
    def renderer(self) -> Callable[[Prompt], str]:
        """The same as a function."""
        return self._words.render

    def submit(self, call: Call, inbox: Inbox) -> None:
        """Answer at once."""
        with self._lock:
            reply = self._score(call) if isinstance(call, ScoreCall) else self._generate(call)
        inbox.put(reply)

    def cancel(self, call_id: str) -> None:
        """Nothing waits."""

    def flush(self) -> None:
        """The tree is what the run is for."""

    def close(self) -> None:
        """Nothing is held."""

    def stats(self) -> Mapping[str, float]:
        """How many calls were answered."""
        return {"calls": self.n_calls}

    # ------------------------------------------------------------------------------------------ the calls

    def _generate(self, call: GenCall) -> Reply:
        ids = self._encode(call.prompt)
        if call.sampling.max_tokens == 0:
            usage = self._request(call.call_id, ids, len(ids), [])
            return Reply(call.call_id, (Completion("", finish_reason="prefix"),) * call.sampling.n, usage=usage)
        self.n_calls += 1
        if call.constraint is not None:
            self._emit(Constrained(call.call_id, call.constraint.kind, str(call.constraint.value)[:200], "dry run"))
        done, usages = [], []
        for _ in range(call.sampling.n):
            text, new, why = self._answer(call)
            self.assumed.append(Assumed(call.name, len(new), why))
            usages.append(self._request(call.call_id, ids, len(ids) - 1, new))
            tokens = tuple(TokenLogprob(token, -1.0, "") for token in new) if call.logprobs else None
            tops = tuple((token,) for token in tokens) if tokens and call.logprobs and call.logprobs.top else None
            done.append(Completion(text, tuple(new), "", "length", None, tokens, tops))
        return Reply(call.call_id, tuple(done), usage=_sum(usages))

    def _score(self, call: ScoreCall) -> Reply:
        self.n_calls += 1
        prompt = self._encode(call.prompt)
        full = [self._encode((*call.prompt, Text(choice))) for choice in call.choices]
        start = min(min(common_prefix(prompt, ids), len(ids) - 1) for ids in full)
        usage = _sum([self._request(call.call_id, ids, max(start - 1, 0), []) for ids in full])
        self.assumed.append(Assumed(call.name, 0, f"the first of {len(call.choices)} choices"))
        scores = tuple(_choice(ids[start:], _OTHER if n else _LIKED, call) for n, ids in enumerate(full))
        return Reply(call.call_id, scores=scores, usage=usage)

    def _answer(self, call: GenCall) -> tuple[str, list[int], str]:
        """A text, its ids, and why."""
        n = call.sampling.max_tokens
        if call.constraint is not None:
            try:
                text = shortest_text(call.constraint)
            except ConstraintError:
                return self._filler(call.name, n), self._fresh(call.name, n), "it may not fit its grammar"
            ids = self._encode((Generated("", ()), Text(text))).tolist()
            return text, ids[:n], "one of the shortest that fit"
        return self._filler(call.name, n), self._fresh(call.name, n), "as many as it may write"

    def _filler(self, name: str, n: int) -> str:
        """A text of about n tokens, for where Python puts it into another prompt."""
        head = f"‹{name or 'gen'}›"
        rest = n - len(self._words.encode((Text(head),)))
        return head + _PAD * max(0, round(rest / self._pad_tokens))

    def _fresh(self, name: str, n: int) -> list[int]:
        ids = [next(self._made_up) for _ in range(n)]
        self._named.update(ids)
        texts = (f"‹{name or 'gen'}: {n} tokens›", *[""] * (n - 1))
        self._emit(TokenTexts(tuple(ids), texts))
        return ids

    # --------------------------------------------------------------------------------------- the requests

    def _encode(self, prompt: Prompt) -> Ints:
        ids = self._words.encode(prompt)
        new = [token for token in dict.fromkeys(ids) if token not in self._named]
        if new:
            self._named.update(new)
            self._emit(TokenTexts(tuple(new), tuple(map(self._words.text_of, new))))
        return np.array(ids, np.int32)

    def _request(self, call_id: str, ids: Ints, want_from: int, new: Sequence[int]) -> Usage:
        """A request as an engine would serve it: what is cached of its prompt, and what it leaves in the cache."""
        number = next(self._requests)
        self._emit(Queued(number, call_id, len(ids)))
        node, hit = self._tree.lock_prefix(ids[:want_from], number)
        n_hit = len(hit)
        self._emit(Admitted(number, call_id, n_hit, len(ids) - n_hit, node.id))
        written = np.array(new, np.int32)
        is_scored = want_from < len(ids) and not len(written)  # then the last token is looked up, not computed
        node = self._insert(node, ids[n_hit : len(ids) - is_scored], number)
        if len(written):
            self._emit(Tokens((number,), (tuple(new),)))
            node = self._insert(node, written[:-1], number)
        self._tree.unlock(node)
        reason = "length" if len(written) else "prefix"
        self._emit(Finished(number, call_id, reason, len(ids), n_hit, len(written)))
        return Usage(len(ids), n_hit, len(ids) - n_hit, len(written))

    def _insert(self, node: RadixNode, tokens: Ints, number: int) -> RadixNode:
        """Put tokens below a node; slots are of no matter here, as nothing is ever evicted."""
        return self._tree.insert(node, tokens, np.zeros(len(tokens), np.int32), number)[0]

    def _emit(self, body: Any) -> None:
        self.log.emit(self.source, body)


def _choice(ids: Ints, logprob: float, call: ScoreCall) -> ChoiceScore:
    tokens = tuple(TokenLogprob(token, logprob, "") for token in ids.tolist())
    return ChoiceScore(tokens, tuple(t._replace(logprob=-1.0) for t in tokens) if call.unconditional else None)


def _sum(usages: Sequence[Usage]) -> Usage:
    return Usage(
        sum(u.prompt_tokens for u in usages),
        sum(u.cached_tokens for u in usages),
        sum(u.computed_tokens for u in usages),
        sum(u.generated_tokens for u in usages),
    )
