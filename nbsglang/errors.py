"""Every exception that nbsglang raises on purpose.

Not here: assertions on our own invariants, which stay `AssertionError`.

    NbsglangError
    ├── UsageError            the program asks for something that makes no sense (also a ValueError)
    │   ├── ConstraintError   a regex, schema or grammar that cannot be used
    │   │   └── TextRefused   a text that it does not allow: says where
    │   ├── CellError         a cell cannot be compiled: names the line and the column
    │   └── NoSuchVariable    a state has no variable of this name (also a KeyError)
    ├── ProgramError          a call of a program failed: names the line, the stream and the call
    │   └── JoinError         one or more branches of a fork failed; `.errors` is aligned with them
    ├── Cancelled             the call, the program or the wait was cancelled, or ran out of time
    │   └── TimedOut          the time given by `timeout=` is over
    ├── BackendError          the backend failed
    │   ├── BackendClosed     it was closed before or during the call
    │   ├── Unsupported       it cannot do what the call asks for
    │   └── OutOfMemory       neither eviction nor a smaller step made the work fit
    ├── PromptTooLong         prompt and answer do not fit the context or the KV pool (also a ValueError)
    └── ModelError            a model cannot be loaded or served
        ├── ModelNotFound     there is nothing under this name
        ├── ModelRefused      its architecture or its file format is not served; says why
        └── DownloadError     a download failed or its hash is wrong
"""

from __future__ import annotations

from collections.abc import Sequence


class NbsglangError(Exception):
    """Root of all errors that nbsglang raises on purpose."""


class UsageError(NbsglangError, ValueError):
    """The program asks for something that makes no sense; the message says what to do instead."""


class ConstraintError(UsageError):
    """A regex, schema or grammar cannot be used: it does not compile, or nothing can match it."""


class TextRefused(ConstraintError):
    """A constraint does not allow a text that was given; `start` and `end` (characters of it) say from where on."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


class CellError(UsageError):
    """A cell cannot be compiled: it is no Python, or breaks a rule of the cell form.

    `line` (from 1, in the file that `filename` names) and `column` (from 1) say where, `text` is that line.
    """

    def __init__(self, message: str, *, filename: str, line: int, column: int = 1, text: str = "") -> None:
        super().__init__(message)
        self.filename = filename
        self.line = line
        self.column = column
        self.text = text

    def __str__(self) -> str:
        return f"{self.filename}, line {self.line}: {self.args[0]}"


class NoSuchVariable(UsageError, KeyError):
    """The state has no variable of this name (also a KeyError)."""

    __str__ = Exception.__str__  # KeyError would show the message's repr


class ProgramError(NbsglangError):
    """A call of a program failed; the message names the program's line, the stream and the call.

    The failure itself is `__cause__`.
    """


class JoinError(ProgramError):
    """One or more branches of a fork failed.

    `errors` has one entry for each branch: its exception, or None where the branch did well.
    """

    def __init__(self, message: str, errors: Sequence[BaseException | None] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


class Cancelled(NbsglangError):
    """The call, the program or the wait was cancelled."""


class TimedOut(Cancelled):
    """The time given by `timeout=` is over; what was running has been cancelled."""


class BackendError(NbsglangError):
    """The backend failed while it worked on the call."""


class BackendClosed(BackendError):
    """The backend was closed before or during the call."""


class Unsupported(BackendError):
    """The backend cannot do what the call asks for."""


class OutOfMemory(BackendError):
    """Memory ran out, also after eviction and a retry with a smaller step."""


class PromptTooLong(NbsglangError, ValueError):
    """Prompt and answer do not fit the model's context or the KV pool; the message has the numbers."""


class ModelError(NbsglangError):
    """A model cannot be loaded or served."""


class ModelNotFound(ModelError):
    """There is no model under this name; the message says where it was looked for."""


class ModelRefused(ModelError):
    """The model would give wrong results, or its files are unsafe to load; the message says why."""


class DownloadError(ModelError):
    """A download failed or does not have the hash that it must have."""
