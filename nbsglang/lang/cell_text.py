"""R1 by form: which expressions are text for the prompt by their looks.

A string literal, an f-string, `+` `%` `*` with one, a method of one, a conditional of these.

Not here: R1 by value, which is decided when the line runs (`cell_rt.py`).
"""

from __future__ import annotations

import ast

# Methods and functions that are called for what they do; that they give a string back is nothing to warn of.
_DOING = frozenset(
    {"pop", "popleft", "popitem", "setdefault", "write", "readline", "read", "send", "run_line_magic"}
    | {"run_cell_magic", "system", "getoutput", "input", "next"}
)

_NEVER = (
    *(ast.Constant, ast.Compare, ast.List, ast.Dict, ast.Set, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def is_text(node: ast.AST) -> bool:
    """Whether the expression is text by its form."""
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, (ast.Add, ast.Mult)):
            return is_text(node.left) or is_text(node.right)
        return isinstance(node.op, ast.Mod) and is_text(node.left)
    if isinstance(node, ast.IfExp):
        return is_text(node.body) or is_text(node.orelse)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_text(node.func.value)


def warns_when_dropped(node: ast.AST) -> bool:
    """Whether a string that this expression statement gives is likely to have been meant for the prompt."""
    if not isinstance(node, ast.Call):
        return True
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name not in _DOING


def may_be_language(node: ast.AST) -> bool:
    """Whether the expression can be a value of the language; literals and comparisons never are."""
    return not isinstance(node, _NEVER)
