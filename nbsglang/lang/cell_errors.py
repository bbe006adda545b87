"""What the author of a program is told: errors without our frames and one for many, warnings with their line.

Not here: raising them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from nbsglang.errors import JoinError, NbsglangError
from nbsglang.lang.slots import Where

if TYPE_CHECKING:
    from nbsglang.lang.run import Run
    from nbsglang.lang.stream import Stream

_PACKAGE = __name__.partition(".")[0]
_Error = TypeVar("_Error", bound=BaseException)


def without_our_frames(error: _Error) -> _Error:
    """The error, and what it came from, with tracebacks in which only the user's frames are left."""
    seen: set[int] = set()
    chain: list[BaseException | None] = [error]
    while chain:
        one = chain.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _users_part(one.__traceback__)
        chain += [one.__cause__, one.__context__]
        if isinstance(one, JoinError):
            chain += one.errors
    return error


def line_of(error: BaseException) -> int | None:
    """The innermost line of the cell that the error passed; None if it passed none."""
    line = None
    traceback = error.__traceback__
    first = None
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not is_ours(traceback):
            first = first or name
            line = traceback.tb_lineno if name == first else line
        traceback = traceback.tb_next
    return line


def branch_lines(names: Sequence[str], errors: Sequence[BaseException | None]) -> list[str]:
    """A line or more for each branch that failed."""
    lines = []
    for name, error in zip(names, errors, strict=True):
        if error is not None:
            line = line_of(error)
            at = f", line {line}" if line is not None else ""
            shown = str(error).replace("\n", "\n  ")
            kind = "" if type(error).__module__.startswith(_PACKAGE) else f"{type(error).__name__}: "
            lines.append(f"  in {name}{at}: {kind}{shown}")
    return lines


def is_ours(traceback: TracebackType) -> bool:
    """Whether the frame is of this package."""
    module = traceback.tb_frame.f_globals.get("__name__", "")
    return isinstance(module, str) and (module == _PACKAGE or module.startswith(_PACKAGE + "."))


def _users_part(traceback: TracebackType | None) -> TracebackType | None:
    kept = []
    while traceback is not None:
        if is_ours(traceback):  # the user's frames lead back to ours, which know the backend
            with suppress(RuntimeError):  # it still runs
                traceback.tb_frame.clear()
        else:
            kept.append(traceback)
        traceback = traceback.tb_next
    rest: TracebackType | None = None
    for one in reversed(kept):
        rest = TracebackType(rest, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return rest


def one_error(unseen: Sequence[tuple[Stream, NbsglangError]]) -> NbsglangError:
    """The first of the errors of failed streams, with the others in its notes."""
    first = unseen[0][1]
    for _, other in unseen[1:]:
        first.add_note(f"and: {other}")
    return first


def warn_dropped(text: str, where: Where) -> None:
    """Tell that a string was made and goes nowhere."""
    shown = text if len(text) <= 40 else text[:37] + "..."
    message = f"this string is dropped: {shown!r}; to append it write it as an f-string, or s += ..."
    warnings.warn_explicit(message, UserWarning, where.file, where.line)


def warn_hidden(name: str, where: Where) -> None:
    """Tell that a call means the language's function and not the notebook's."""
    message = f"{name}(...) in a cell is the language's; the notebook's own {name} is not called: give it another name"
    warnings.warn_explicit(message, UserWarning, where.file, where.line)


def warn_unused(run: Run) -> None:
    """Tell of generations that a cell made and that went nowhere."""
    made = list(run.made.values())
    run.made.clear()
    for part, where in made:
        kind, name = type(part).__name__.lower(), getattr(part, "name", None)
        what = f"{kind}({name!r})" if name else f"{kind}(...)"
        message = f"this {what} was never appended, so it did nothing: put it on its own line or assign it to a name"
        warnings.warn_explicit(message, UserWarning, where.file, where.line)
