"""The calls of a stream: what a gen, a select and a fork ask of the backend, with ids and seeds.

Not here: when they are submitted (`feeder.py`), what becomes of the answers (`execute.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from nbsglang.calls import Capabilities, GenCall, LogprobSpec, SamplingParams, ScoreCall
from nbsglang.errors import Unsupported, UsageError
from nbsglang.lang import ops
from nbsglang.lang.ops import Op
from nbsglang.lang.options import merged
from nbsglang.lang.stream import Stream


def gen_call(stream: Stream, part: ops.Gen, op: Op, logprobs: LogprobSpec | None) -> GenCall:
    """The next call of the stream. Raises UsageError, or Unsupported for what the backend cannot do."""
    run = stream.run
    sampling = merged(run.options.sampling, tuple(part.sampling.items()))
    if run.options.seed is not None and "seed" not in part.sampling:
        sampling = replace(sampling, seed=derived_seed(run.options.seed, stream.path, stream.n_calls))
    if sampling.min_tokens > sampling.max_tokens:
        raise UsageError(f"min_tokens {sampling.min_tokens} is above max_tokens {sampling.max_tokens}")
    can = run.backend.capabilities
    if "seed" not in part.sampling and not can.seed and sampling.temperature == 0:
        sampling = replace(sampling, seed=None)  # greedy text needs no seed
    _check(can, sampling, part, logprobs is not None)
    return GenCall(
        _call_id(stream),
        stream.prompt,
        sampling,
        part.constraint,
        logprobs,
        run.streaming,
        stream.id,
        op.slots[0].name,
    )


def _check(can: Capabilities, sampling: SamplingParams, part: ops.Gen, logprobs: bool) -> None:
    missing = []
    if sampling.seed is not None and not can.seed:
        missing.append("a seed")
    if sampling.n > 1 and not can.n:
        missing.append("n above 1")
    if sampling.heal and not can.heal:
        missing.append("token healing")
    if logprobs and not can.logprobs:
        missing.append("log probabilities")
    if part.constraint is not None and part.constraint.kind not in can.constraints:
        missing.append(f"a {part.constraint.kind} constraint")
    if missing:
        raise Unsupported(f"this backend cannot do {' or '.join(missing)}")


def score_call(stream: Stream, part: ops.Select, op: Op) -> ScoreCall:
    """The next call of the stream. Raises Unsupported where the backend cannot score."""
    if not stream.run.backend.capabilities.scores:
        raise Unsupported("this backend cannot score choices")
    alone = part.method.requires_unconditional_logprobs
    return ScoreCall(_call_id(stream), stream.prompt, part.choices, alone, stream.id, op.slots[0].name)


def hint_call(stream: Stream) -> GenCall:
    """A prefix hint for the prompt as it is, which is warm from now on."""
    stream.warm = stream.prompt
    stream.n_hints += 1
    return GenCall(f"{stream.id}.{stream.n_hints}p", stream.prompt, SamplingParams(max_tokens=0), stream_id=stream.id)


def _call_id(stream: Stream) -> str:
    stream.n_calls += 1
    return f"{stream.id}.{stream.n_calls}"


def derived_seed(seed: int, path: tuple[int, ...], n: int) -> int:
    """The seed of the n-th call of a stream: the same for the same run seed and place, whatever the timing."""
    place = f"{seed}/{'.'.join(map(str, path))}/{n}"
    return int.from_bytes(hashlib.sha256(place.encode()).digest()[:6], "big")  # fits a JSON number exactly
