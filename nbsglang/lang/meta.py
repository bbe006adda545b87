"""What `get_meta_info` tells about a call, with SGLang's keys: plain dicts made from a reply.

Not here: sums over a run (`run.py`).
"""

from __future__ import annotations

from nbsglang.calls import Completion, Reply, TokenLogprob
from nbsglang.lang.choices import ChoicesDecision

_Entry = tuple[float, int, str | None]


def gen_meta(call_id: str, reply: Reply, completion: Completion, with_text: bool) -> dict[str, object]:
    """Meta info of one generated text."""
    reason: dict[str, object] = {"type": completion.finish_reason}
    if completion.matched is not None:
        reason["matched"] = completion.matched
    meta: dict[str, object] = {"id": call_id, "finish_reason": reason, **_usage(reply)}
    if len(reply.completions) == 1:
        meta["completion_tokens"] = reply.usage.generated_tokens
    elif completion.ids:
        meta["completion_tokens"] = len(completion.ids)
    if completion.logprobs is not None:
        meta["output_token_logprobs"] = [_entry(token, with_text) for token in completion.logprobs]
    if completion.top_logprobs is not None:
        meta["output_top_logprobs"] = [[_entry(t, with_text) for t in tokens] for tokens in completion.top_logprobs]
    if reply.prompt_logprobs is not None:
        meta["input_token_logprobs"] = [t if t is None else _entry(t, with_text) for t in reply.prompt_logprobs]
    return meta


def select_meta(reply: Reply, made: ChoicesDecision) -> dict[str, object]:
    """Meta info of a select: every choice's logprobs and probability."""
    return {"id": reply.call_id, **_usage(reply), **(made.meta_info or {})}


def _usage(reply: Reply) -> dict[str, object]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "jumped_tokens": usage.jumped_tokens,
        "e2e_latency": usage.seconds,
        "first_token_latency": usage.first_token_s,
    }


def _entry(token: TokenLogprob, with_text: bool) -> _Entry:
    return token.logprob, token.id, token.text if with_text else None
