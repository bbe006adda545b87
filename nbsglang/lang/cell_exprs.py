"""The expressions of a cell: reads of its names wait (R7), f-strings may hold generations (R4), language names.

Not here: statements (`cell_pass.py`), what the helpers do (`cell_rt.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NoReturn, cast

from nbsglang.errors import CellError
from nbsglang.lang import cell_code as code
from nbsglang.lang.cell_names import CALLS, FORK, GENERATIONS, ROLES, WORDS, Comprehension, locals_of, targets_of
from nbsglang.lang.cell_scope import Names, Place
from nbsglang.lang.cell_text import is_text, may_be_language

_NO_AWAIT = "a cell's own lines cannot await: put it in an `async def` and call asyncio.run(...), or use arun"


class Exprs(ast.NodeTransformer):
    """Transforms expressions. `place` is shared with the pass over statements."""

    def __init__(self, names: Names, filename: str, lines: Sequence[str], first_line: int) -> None:
        self.place = Place(names)
        self._filename, self._lines, self._first_line = filename, lines, first_line
        self.called: dict[str, int] = {}  # names of the language that are called, with the line of the first call

    @property
    def names(self) -> Names:
        """What names mean at the place where the pass is."""
        return self.place.names

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raise the CellError of this node."""
        line, column = getattr(node, "lineno", self._first_line), getattr(node, "col_offset", 0)
        at = line - self._first_line
        text = self._lines[at] if 0 <= at < len(self._lines) else ""
        raise CellError(message, filename=self._filename, line=line, column=column + 1, text=text)

    def expr(self, node: ast.expr) -> ast.expr:
        """The expression, transformed."""
        return cast("ast.expr", self.visit(node))

    def lazy(self, node: ast.expr) -> ast.expr:
        """The same for text of a prompt, whose bare names are passed as they are: data flow does not wait."""
        if isinstance(node, ast.JoinedStr):
            return self._joined(node, lazy=True)
        if isinstance(node, ast.Name) and self.names.is_bound(node.id):
            return code.call("quote_text", node, at=node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and is_text(node):
            node.left, node.right = self.lazy(node.left), self.lazy(node.right)
            return node
        if isinstance(node, ast.IfExp) and is_text(node):
            node.test, node.body, node.orelse = self.expr(node.test), self.lazy(node.body), self.lazy(node.orelse)
            return node
        return self.expr(node)

    # ------------------------------------------------------------------- values for names, and for other places

    def named(self, name: str, value: ast.expr) -> ast.expr:
        """A value that is assigned to a name."""
        if not may_be_language(value):
            return self.expr(value)
        return code.here_call("named", code.text(name, value), self.expr(value), at=value)

    def plain(self, value: ast.expr, target: str) -> ast.expr:
        """A value for a place that is no plain name: it must not be a generation."""
        if not may_be_language(value):
            return self.expr(value)
        called = value.func if isinstance(value, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in GENERATIONS and self.names.is_free(called.id):
            self.fail(value, f"a generation needs one plain name, not `{target}`: write a = gen(...), then use a")
        return code.call("plain", self.expr(value), code.text(target, value), at=value)

    def unpacked(self, target: ast.Tuple | ast.List, value: ast.expr) -> ast.expr:
        """A value for a row of names: a row of generations, or what a call gives as one."""
        inner = target.elts
        if any(isinstance(one, ast.Starred) for one in inner):
            return self.plain(value, ast.unparse(target))
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(inner):
            value.elts = [self.element(one, part) for one, part in zip(inner, value.elts, strict=True)]
            return value
        if not may_be_language(value):
            return self.expr(value)
        names = [code.placed(ast.Constant(one.id if isinstance(one, ast.Name) else None), one) for one in inner]
        row = code.placed(ast.Tuple(list(names), ast.Load()), value)
        return code.here_call("unpacked", row, self.expr(value), at=value)

    def element(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """A value for any target."""
        if isinstance(target, ast.Name):
            return self.named(target.id, value)
        if isinstance(target, (ast.Tuple, ast.List)):
            return self.unpacked(target, value)
        return self.plain(value, ast.unparse(target))

    # ------------------------------------------------------------------------------------------- the nodes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            if self.names.is_bound(node.id):
                return code.call("force", node, at=node)
            if node.id in WORDS and self.names.is_free(node.id):
                return code.call("word", code.text(node.id, node), at=node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        called = node.func
        if not (isinstance(called, ast.Name) and self.names.is_free(called.id)):
            return cast("ast.expr", self.generic_visit(node))
        if called.id == FORK:
            self.fail(node, "fork(...) belongs in the head of a loop of the cell, as in: for k in fork(keys): ...")
        if called.id not in CALLS:
            return cast("ast.expr", self.generic_visit(node))
        self.called.setdefault(called.id, called.lineno)
        is_role = called.id in ROLES and self.names.at_cell
        node.func = code.load(f"call.{called.id}", called)
        node.args = [self.lazy(one) if is_role else self.expr(one) for one in node.args]
        node.keywords = [self.visit(one) for one in node.keywords]
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        if not self.names.at_cell:
            return cast("ast.expr", self.generic_visit(node))
        node.value = self.named(node.target.id, node.value)
        return code.call("force", node, at=node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return self._joined(node, lazy=False)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        node.value = self.expr(node.value)
        if isinstance(node.format_spec, ast.JoinedStr):  # it must stay one
            parts = node.format_spec.values
            node.format_spec.values = [self.expr(p) if isinstance(p, ast.FormattedValue) else p for p in parts]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.args = self.visit(node.args)
        with self.place.function(locals_of(node)):
            node.body = self.expr(node.body)
        return node

    def _comprehension(self, node: Comprehension) -> ast.expr:
        first = node.generators[0]
        first.iter = self.expr(first.iter)  # read outside
        with self.place.inside(shadowed=self.names.shadowed | targets_of(node)):
            for loop in node.generators:
                if loop.is_async and self.names.at_cell:
                    self.fail(loop.target, _NO_AWAIT)
                loop.target = self.expr(loop.target)
                loop.iter = loop.iter if loop is first else self.expr(loop.iter)
                loop.ifs = [self.expr(test) for test in loop.ifs]
            if isinstance(node, ast.DictComp):
                node.key, node.value = self.expr(node.key), self.expr(node.value)
            else:
                node.elt = self.expr(node.elt)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def visit_Await(self, node: ast.Await) -> ast.expr:
        if self.names.at_cell:
            self.fail(node, _NO_AWAIT)
        return cast("ast.expr", self.generic_visit(node))

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> ast.expr:
        if self.names.at_cell:
            self.fail(node, "a cell's own lines cannot yield: assign to a name, or use a function")
        return cast("ast.expr", self.generic_visit(node))

    visit_Yield = visit_YieldFrom = _yield  # noqa: N815

    def _joined(self, node: ast.JoinedStr, *, lazy: bool) -> ast.expr:
        pieces: list[ast.expr] = []
        holds = False  # a hole that may hold a value of the language
        for part in node.values:
            if not isinstance(part, ast.FormattedValue):
                pieces.append(part)
            elif part.conversion == -1 and part.format_spec is None:
                value, holds = part.value, True
                is_name = lazy and isinstance(value, ast.Name) and self.names.is_bound(value.id)
                pieces.append(code.call("quote", value, at=value) if is_name else self.expr(value))
            else:
                pieces.append(code.placed(ast.JoinedStr([self.expr(part)]), node))
        if holds:
            return code.call("joined", *pieces, at=node)
        node.values = [value for piece in pieces for value in getattr(piece, "values", [piece])]
        return node
