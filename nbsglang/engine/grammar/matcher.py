"""The contract between constrained decoding and the engine, and the table that mask rows live in.

Not here: who fills the contract (`automatic.py`, `external.py`), what a constraint is (`calls.Constraint`).
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

MaskRow: TypeAlias = npt.NDArray[np.int32]  # bit i of word j: token 32 j + i may come next. [ceil(n_vocab / 32)]


class Matcher(Protocol):
    """Where one text stands in its constraint. Belongs to one request and one thread.

    A text that is "done" matches the constraint in full; its mask has the EOS tokens, and only then. Special tokens
    that do not end a text are in no mask, and no mask is empty.
    """

    @property
    def row(self) -> int:
        """The index of `mask()` in the array of masks that it is part of, valid until the matcher changes.

        Matchers in states of one mask may have one row.
        """
        ...

    @property
    def done(self) -> bool:
        """The text so far is a full match."""
        ...

    @property
    def ended(self) -> bool:
        """The text is a full match and nothing can follow, or EOS was accepted."""
        ...

    def mask(self) -> MaskRow:
        """The tokens that may come next: a view of the array, not to be written to, valid until the matcher changes.

        Raises ConstraintError when no token of the vocabulary can come next, or past the work budget.
        """
        ...

    def accept(self, token: int) -> bool:
        """Append a token. False, and nothing is changed, if the mask does not have it."""
        ...

    def rollback(self, n_tokens: int) -> None:
        """Take the last accepted tokens back."""
        ...

    def forced(self) -> str:
        """The text that must come next, whatever is chosen; "" where there is a choice or the text may end."""
        ...

    def fork(self) -> Matcher:
        """A matcher in the same state that goes its own way from here."""
        ...

    def seed(self, prefix: bytes) -> None:
        """Require that the text begins with these bytes and matches the constraint after them.

        Before the first token only. Raises ConstraintError if that is too late or the bytes are not UTF-8.
        """
        ...

    def close(self) -> None:
        """Give back a row of its own; a matcher that is dropped does so by itself."""
        ...


class MaskTable:
    """Rows of masks in one array that grows, each for one matcher: `rows[matcher.row]` is its mask."""

    def __init__(self, n_vocab: int, n_rows: int = 16) -> None:
        self.rows: npt.NDArray[np.int32] = np.zeros((n_rows, (n_vocab + 31) // 32), dtype=np.int32)
        self._free = list(range(n_rows - 1, -1, -1))

    def take(self) -> int:
        """A row that nobody uses. The array is replaced by a larger one when it is full."""
        if not self._free:
            n_rows = len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
            self._free = list(range(2 * n_rows - 1, n_rows - 1, -1))
        return self._free.pop()

    def give_back(self, row: int) -> None:
        """Let others use the row."""
        self._free.append(row)
