"""The one pass over the syntax tree of a cell: rules R1 to R7 become calls of helpers.

Not here: expressions (`cell_exprs.py`), loops over `fork` (`cell_loop.py`), what the helpers do (`cell_rt.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, cast

from nbsglang.lang import cell_code as code
from nbsglang.lang.cell_exprs import Exprs
from nbsglang.lang.cell_loop import fork_loop
from nbsglang.lang.cell_names import FORK, STATE, bound_by, is_fork, locals_of
from nbsglang.lang.cell_text import is_text, may_be_language, warns_when_dropped

Statements = ast.stmt | list[ast.stmt]
_NO_GLOBAL = "a cell does not write to the notebook's variables: assign to a name here, and read r['name'] or use -o"
_NO_ASYNC = "`async for` and `async with` do not work in a cell's own lines: put them in an `async def`, or use arun"


class CellPass(ast.NodeTransformer):
    """Transforms the statements of one cell, with `exprs` for what is in them."""

    def __init__(self, exprs: Exprs) -> None:
        self.exprs = exprs
        self.place = exprs.place
        self._hoisted: list[ast.stmt] = []  # reads of classes that the patterns of a match statement name

    def visit(self, node: ast.AST) -> Any:
        """The node, transformed; a statement may become several."""
        return self.exprs.visit(node) if isinstance(node, ast.expr) else super().visit(node)

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block, transformed."""
        made: list[ast.stmt] = []
        for one in body:
            result: Statements = self.visit(one)
            made += result if isinstance(result, list) else [result]
        return made

    def _generic(self, node: ast.stmt) -> ast.stmt:
        return cast("ast.stmt", self.generic_visit(node))

    # --------------------------------------------------------------------------------- R1, R2, R3

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        value = node.value
        if not self.place.names.at_cell or (isinstance(value, ast.Constant) and not isinstance(value.value, str)):
            return self._generic(node)
        if is_text(value):
            node.value = code.here_call("text", self.exprs.lazy(value), at=value)
        else:
            warns = code.placed(ast.Constant(warns_when_dropped(value)), value)
            node.value = code.here_call("value", self.exprs.expr(value), warns, at=value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        if not self.place.names.at_cell:
            return self._generic(node)
        if len(node.targets) > 1:
            node.value = self.exprs.plain(node.value, " = ".join(ast.unparse(one) for one in node.targets))
        else:
            node.value = self.exprs.element(node.targets[0], node.value)
        node.targets = [self.visit(one) for one in node.targets]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        target, value = node.target, node.value
        if not self.place.names.at_cell:
            return self._generic(node)
        if value is None:
            return node
        if not isinstance(target, ast.Name):
            plain = self.exprs.plain(value, ast.unparse(target))
            return code.placed(ast.Assign([self.visit(target)], plain), node)
        if not may_be_language(value):
            return code.store(target.id, self.exprs.expr(value), node)
        kind = self._annotation(node.annotation)
        typed = code.here_call("typed", code.text(target.id, node), self.exprs.expr(value), kind, at=value)
        return code.store(target.id, typed, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Statements:
        target, names = node.target, self.place.names
        if not isinstance(target, ast.Name) or target.id == STATE:
            node.target = self.visit(target)
            node.value = self.exprs.lazy(node.value) if names.at_cell else self.exprs.expr(node.value)
            return node
        if not names.is_bound(target.id):
            return self._generic(node)
        name = code.placed(ast.Name(target.id, ast.Load()), target)
        made: list[ast.stmt] = [code.store(target.id, code.call("force", name, at=target), node), node]
        if names.at_cell and may_be_language(node.value):  # it may be a group of branches, which takes generations
            check = code.call("plain", name, code.text(f"{target.id} += ...", target), at=target)
            made.append(code.statement(check, node))
        node.value = self.exprs.expr(node.value)
        return made

    def _annotation(self, kind: ast.expr) -> ast.expr:
        if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
            try:
                parsed = ast.parse(kind.value, mode="eval").body
            except SyntaxError:
                self.exprs.fail(kind, f"this annotation is no Python: {kind.value!r}")
            for node in ast.walk(parsed):
                code.placed(node, kind)
            kind = parsed
        return self.exprs.expr(kind)

    # --------------------------------------------------------------------------------- R5, R6, R7

    def visit_For(self, node: ast.For) -> Statements:
        names = self.place.names
        if names.at_cell and is_fork(node.iter) and names.is_free(FORK):
            return fork_loop(self, node)
        node.target, node.iter = self.visit(node.target), self.visit(node.iter)
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.stmt:
        node.test = self.visit(node.test)
        return self._loop(node)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> ast.stmt:
        with self.place.inside(loop="loop"):
            node.body = self.block(node.body)
        node.orelse = self.block(node.orelse)
        return node

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        if self.place.names.loop == "fork":
            self.exprs.fail(node, "a loop over fork(...) has no `break`: its branches run side by side")
        return node

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return code.placed(ast.Return(None), node) if self.place.names.loop == "fork" else node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        names = self.place.names
        if not names.at_cell:
            return self._generic(node)
        if names.in_branch:
            self.exprs.fail(node, "a branch of fork(...) cannot return: use `continue` to end it")
        if node.value is not None:
            node.value = code.here_call("returned", self.visit(node.value), at=node)
        return node

    def visit_With(self, node: ast.With) -> ast.stmt:
        if self.place.names.at_cell:
            for item in node.items:
                item.context_expr = code.here_call("around", self.visit(item.context_expr), at=item.context_expr)
                item.optional_vars = None if item.optional_vars is None else self.visit(item.optional_vars)
        else:
            node.items = [self.visit(item) for item in node.items]
        node.body = self.block(node.body)
        return node

    def visit_Match(self, node: ast.Match) -> Statements:
        outer, self._hoisted = self._hoisted, []
        node.subject = self.visit(node.subject)
        node.cases = [self.visit(case) for case in node.cases]
        hoisted, self._hoisted = self._hoisted, outer
        return [*(code.placed(one, node) for one in hoisted), node]

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        """A pattern may only name its class, not call for it, so the name is read before the statement."""
        root = node.cls
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name):
            read = self.visit(ast.Name(root.id, ast.Load()))
            if not isinstance(read, ast.Name):
                root.id, name = code.hidden(f"class.{root.id}"), root.id
                self._hoisted.append(code.store(code.hidden(f"class.{name}"), read, node))
        node.patterns = [self.visit(one) for one in node.patterns]
        node.kwd_patterns = [self.visit(one) for one in node.kwd_patterns]
        return node

    def _async(self, node: ast.AsyncFor | ast.AsyncWith) -> ast.stmt:
        if self.place.names.at_cell:
            self.exprs.fail(node, _NO_ASYNC)
        return self._generic(node)

    visit_AsyncFor = visit_AsyncWith = _async  # noqa: N815

    # ------------------------------------------------------------------------------- inner scopes

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.args = self.visit(node.args)
        node.returns = None if node.returns is None else self.visit(node.returns)
        with self.place.function(locals_of(node)):
            node.body = self.block(node.body)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return cast("ast.AST", self.exprs.visit(node))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        for field in ("decorator_list", "bases", "keywords"):
            setattr(node, field, [self.visit(one) for one in getattr(node, field)])
        own = frozenset(bound_by(node.body, forks=False).all)
        with self.place.inside(class_names=own, at_cell=False, loop=""):
            node.body = self.block(node.body)
        return node

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        self.exprs.fail(node, _NO_GLOBAL)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.stmt:
        if self.place.names.at_cell:
            self.exprs.fail(node, "`nonlocal` has no meaning in a cell's own lines: its names are its own")
        return node
