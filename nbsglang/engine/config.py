"""What an engine is told when it is made, checked once.

Not here: sizes that depend on the model and the machine (`sizes.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from nbsglang.errors import UsageError

Policy = Literal["prefix", "fcfs", "random", "dfs_weight"]
Jump = Literal["canonical", "exact", "off"]


@dataclass(frozen=True, slots=True)
class Config:
    """The engine's settings; see `nbsglang.engine.engine.Engine` for their meaning."""

    kv_tokens: int | None = None
    kv_memory: float | None = None
    max_batch: int | Literal["auto"] = "auto"
    chunk_tokens: int | None = None
    policy: Policy = "prefix"
    caching: bool = True
    lookahead: int = 64
    seed: int = 0
    jump: Jump = "canonical"

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise UsageError(f"policy={self.policy!r} is unknown; choose one of {', '.join(get_args(Policy))}")
        if self.jump not in get_args(Jump):
            raise UsageError(f"jump={self.jump!r} is unknown; choose one of {', '.join(get_args(Jump))}")
        if self.kv_tokens is not None and self.kv_tokens < 2:
            raise UsageError(f"kv_tokens={self.kv_tokens}: the pool must hold at least 2 tokens")
        if self.kv_memory is not None and not 0 < self.kv_memory <= 1:
            raise UsageError(f"kv_memory={self.kv_memory} is a share of the free memory, between 0 and 1")
        if self.max_batch != "auto" and self.max_batch < 1:
            raise UsageError(f"max_batch={self.max_batch} must be at least 1")
        if self.chunk_tokens is not None and self.chunk_tokens < 1:
            raise UsageError(f"chunk_tokens={self.chunk_tokens} must be at least 1")
        if self.lookahead < 1:
            raise UsageError(f"lookahead={self.lookahead} must be at least 1")
