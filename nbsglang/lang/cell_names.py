"""The names of a cell: what its statements bind, what they use, and the names that are the language's.

A call of a language name, as in `user("hi")`, is the language's, unless the cell binds the name itself: a notebook with
a variable `user` or `system` can use the roles all the same. Anywhere else the name is the notebook's if it has one.

Not here: what is done about them (`cell_pass.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, NamedTuple

STATE = "s"
FORK = "fork"
ROLES = frozenset({"system", "user", "assistant"})
_GENERATIONS = ("gen", "gen_int", "gen_string", "select", "separate_reasoning")
_OTHER_CALLS = tuple(f"{role}{end}" for role in sorted(ROLES) for end in ("", "_begin", "_end"))
CALLS = frozenset({*_GENERATIONS, *_OTHER_CALLS})
GENERATIONS = frozenset(_GENERATIONS)
METHODS = ("token_length_normalized", "greedy_token_selection", "unconditional_likelihood_normalized")
TYPES = ("Literal", "Annotated", "Regex", "Enum", "date")
WORDS = frozenset({*CALLS, *METHODS, *TYPES})

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Bound(NamedTuple):
    """Names that statements bind in their own scope: by assignment, augmented only, in other ways; with a node each."""

    assigned: dict[str, ast.AST]
    augmented: dict[str, ast.AST]
    other: dict[str, ast.AST]

    @property
    def all(self) -> set[str]:
        """All of them, augmented ones included."""
        return {*self.assigned, *self.augmented, *self.other}


def is_fork(node: ast.AST) -> bool:
    """Whether it is `fork(...)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == FORK


def bound_by(statements: Iterable[ast.AST], *, forks: bool) -> Bound:
    """What statements bind; with `forks` a loop over `fork(...)` binds what its branches bind by assignment."""
    collector = _Collector(forks)
    for statement in statements:
        collector.visit(statement)
    return Bound(collector.assigned, collector.augmented, collector.other)


def used_in(statements: Iterable[ast.AST]) -> set[str]:
    """Every name that occurs in the statements, in inner scopes too."""
    return {node.id for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Name)}


def locals_of(scope: Scope) -> set[str]:
    """The names that are a function's own."""
    arguments = scope.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = {argument.arg for argument in every if argument is not None}
    if isinstance(scope, ast.Lambda):
        return names | bound_by([scope.body], forks=False).all
    foreign = {name for node in _own_nodes(scope.body) if isinstance(node, ast.Nonlocal) for name in node.names}
    return (names | bound_by(scope.body, forks=False).all) - foreign


def targets_of(node: Comprehension) -> set[str]:
    """The names that a comprehension's loops bind."""
    return {name.id for loop in node.generators for name in ast.walk(loop.target) if isinstance(name, ast.Name)}


def stored_in(target: ast.AST) -> dict[str, ast.AST]:
    """The plain names that a target stores to."""
    return {n.id: n for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _own_nodes(statements: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """The nodes that are not in an inner scope."""
    for node in statements:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _own_nodes(ast.iter_child_nodes(node))


class _Collector(ast.NodeVisitor):
    def __init__(self, forks: bool) -> None:
        self.assigned: dict[str, ast.AST] = {}
        self.augmented: dict[str, ast.AST] = {}
        self.other: dict[str, ast.AST] = {}
        self._forks = forks

    def _assigns(self, target: ast.AST) -> None:
        for name, node in stored_in(target).items():
            self.assigned.setdefault(name, node)
        self._subscripts(target)

    def _subscripts(self, target: ast.AST) -> None:
        """What is in the target but no name of it, as in `d[(k := 1)] = 2`."""
        for node in ast.walk(target):
            if isinstance(node, ast.Subscript):
                self.visit(node.slice)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assigns(target)
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.other.update({name: n for name, n in stored_in(node.target).items() if name not in self.other})
        else:
            self._assigns(node.target)
            self.visit(node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._assigns(node.target)
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            if node.target.id != STATE:
                self.augmented.setdefault(node.target.id, node)
        else:
            self.visit(node.target)
        self.visit(node.value)

    def visit_For(self, node: ast.For) -> None:
        if not (self._forks and is_fork(node.iter)):
            self.generic_visit(node)
            return
        self.visit(node.iter)
        self._assigns(node.target)
        for name, where in bound_by(node.body, forks=True).assigned.items():
            self.assigned.setdefault(name, where)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.other.setdefault(node.id, node)

    def _comprehension(self, node: Comprehension) -> None:
        for inner in ast.walk(node):  # a walrus in it binds out here
            if isinstance(inner, ast.NamedExpr):
                self._assigns(inner.target)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.other.setdefault(node.name, node)
        outside: list[ast.AST] = [*node.decorator_list]
        if isinstance(node, ast.ClassDef):
            outside += [*node.bases, *node.keywords]
        else:
            outside += [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        for part in outside:
            self.visit(part)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _function  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)

    def visit_alias(self, node: ast.alias) -> None:
        self.other.setdefault((node.asname or node.name).partition(".")[0], node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name is not None:
            self.other.setdefault(node.name, node)
        self.generic_visit(node)

    def _pattern(self, node: Any) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self.other.setdefault(name, node)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _pattern  # noqa: N815
