"""What `with` takes: a role, or a scope of a variable, around the statements of a program.

Not here: the parts that it appends (`ops.py`), whole messages (`api.py`).
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from nbsglang.errors import UsageError
from nbsglang.lang.ops import Part, caller

if TYPE_CHECKING:
    from nbsglang.lang.state import ProgramState


class Role:
    """Appends one part when it is entered and another when it is left, after errors too."""

    def __init__(self, state: ProgramState, begin: Part, end: Part) -> None:
        self._state, self._begin, self._end = state, begin, end

    def __enter__(self) -> None:
        self._state._append((self._begin,), caller())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            self._state._append((self._end,), caller())
        except UsageError:
            if error is None:  # else the error on its way out is the one to tell about
                raise
