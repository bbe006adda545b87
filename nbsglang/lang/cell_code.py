"""Pieces of syntax tree: calls of helpers, assignments, functions around statements.

Helpers and what the transformed code keeps for itself have names like `<sgl>.force`, which no program can contain and
no class body can mangle.

Not here: when which piece is put where (`cell_pass.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TypeVar

from nbsglang.lang.cell_names import STATE

_Node = TypeVar("_Node", bound=ast.AST)
HERE, OUTER, KEY, LOOP = "here", "outer", "key", "loop"
NO_STATE = "`s` is the state of the cell: call this something else"


def hidden(name: str) -> str:
    """The name in the code for a helper or a variable of ours."""
    return f"<sgl>.{name}"


def load(name: str, at: ast.AST | None = None) -> ast.Name:
    """A read of one of our names."""
    return placed(ast.Name(hidden(name), ast.Load()), at)


def call(helper: str, *args: ast.expr, at: ast.AST | None = None) -> ast.Call:
    """A call of a helper."""
    return placed(ast.Call(load(helper, at), list(args), []), at)


def here_call(helper: str, *args: ast.expr, at: ast.AST | None = None) -> ast.Call:
    """A call of a helper that needs to know the place."""
    return call(helper, load(HERE, at), *args, at=at)


def store(name: str, value: ast.expr, at: ast.AST | None = None) -> ast.Assign:
    """An assignment to a name."""
    return placed(ast.Assign([placed(ast.Name(name, ast.Store()), at)], value), at)


def statement(value: ast.expr, at: ast.AST | None = None) -> ast.Expr:
    """An expression as a statement."""
    return placed(ast.Expr(value), at)


def text(value: str, at: ast.AST | None = None) -> ast.Constant:
    """A string constant."""
    return placed(ast.Constant(value), at)


def texts(values: Iterable[str], at: ast.AST | None = None) -> ast.Tuple:
    """A tuple of string constants."""
    return placed(ast.Tuple([text(value, at) for value in values], ast.Load()), at)


def method(name: str, called: str, *args: ast.expr, at: ast.AST | None = None) -> ast.Call:
    """A call of a method of one of our variables."""
    return placed(ast.Call(placed(ast.Attribute(load(name, at), called, ast.Load()), at), list(args), []), at)


def inherit(names: Iterable[str], at: ast.AST | None = None) -> list[ast.stmt]:
    """`if name in outer: name = outer[name]` for each name."""
    made: list[ast.stmt] = []
    for name in names:
        test = placed(ast.Compare(text(name, at), [ast.In()], [load(OUTER, at)]), at)
        value = placed(ast.Subscript(load(OUTER, at), text(name, at), ast.Load()), at)
        made.append(placed(ast.If(test, [store(name, value, at)], []), at))
    return made


def body_function(
    name: str, arguments: ast.arguments, before: Sequence[ast.stmt], body: Sequence[ast.stmt], names: Iterable[str]
) -> ast.FunctionDef:
    """A function that enters a place, inherits, runs the body, and hands over what it bound to these names."""
    first, last = head_of(body[0]), head_of(body[-1])
    enter = store(hidden(HERE), call("enter", placed(ast.Name(STATE, ast.Load()), first), at=first), first)
    leave = statement(here_call("leave", call("locals", at=last), texts(names, last), at=last), last)
    whole = placed(ast.Try(list(body), [], [], [leave]), first)
    return definition(hidden(name), arguments, [enter, *before, whole], first)


def definition(name: str, arguments: ast.arguments, body: list[ast.stmt], at: ast.AST | None = None) -> ast.FunctionDef:
    """A function."""
    made = ast.FunctionDef(name, arguments, body, [], None, None)
    if "type_params" in made._fields:  # Python 3.12
        made.type_params = []  # type: ignore[attr-defined,unused-ignore]
    return placed(made, at)


def parameters(*names: str) -> ast.arguments:
    """Plain parameters."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def head_of(node: ast.stmt) -> ast.stmt:
    """A stand-in for the first line of a statement: what is placed there is on that line alone."""
    return ast.Pass(
        lineno=node.lineno,
        col_offset=node.col_offset,
        end_lineno=node.lineno,
        end_col_offset=node.col_offset + 1,
    )


def placed(node: _Node, at: ast.AST | None) -> _Node:
    """The node with the location of another."""
    return node if at is None else ast.copy_location(node, at)
