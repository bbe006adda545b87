"""The few settings that SGLang's programs touch: `global_config.verbosity` and its like.

Not here: the default backend's place (`nbsglang/current.py`), which `default_backend` reads and writes.
"""

from __future__ import annotations

from nbsglang import current
from nbsglang.calls import Backend


class GlobalConfig:
    """Settings of the process.

    `verbosity` 2 prints the text of each program when it ends. The two `enable_` switches are accepted and change
    nothing: prefixes are always shared, and branches are always appended as text.
    """

    __slots__ = ("enable_parallel_encoding", "enable_precache_with_tracing", "verbosity")

    def __init__(self) -> None:
        self.verbosity = 0
        self.enable_precache_with_tracing = True
        self.enable_parallel_encoding = True

    @property
    def default_backend(self) -> Backend:
        """The backend of programs that name none."""
        return current.default_backend()

    @default_backend.setter
    def default_backend(self, backend: Backend | None) -> None:
        current.set_default_backend(backend)


global_config = GlobalConfig()
