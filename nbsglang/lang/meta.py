"""What `get_meta_info` tells about a call, with SGLang's keys.

Until someone asks it is kept as plain tuples of plain values, which Python's garbage collector does not have to
visit: most is never asked for.

Not here: sums over a run (`run.py`).
"""

from __future__ import annotations

from typing import Any

from nbsglang.calls import Completion, Reply, TokenLogprob
from nbsglang.lang.choices import Decided

_Entry = tuple[float, int, str | None]
_ALWAYS = ("id", "prompt_tokens", "cached_tokens", "jumped_tokens", "e2e_latency", "first_token_latency")
_MAYBE = (  # unless None
    "completion_tokens",
    "output_token_logprobs",
    "output_top_logprobs",
    "input_token_logprobs",
    "removed",  # ours: see calls.Completion
)


def gen_meta(reply: Reply, done: Completion, with_text: bool) -> tuple[Any, ...]:
    """Meta info of one generated text, as it is kept."""
    count = reply.usage.generated_tokens if len(reply.completions) == 1 else len(done.ids) or None
    outputs = tops = inputs = None
    if done.logprobs is not None:
        outputs = [_entry(token, with_text) for token in done.logprobs]
    if done.top_logprobs is not None:
        tops = [[_entry(token, with_text) for token in tokens] for tokens in done.top_logprobs]
    if reply.prompt_logprobs is not None:
        inputs = [t if t is None else _entry(t, with_text) for t in reply.prompt_logprobs]
    return (done.finish_reason, done.matched, *_always(reply), count, outputs, tops, inputs, done.removed)


def select_meta(reply: Reply, made: Decided) -> dict[str, object]:
    """Meta info of a select: every choice's logprobs and probability."""
    return {**dict(zip(_ALWAYS, _always(reply), strict=True)), **made.meta_info}


def readable(kept: Any) -> Any:
    """Meta info as a dict, or a list of these for n texts; None where there was no call."""
    if isinstance(kept, list):
        return [readable(one) for one in kept]
    if not isinstance(kept, tuple):
        return kept
    finish, matched, *values = kept
    meta = dict(zip(_ALWAYS + _MAYBE, values, strict=True))
    for name in _MAYBE:
        if meta[name] is None:
            del meta[name]
    meta["finish_reason"] = {"type": finish} if matched is None else {"type": finish, "matched": matched}
    return meta


def _always(reply: Reply) -> tuple[Any, ...]:
    use = reply.usage
    return reply.call_id, use.prompt_tokens, use.cached_tokens, use.jumped_tokens, use.seconds, use.first_token_s


def _entry(token: TokenLogprob, with_text: bool) -> _Entry:
    return token.logprob, token.id, token.text if with_text else None
