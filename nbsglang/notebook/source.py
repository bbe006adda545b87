"""The text of the cell that is being run: its name in tracebacks, and the line of it where the body begins.

The body that a magic gets lacks the lines above it. Python compiles it so that its lines have the numbers that they
have in the cell as the user sees it, under the name that IPython shows as "Cell In[3]".

Not here: compiling (`lang/cell.py`), showing what failed (`failures.py`).
"""

from __future__ import annotations

import linecache
import os
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CellSource(NamedTuple):
    """Python text whose first line is line `first_line` of the file `filename`, which linecache knows."""

    text: str
    filename: str
    first_line: int


def cell_source(shell: InteractiveShell, raw_cell: str, line: str, body: str) -> CellSource:
    """The source of a `%%sgl` cell; `raw_cell` is the whole cell if it is known.

    IPython's own syntax in the body (`!ls`, `%time f()`, `f?`) becomes Python first.
    """
    end = body.rstrip()
    if not raw_cell.rstrip().endswith(end) or raw_cell.rstrip() == end:  # run by other code, or we were not told
        raw_cell = f"%%sgl {line}\n{body}"
    whole = raw_cell.rstrip()
    n_above = whole[: len(whole) - len(end)].count("\n")
    filename = shell.compile.cache(whole + "\n", _number(shell), raw_code=raw_cell)
    return CellSource(_python(shell, body), _name_to_show(shell, filename), n_above + 1)


def _name_to_show(shell: InteractiveShell, filename: str) -> str:
    """The name of the cell's text under which tracebacks can show it, and which other errors tell.

    A kernel names cells like files, which are on the disk only while its debugger is on. IPython 9 takes a missing
    `.py` for one too long to look at, and shows the first lines of a function for the one that failed.
    """
    if not filename.endswith(".py") or os.path.exists(filename):
        return filename
    number = shell.compile._filename_map[filename]
    name = f"Cell In[{number}]"
    if linecache.getlines(name) not in ([], linecache.getlines(filename)):  # code of one cell runs several of ours
        name = filename.removesuffix(".py") + ".sgl"
    linecache.cache[name] = linecache.cache[filename]
    shell.compile._filename_map[name] = number
    return name


def _python(shell: InteractiveShell, body: str) -> str:
    """The body as Python, each line where it was."""
    blank = body[: len(body) - len(body.lstrip())].count("\n")  # lines at the top, which IPython takes away
    before = body.split("\n")[blank:]
    try:
        after: str = shell.transform_cell("\n".join(before))  # type: ignore[no-untyped-call]
    except SyntaxError:  # then Python says what is wrong with it
        return body
    return "\n" * blank + "\n".join(_spread(before, after.split("\n"))) + "\n"


def _spread(before: list[str], after: list[str]) -> list[str]:
    """The lines `after`, with empty ones for those that were joined (`!ls \\` goes on in the next line)."""
    if len(before) == len(after):
        return after
    spread: list[str] = []
    for _, begin, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        spread += after[first:last]
        spread += [""] * ((end - begin) - (last - first))
    return spread


def _number(shell: InteractiveShell) -> int:
    """The number of the running cell; shells differ in when they count on."""
    result = getattr(shell.displayhook, "exec_result", None)
    number = getattr(result, "execution_count", None)
    return int(shell.execution_count if number is None else number)
