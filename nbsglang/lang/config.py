"""The few settings that SGLang's programs touch: `global_config.verbosity` and its like.

Not here: where the values are kept (`nbsglang/current.py`).
"""

from __future__ import annotations

from nbsglang import current
from nbsglang.calls import Backend


class GlobalConfig:
    """Settings of the process, under the names of SGLang's. Other names are AttributeErrors.

    verbosity         from 2 on each program prints its text when it ends
    default_backend   the same as `nbsglang.set_default_backend`
    enable_precache_with_tracing, enable_parallel_encoding
                      always true; setting them is accepted and changes nothing, since prefixes are always shared and
                      branches are always appended as text
    """

    __slots__ = ()

    @property
    def verbosity(self) -> int:
        """How much programs print; see the class."""
        return current.verbosity()

    @verbosity.setter
    def verbosity(self, value: int) -> None:
        current.set_verbosity(value)

    @property
    def default_backend(self) -> Backend:
        """The backend of programs that name none."""
        return current.default_backend()

    @default_backend.setter
    def default_backend(self, backend: Backend | None) -> None:
        current.set_default_backend(backend)

    @property
    def enable_precache_with_tracing(self) -> bool:
        """Always true: prefixes are shared in any case."""
        return True

    @enable_precache_with_tracing.setter
    def enable_precache_with_tracing(self, value: bool) -> None:
        """Changes nothing."""

    @property
    def enable_parallel_encoding(self) -> bool:
        """Always true, without a meaning: branches are appended as text."""
        return True

    @enable_parallel_encoding.setter
    def enable_parallel_encoding(self, value: bool) -> None:
        """Changes nothing."""


global_config = GlobalConfig()
