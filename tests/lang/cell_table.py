"""The rules of the cell form as a table: what a cell gives, what it refuses, what it warns of, on which line.

Needs the standard library, greenlet and the language alone, so that any Python can run it:

    python -m tests.lang.cell_table

Not here: interrupts, threads, speed and models (`test_cell_run.py`, `test_cell_programs.py`).
"""

# ruff: noqa: PT017 (there may be no pytest)
from __future__ import annotations

import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nbsglang.backends.mock import MockBackend
from nbsglang.calls import Call, GenCall, Prompt, RoleBegin, RoleEnd
from nbsglang.errors import CellError
from nbsglang.lang.cell import compile_cell
from nbsglang.lang.cell_run import CellRun

FILE = "Cell In[3]"


def render(prompt: Prompt) -> str:
    """`[user hello]`: short enough for a table."""
    pieces = []
    for part in prompt:
        if isinstance(part, RoleBegin):
            pieces.append(f"[{part.name} ")
        elif isinstance(part, RoleEnd):
            pieces.append("]")
        else:
            pieces.append(part.text)
    return "".join(pieces)


def backend_of(answers: Mapping[str, Any], delay: float = 0.0) -> MockBackend:
    """Answers by name; else a gen's name in capitals, and the first choice to a select."""

    def script(call: Call) -> Any:
        if call.name in answers:
            answer = answers[call.name]
            return answer(render(call.prompt)) if callable(answer) else answer
        return call.name.upper() if isinstance(call, GenCall) else call.choices[0]

    return MockBackend(script, render=render, delay=delay)


def run(source: str, answers: Mapping[str, Any] = {}, names: dict[str, Any] | None = None, **more: Any) -> CellRun:
    """Run a cell; its run, whether it failed or not. Its error is in `error`."""
    names = {**(names or {}), "__builtins__": __builtins__}
    cell = compile_cell(textwrap.dedent(source).strip("\n"), FILE)
    prepared = cell.prepare(names, backend=backend_of(answers or {}, more.pop("delay", 0.0)), **more)
    before = dict(names)
    try:
        prepared.execute()
    except Exception as error:
        assert error is prepared.error
    assert names == before, f"the namespace was written to: {names.keys() ^ before.keys()}"
    return prepared


def prepared(source: str, names: Any = None, **more: Any) -> CellRun:
    """A run of a cell that has not begun."""
    more.setdefault("backend", backend_of({}))
    return compile_cell(textwrap.dedent(source).strip("\n"), FILE).prepare({} if names is None else names, **more)


@dataclass(frozen=True)
class Gives:
    """The cell gives this text and at least these variables; those called None must be missing."""

    name: str
    source: str
    text: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = run(self.source, self.answers, dict(self.names))
        if found.error is not None:
            raise found.error
        if self.text is not None:
            assert found.text == self.text, f"{found.text!r} is not {self.text!r}"
        for name, value in self.values.items():
            assert found[name] == value, f"{name} is {found[name]!r}, not {value!r}"
            assert type(found[name]) is type(value), f"{name} is a {type(found[name])}"


@dataclass(frozen=True)
class Refuses:
    """The cell does not compile: the error has this line, and these words."""

    name: str
    source: str
    line: int
    words: str
    column: int | None = None

    def check(self) -> None:
        source = textwrap.dedent(self.source).strip("\n")
        for first in (1, 10):
            try:
                compile_cell(source, FILE, first_line=first)
            except CellError as error:
                assert self.words in str(error), f"{error} does not say {self.words!r}"
                assert error.line == self.line + first - 1, f"line {error.line}"
                assert self.column is None or error.column == self.column, f"column {error.column}"
                assert error.text == source.splitlines()[self.line - 1], repr(error.text)
                assert error.filename == FILE
            else:
                raise AssertionError("it compiles")


@dataclass(frozen=True)
class Raises:
    """The run raises an error of this type with these words; the traceback's lines in the cell are these."""

    name: str
    source: str
    kind: str
    words: str
    lines: tuple[int, ...]
    answers: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        found = run(self.source, self.answers, dict(self.names))
        error = found.error
        assert error is not None, "it raises nothing"
        assert type(error).__name__ == self.kind, repr(error)
        assert self.words in str(error), f"{error} does not say {self.words!r}"
        lines, traceback = [], error.__traceback__
        while traceback is not None:
            module = traceback.tb_frame.f_globals.get("__name__", "")
            here = traceback.tb_frame.f_code
            if here.co_filename == FILE:
                lines.append(traceback.tb_lineno)
            assert not module.startswith("nbsglang") or here.co_name in ("execute", "wait"), (module, here.co_name)
            traceback = traceback.tb_next
        assert tuple(lines) == self.lines, f"lines {lines}"


@dataclass(frozen=True)
class Warns:
    """The run warns on these lines, with these words in each warning."""

    name: str
    source: str
    lines: tuple[int, ...]
    words: str = ""
    names: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = run(self.source, {}, dict(self.names))
        if found.error is not None:
            raise found.error
        assert tuple(one.lineno for one in caught) == self.lines, [(w.lineno, str(w.message)) for w in caught]
        for one in caught:
            assert one.filename == FILE
            assert self.words in str(one.message), str(one.message)


Case = Gives | Refuses | Raises | Warns


def cases() -> Iterator[Case]:
    """All of them."""
    from tests.lang import cell_cases_errors, cell_cases_forks, cell_cases_rules, cell_cases_uses

    for module in (cell_cases_rules, cell_cases_forks, cell_cases_errors, cell_cases_uses):
        yield from module.CASES


def main() -> int:
    """Check every case; how many failed."""
    n_failed = n_all = 0
    for case in cases():
        n_all += 1
        try:
            case.check()
        except BaseException as error:
            n_failed += 1
            print(f"FAILED {type(case).__name__} {case.name}: {type(error).__name__}: {error}")
    print(f"Python {sys.version.split()[0]}: {n_all - n_failed} of {n_all} cases are right")
    return n_failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
