"""How errors of a cell look: the user's own lines, under the cell's name, and nothing of ours.

An error is shown by the shell. IPython asks an exception that has `_render_traceback_` for its text, so the error
itself passes through unchanged, and the cell counts as failed.

Not here: where the lines are (`source.py`); which lines a program's error names (`lang/`).
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from nbsglang.errors import CellError, JoinError
from nbsglang.lang.cell_errors import without_our_frames

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_OURS = str(Path(__file__).parents[1]) + os.sep


@contextmanager
def shown_to_user(shell: InteractiveShell, filename: str) -> Iterator[None]:
    """Errors that leave the block show the user's frames only, from the first one in `filename` on."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "UsageError" or type(error).__module__ != "IPython.core.error":
            without_our_frames(error)  # they hold the backend, and frames of the user's lead back to them
            for other in _chain(error):
                other.__traceback__ = user_frames(other.__traceback__, filename)
            with suppress(AttributeError):  # an exception without a __dict__ is shown as usual
                error._render_traceback_ = partial(_render, shell, error, error.__traceback__)  # type: ignore[attr-defined]
        raise


def user_frames(tb: TracebackType | None, filename: str) -> TracebackType | None:
    """The traceback without this package's frames and without what comes before the first line of `filename`."""
    frames = list(_walk(tb))
    names = [frame.tb_frame.f_code.co_filename for frame in frames]
    first = names.index(filename) if filename in names else len(names)
    kept: TracebackType | None = None
    for frame, name in reversed(list(zip(frames, names, strict=True))[first:]):
        if not name.startswith(_OURS):
            kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def forget_errors(shell: InteractiveShell) -> None:
    """Drop the errors that the interpreter and the shell keep: their frames hold what the failed code worked on."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    shell.InteractiveTB.tb = None
    kept = [*shell.user_ns.get("_oh", {}).values(), *(shell.user_ns.get("_" * n) for n in (1, 2, 3))]
    result = shell.last_execution_result
    kept += [getattr(result, "error_in_exec", None), getattr(result, "error_before_exec", None)]
    for value in kept:
        if isinstance(value, BaseException):
            for error in _chain(value):
                traceback.clear_frames(error.__traceback__)
                error.__traceback__ = None


def _render(shell: InteractiveShell, error: BaseException, tb: TracebackType | None) -> list[str]:
    """Lines as IPython would have shown them."""
    if isinstance(error, CellError):
        return _as_syntax_error(shell, error)
    with _without_bare_causes(error):
        if tb is None and error.__cause__ is None:
            lines = shell.InteractiveTB.get_exception_only(type(error), error)  # type: ignore[no-untyped-call]
        else:
            lines = shell.InteractiveTB.structured_traceback(type(error), error, tb, tb_offset=0)
    return [_with_cell_names(shell, line) for line in lines]


@contextmanager
def _without_bare_causes(error: BaseException) -> Iterator[None]:
    """Hide causes of which no line is left; what they say is in the message of the error that they caused."""
    hidden = []
    for one in _chain(error):
        cause = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if cause is not None and cause.__traceback__ is None:
            hidden.append((one, one.__cause__, one.__suppress_context__))
            one.__cause__ = None  # the context is hidden with it
    try:
        yield
    finally:
        for one, cause, suppressed in hidden:
            one.__cause__, one.__suppress_context__ = cause, suppressed


def _with_cell_names(shell: InteractiveShell, text: str) -> str:
    """The text with the files of cells called as the user knows them: "Cell In[3], line 4"."""
    for filename, number in shell.compile._filename_map.items():
        if filename in text:
            text = re.sub(rf"{re.escape(filename)}(?::|, line )(\d+)", rf"Cell In[{number}], line \1", text)
    return text


def _as_syntax_error(shell: InteractiveShell, error: CellError) -> list[str]:
    """A real SyntaxError would be shown with frames of the magic; this one is made for its looks only."""
    kind = type(type(error).__name__, (SyntaxError,), {})
    lookalike = kind(error.args[0], (error.filename, error.line, error.column, error.text))
    return list(shell.SyntaxTB.structured_traceback(kind, lookalike))


def _walk(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _chain(error: BaseException) -> list[BaseException]:
    """The error, its causes, what it came from, and the errors that it lists."""
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        at = todo.pop()
        if at is not None and at not in found:
            found.append(at)
            todo += [at.__cause__, at.__context__]
            if isinstance(at, JoinError):
                todo += at.errors
    return found
