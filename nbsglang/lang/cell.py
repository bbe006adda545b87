"""Cells: text in, something that runs out. The body is a function of a state, whose globals are the notebook's.

Not here: the rules of the form (`cell_pass.py`), a run (`cell_run.py`).
"""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
import textwrap
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast

from nbsglang.errors import CellError
from nbsglang.lang import api
from nbsglang.lang import cell_code as code
from nbsglang.lang.cell_errors import warn_hidden
from nbsglang.lang.cell_exprs import Exprs
from nbsglang.lang.cell_names import STATE, WORDS, bound_by, used_in
from nbsglang.lang.cell_pass import CellPass
from nbsglang.lang.cell_rt import HELPERS
from nbsglang.lang.cell_run import CellRun, manner
from nbsglang.lang.cell_scope import Names
from nbsglang.lang.cell_words import CALLED, lookup
from nbsglang.lang.held import force
from nbsglang.lang.program import Program
from nbsglang.lang.slots import Where
from nbsglang.lang.state import ProgramState

_HIDDEN = (*HELPERS, "word", "passed", *(f"call.{name}" for name in CALLED))


def compile_cell(
    source: str, filename: str = "<sgl>", *, name: str = "cell", parameters: str = "", first_line: int = 1
) -> Cell:
    """Compile the text of a cell. Nothing runs.

    `parameters` is what stands between the parentheses of a program's head, as in "essay, n=3". Line 1 of `source` is
    line `first_line` of `filename`, in errors and tracebacks. Raises CellError with the line, for bad Python too.
    """
    cell = Cell(source, filename, name, parameters, first_line)
    _ = cell.compiled  # its errors belong here
    return cell


def program(
    source: str, *, name: str = "program", parameters: str = "", namespace: dict[str, Any] | None = None
) -> Any:
    """A program in the cell form, from a string.

    Names that it does not bind are looked up in `namespace` when it runs; without one, in the globals of the caller
    and in the caller's local variables as they are now. Its runs are CellRuns.
    """
    frame = sys._getframe(1)
    scope: Mapping[str, Any] = {}
    if namespace is None:
        namespace = frame.f_globals
        scope = {} if frame.f_locals is namespace else dict(frame.f_locals)
    source = textwrap.dedent(source)
    filename = f"<{name} {zlib.crc32(source.encode()):08x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)  # for tracebacks
    return compile_cell(source, filename, name=name, parameters=parameters).program(namespace, scope)


class Compiled(NamedTuple):
    """`outer` is of a function that takes the helpers, and variables around the cell, and gives the cell's function.

    `called` has the functions of the language that the cell calls, with the line of the first call; `used` all names.
    """

    outer: CodeType
    called: dict[str, int]
    used: set[str]


@dataclass(frozen=True)
class Cell:
    """A compiled cell, made by `compile_cell`. It can be run any number of times, in any namespace."""

    source: str
    filename: str
    name: str
    parameters: str
    first_line: int

    @cached_property
    def compiled(self) -> Compiled:
        """The code, with names of the notebook and no others around it."""
        return self._compiled(())

    def prepare(
        self, namespace: dict[str, Any], *args: Any, start: CellRun | ProgramState | None = None, **options: Any
    ) -> CellRun:
        """A run with these arguments and options (those of `Program.run`); it begins with `execute` or `start_thread`.

        `namespace` is where names are looked up while it runs; it is never written to. `start` is a finished run to go
        on from: the new run begins with its prompt and its variables, and changes nothing of it.
        """
        return CellRun.prepared(self.program(namespace), args, options, start)

    def program(self, namespace: dict[str, Any], scope: Mapping[str, Any] | None = None) -> Program:
        """The cell as a program, with the names of this namespace and, before them, those of `scope`."""
        return Program(self.function(namespace, scope or {}), manner=manner())

    def function(self, namespace: dict[str, Any], scope: Mapping[str, Any]) -> Callable[..., Any]:
        """The body as a function of a state and the parameters."""
        made = self.compiled
        inner = {name: force(scope[name]) for name in sorted(made.used - WORDS - {STATE}) if name in scope}
        if inner:
            made = self._compiled(tuple(inner))
        for called, line in made.called.items():
            found = namespace.get(called)
            if callable(found) and found is not getattr(api, called):
                warn_hidden(called, Where(self.filename, line, self.name))
        namespace.setdefault("__builtins__", builtins)  # as exec does; a notebook has it
        look = lookup({**scope}, namespace)
        hidden = {**HELPERS, "word": look.word, "passed": look.passed, **{f"call.{n}": f for n, f in CALLED.items()}}
        make = cast("Callable[..., Any]", FunctionType(made.outer, namespace))
        function: FunctionType = make(*(hidden[name] for name in _HIDDEN), *inner.values())
        function.__name__ = function.__qualname__ = self.name
        function.__doc__ = f"The cell {self.name!r}."
        return function

    def _compiled(self, enclosing: tuple[str, ...]) -> Compiled:
        try:
            body = self._parsed()
            used = used_in(body)
            tree, called = self._tree(body, enclosing)
            module = compile(tree, self.filename, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise self._error(error, 0) from None
        except CellError:
            raise
        except (ValueError, RecursionError, MemoryError) as error:  # null bytes, nesting without end
            raise CellError(f"this is no Python: {error}", filename=self.filename, line=self.first_line) from None
        outer = next(const for const in module.co_consts if isinstance(const, CodeType))
        return Compiled(_renamed(outer, self.name), called, used)

    def _parsed(self) -> list[ast.stmt]:
        try:
            body = ast.parse(self.source, self.filename).body or [ast.Pass(lineno=1, col_offset=0)]
        except SyntaxError as error:
            raise self._error(error, self.first_line - 1) from None
        for statement in body:
            ast.increment_lineno(statement, self.first_line - 1)
        return body

    def _tree(self, body: list[ast.stmt], enclosing: tuple[str, ...]) -> tuple[ast.Module, dict[str, int]]:
        arguments = self._arguments()
        parameters = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
        taken = {one.arg for one in parameters if one is not None}
        own = bound_by(body, forks=True)
        names = Names(frozenset(own.all), frozenset(taken))
        exprs = Exprs(names, self.filename, self.source.splitlines(), self.first_line)
        if STATE in own.all or STATE in taken:
            exprs.fail({**own.other, **own.assigned}.get(STATE, ast.Pass()), code.NO_STATE)
        (arguments.posonlyargs or arguments.args).insert(0, ast.arg(STATE))
        passed = sorted(own.all - taken)
        before = [code.store(code.hidden(code.OUTER), code.call("passed", code.texts(passed))), *code.inherit(passed)]
        assigned = [*own.assigned, *own.augmented]
        function = code.body_function(
            "cell", arguments, before if passed else [], CellPass(exprs).block(body), dict.fromkeys(assigned)
        )
        given = code.parameters(*map(code.hidden, _HIDDEN), *enclosing)
        outer = code.definition(code.hidden("outer"), given, [function, ast.Return(code.load("cell"))])
        return ast.fix_missing_locations(ast.Module([outer], [])), exprs.called

    def _arguments(self) -> ast.arguments:
        """The parameters, without annotations."""
        head = f"{self.name}({self.parameters})"
        try:
            parsed = ast.parse(f"def f({self.parameters}\n): pass").body
        except SyntaxError as error:
            raise self._head_error(head, error.msg) from None
        if len(parsed) != 1 or not isinstance(parsed[0], ast.FunctionDef) or len(parsed[0].body) != 1:
            raise self._head_error(head, "not a list of parameters")
        arguments = parsed[0].args
        for node in ast.walk(arguments):
            if isinstance(node, ast.arg):
                node.annotation = None
            if "lineno" in node._attributes:
                ast.copy_location(node, ast.Pass(lineno=self.first_line, col_offset=0))
                node.end_lineno, node.end_col_offset = self.first_line, 0  # type: ignore[attr-defined]
        return arguments

    def _head_error(self, head: str, why: str) -> CellError:
        line = max(self.first_line - 1, 1)
        return CellError(f"the parameters cannot be read: {why}", filename=self.filename, line=line, text=head)

    def _error(self, error: SyntaxError, shift: int) -> CellError:
        line = (error.lineno or 1) + shift
        lines = self.source.splitlines()
        at = line - self.first_line
        text = lines[at] if 0 <= at < len(lines) else ""
        return CellError(error.msg, filename=self.filename, line=line, column=error.offset or 1, text=text)


def _renamed(outer: CodeType, name: str) -> CodeType:
    """The code with a readable name for what users see of it in tracebacks and in names of their own classes."""
    prefix = f"{code.hidden('outer')}.<locals>.{code.hidden('cell')}"

    def renamed(one: CodeType) -> CodeType:
        consts = tuple(
            renamed(const)
            if isinstance(const, CodeType)
            else name + const[len(prefix) :]
            if isinstance(const, str) and const.startswith(prefix)
            else const
            for const in one.co_consts
        )
        mine = one.co_name.startswith("<sgl>.")
        return one.replace(
            co_consts=consts,
            co_name=name if mine else one.co_name,
            co_qualname=one.co_qualname.replace(prefix, name).replace(code.hidden("branch"), "branch"),
        )

    return renamed(outer)
