"""R5 as syntax: a loop over `fork(...)` becomes a function for its branches, and assignments of what they made.

    for k in fork(keys):        def branch(s):                  # a place, its key, what it inherits, then
        a = gen()                   k = key
                                    a = named(here, "a", gen())
                                loop = fork(here, keys, branch, locals(), ("k", "a"))
                                k = loop.column("k")
                                a = loop.column("a")
                                loop.check()

Not here: running the branches (`cell_fork.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from nbsglang.lang import cell_code as code
from nbsglang.lang.cell_names import STATE, Bound, bound_by, locals_of, stored_in, used_in

if TYPE_CHECKING:
    from nbsglang.lang.cell_pass import CellPass

_INSTEAD = "assign to a name of its own, which is a list after the loop"


def fork_loop(cell: CellPass, node: ast.For) -> list[ast.stmt]:
    """The statements for the loop. Raises CellError for what a branch cannot do."""
    over = cell.exprs.expr(_keys(cell, node))
    own, targets = bound_by(node.body, forks=True), stored_in(node.target)
    names = cell.place.names
    outside = names.bound | names.parameters
    _check(cell, own, targets, node, outside)
    bound = own.all | targets.keys()
    inherited = sorted(used_in(node.body) & outside)
    assigned = list(dict.fromkeys([*targets, *own.assigned]))
    with cell.place.inside(bound=names.bound | bound, loop="fork", in_branch=True):
        target = cell.visit(node.target)
        body = cell.block(node.body)
    at = code.head_of(node)
    key = code.placed(ast.Assign([target], code.load(code.KEY, node.target)), node.target)
    given = [
        code.store(code.hidden(name), code.here_call(f"given_{name}", at=at), at) for name in (code.KEY, code.OUTER)
    ]
    before = [*given, *code.inherit(inherited, at)]
    branch = code.body_function("branch", code.parameters(STATE), before, [key, *body], assigned)
    run = code.here_call(
        "fork", over, code.load("branch", at), code.call("locals", at=at), code.texts(sorted(bound), at), at=at
    )
    columns = [code.store(name, code.method(code.LOOP, "column", code.text(name), at=at), at) for name in assigned]
    check = code.statement(code.method(code.LOOP, "check", at=at), at)
    return [branch, code.store(code.hidden(code.LOOP), run, at), *columns, check]


def _keys(cell: CellPass, node: ast.For) -> ast.expr:
    called = node.iter
    assert isinstance(called, ast.Call)
    if len(called.args) != 1 or called.keywords or isinstance(called.args[0], ast.Starred):
        cell.exprs.fail(called, "fork takes one argument: a number of branches, or their keys")
    if node.orelse:
        cell.exprs.fail(node.orelse[0], "a loop over fork(...) has no `else`")
    return called.args[0]


def _check(cell: CellPass, own: Bound, targets: Iterable[str], node: ast.For, outside: Iterable[str]) -> None:
    mine = {*own.assigned, *own.other, *targets}
    for name, where in own.augmented.items():
        if name not in mine:
            cell.exprs.fail(where, f"a branch cannot add to `{name}` of the code around it: {_INSTEAD}")
    for name, where in _nonlocals(node.body, frozenset()):
        if name not in mine and name in outside:
            cell.exprs.fail(where, f"a branch cannot change `{name}` of the code around it: {_INSTEAD}")
    if STATE in mine:
        cell.exprs.fail({**own.other, **own.assigned}.get(STATE, node), code.NO_STATE)


def _nonlocals(nodes: Iterable[ast.AST], own: frozenset[str]) -> Iterable[tuple[str, ast.AST]]:
    """The names that functions in the statements declare nonlocal and that are of no function in them."""
    for node in nodes:
        if isinstance(node, ast.Nonlocal):
            yield from ((name, node) for name in node.names if name not in own)
        inner = own
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = own | locals_of(node)
        yield from _nonlocals(ast.iter_child_nodes(node), inner)
