"""Cases of what a cell refuses and raises, with the lines."""

from __future__ import annotations

from typing import Any

from nbsglang.errors import BackendError
from tests.lang.cell_table import Case, Raises, Refuses

BAD = {"bad": BackendError("no answer")}


def _fails(value: Any) -> Any:
    return 1 / value


def _odd(prompt: str) -> str:
    if int(prompt[-1]) % 2:
        raise BackendError(f"odd {prompt[-1]}")
    return prompt[-1]


SYNTAX: list[Case] = [
    Refuses("bad syntax", "x = 1\ny = = 2", 2, "invalid syntax", 5),
    Refuses("an open bracket", "x = (1,\ny = 2", 1, "never closed"),
    Refuses("bad indentation", "if True:\nx = 1", 2, "indented"),
    Refuses("continue outside of loops", "x = 1\ncontinue", 2, "continue"),
    Refuses("break outside of loops", "break", 1, "break"),
    Refuses("import *", "x = 1\nfrom math import *", 2, "import *"),
    Refuses("global", "def f():\n    global x\n    x = 1", 2, "notebook's variables"),
    Refuses("nonlocal", "x = 1\nnonlocal x", 2, "nonlocal"),
    Refuses("await", "import asyncio\nawait asyncio.sleep(0)", 2, "await", 1),
    Refuses("await in an f-string", 'f"{await x}"', 1, "await"),
    Refuses("async for", "async for x in y:\n    pass", 1, "async"),
    Refuses("async with", "async with x:\n    pass", 1, "async"),
    Refuses("an async comprehension", "x = [y async for y in z]", 1, "await"),
    Refuses("yield", "x = 1\nyield x", 2, "yield"),
    Refuses("yield from", "x = yield from y", 1, "yield"),
    Refuses("s assigned", "x = 1\ns = 'text'", 2, "`s` is the state", 1),
    Refuses("s as a loop variable", "for s in 'ab':\n    pass", 1, "`s` is the state"),
    Refuses("s as a function", "x = 1\ndef s():\n    pass", 2, "`s` is the state"),
    Refuses("s imported", "import sys as s", 1, "`s` is the state"),
    Refuses("s as a branch's name", "for k in fork(2):\n    s = k", 2, "`s` is the state"),
    Refuses("s as a branch's key", "for s in fork(2):\n    pass", 1, "`s` is the state"),
    Refuses("future imports", "x = 1\nfrom __future__ import annotations", 2, "__future__"),
    Refuses("null bytes", "x = 1\0", 1, "null"),
]

R2: list[Case] = [
    Refuses("two targets", "x = 1\na = b = gen()", 2, "one plain name", 9),
    Refuses("an item", "d = {}\nd['k'] = gen()", 2, "d['k']"),
    Refuses("an attribute", "o.x = select(['a', 'b'])", 1, "o.x"),
    Refuses("an annotated item", "d['k']: int = gen()", 1, "d['k']"),
    Refuses("an item in a tuple", "a, d['k'] = 1, gen()", 1, "d['k']"),
    Refuses("a star", "*a, b = gen()", 1, "plain name"),
    Raises("added", "a = 'x'\na += gen()", "UsageError", "plain name", (2,)),
    Raises(
        "two targets by value",
        "a = b = f()",
        "UsageError",
        "a = b",
        (1,),
        {},
        {"f": lambda: __import__("nbsglang").gen()},
    ),
    Raises(
        "an item by value",
        "d = {}\nd['k'] = f()",
        "UsageError",
        "d['k']",
        (2,),
        {},
        {"f": lambda: __import__("nbsglang").gen()},
    ),
    Raises("the state's item", "s['k'] = user(gen())", "UsageError", "s['k']", (1,)),
    Raises("two generations, one name", "a = gen() + gen()", "UsageError", "2 generations", (1,)),
    Raises("one generation, two names", "a, b = gen(n=2)", "UsageError", "2 names", (1,)),
]

R5: list[Case] = [
    Refuses("break", "for k in fork(2):\n    if k:\n        break", 3, "`break`"),
    Refuses(
        "break in the else of its own loop",
        "for k in fork(2):\n    for i in 'a':\n        pass\n    else:\n        break",
        5,
        "`break`",
    ),
    Refuses("return", "for k in fork(2):\n    x = 1\n    return x", 3, "cannot return"),
    Refuses("yield", "for k in fork(2):\n    yield k", 2, "yield"),
    Refuses("await", "for k in fork(2):\n    await k", 2, "await"),
    Refuses("else", "for k in fork(2):\n    pass\nelse:\n    x = 1", 4, "`else`"),
    Refuses("adding to an outer name", "total = 0\nfor k in fork(2):\n    total += 1", 3, "`total`", 5),
    Refuses("adding to a notebook's name", "for k in fork(2):\n    total += 1", 2, "`total`"),
    Refuses("adding in an inner loop", "for a in fork(2):\n    n = 0\n    for b in fork(2):\n        n += 1", 4, "`n`"),
    Refuses(
        "nonlocal of an outer name",
        "n = 0\nfor k in fork(2):\n    def f():\n        nonlocal n\n        n = 1",
        4,
        "`n`",
    ),
    Refuses("two arguments", "for k in fork(1, 2):\n    pass", 1, "one argument", 10),
    Refuses("no argument", "for k in fork():\n    pass", 1, "one argument"),
    Refuses("a keyword", "for k in fork(n=2):\n    pass", 1, "one argument"),
    Refuses("a star", "for k in fork(*xs):\n    pass", 1, "one argument"),
    Refuses("fork in an assignment", "x = 1\ny = fork(2)", 2, "head of a loop"),
    Refuses("fork in a comprehension", "x = [k for k in fork(2)]", 1, "head of a loop"),
    Refuses("fork in a function", "def f():\n    for k in fork(2):\n        pass", 2, "head of a loop"),
    Raises("a string", "x = 1\nfor k in fork('ab'):\n    pass", "UsageError", "'ab'", (2,)),
    Raises("a negative number", "for k in fork(-1):\n    pass", "UsageError", "-1", (1,)),
    Raises("what is no iterable", "for k in fork(1.5):\n    pass", "UsageError", "1.5", (1,)),
    Raises(
        "the outer state",
        "def f():\n    s.user('x')\nfor k in fork(2):\n    f()",
        "JoinError",
        "outside of the branches",
        (3,),
    ),
    Raises(
        "the outer state read",
        "f = lambda: s.text()\nfor k in fork(1):\n    f()",
        "JoinError",
        "outside of the branches",
        (2,),
    ),
]

RUN: list[Case] = [
    Raises("plain", "x = 1\nx / 0", "ZeroDivisionError", "division", (2,)),
    Raises("plain in a function of the cell", "def f(x):\n    return 1 / x\n\nf(0)", "ZeroDivisionError", "", (4, 2)),
    Raises("plain in a helper", "x = 0\nhelp(x)", "ZeroDivisionError", "", (2,), {}, {"help": _fails}),
    Raises("an unknown name", "x = 1\nf'{unknown}'", "NameError", "unknown", (2,)),
    Raises("a name before it is bound", "f'{x}'\nx = 1", "UnboundLocalError", "x", (1,)),
    Raises("in several lines", "x = len(\n    [1,\n     1 / 0]\n)", "ZeroDivisionError", "", (3,)),
    Raises(
        "a gen, where it is read",
        "bad = gen()\nx = 1\nif bad:\n    pass",
        "ProgramError",
        "Cell In[3]:1 in cell: gen 'bad' failed",
        (3,),
        BAD,
    ),
    Raises("a gen that nobody reads", "x = 1\nbad = gen()", "ProgramError", "Cell In[3]:2", (), BAD),
    Raises("text of a failed gen", "bad = gen()\nf'<{bad}>'\nx = gen()\nx", "ProgramError", "Cell In[3]:1", (4,), BAD),
    Raises("a bad type", "x = 1\na: 5 = gen()", "UsageError", "type=5", (2,)),
    Raises("an unknown type", "a: Nothing = gen()", "NameError", "Nothing", (1,)),
    Raises("a text that is no annotation", "a: int = gen(type=float)", "UsageError", "a type already", (1,)),
    Raises(
        "a value that is not of the type",
        "a: int = gen(regex='[a-z]')\na",
        "ProgramError",
        "invalid literal",
        (2,),
        {"a": "x"},
    ),
    Raises("bad options", "x = 1\ngen(temperature=-1)", "UsageError", "temperature", (2,)),
    Raises("text that is none", "'a,b'.isdigit()", "UsageError", "bool", (1,)),
    Raises("a number in a role", "x = 1\nuser(x)", "UsageError", "int", (2,)),
    Raises("a typed name in a role", "x: int = gen()\nuser(x)", "UsageError", "int", (2,), {"x": "1"}),
    Raises("a typed name plus text", "x: int = gen()\n'n: ' + x", "TypeError", "", (2,), {"x": "1"}),
    Raises("a role with text around statements", "with user('x'):\n    'y'", "UsageError", "without text", (1,)),
    Raises("a gen around statements", "with gen():\n    'y'", "UsageError", "role", (1,)),
    Raises("a role in a role", "with user():\n    user('x')", "ProgramError", "begins inside", ()),
    Raises("a format of a gen", "f'{gen():>5}'", "UsageError", "not text", (1,)),
    Raises("a role that is not called", "x = 1\nuser", "UsageError", "call it", (2,)),
    Raises("a gen that is not called", "f'{gen}'", "UsageError", "call it", (1,)),
    Raises("a truth value of a gen", "x = 1\nif gen():\n    pass", "UsageError", "truth", (2,)),
    Raises("an unknown variable", "x = s['nothing']", "NoSuchVariable", "nothing", (1,)),
]

BRANCHES: list[Case] = [
    Raises(
        "one branch",
        "x = 1\nfor k in fork(3):\n    y = 1 / (k - 1)",
        "JoinError",
        "in branch 1, line 3: ZeroDivisionError",
        (2,),
    ),
    Raises(
        "its key",
        "for k in fork(['a', 'b']):\n    if k == 'b':\n        raise ValueError('mine')",
        "JoinError",
        "in branch 'b', line 3: ValueError: mine",
        (1,),
    ),
    Raises("how many", "for k in fork(3):\n    1 / 0", "JoinError", "Cell In[3], line 1: 3 of 3 branches failed", (1,)),
    Raises(
        "in a helper",
        "for k in fork(2):\n    help(k)",
        "JoinError",
        "in branch 0, line 2: ZeroDivisionError",
        (1,),
        {},
        {"help": _fails},
    ),
    Raises(
        "in a function of the cell",
        "def f(x):\n    return 1 / x\nfor k in fork(2):\n    f(k)",
        "JoinError",
        "in branch 0, line 2: Zero",
        (3,),
    ),
    Raises(
        "nested",
        "for a in fork(2):\n    for b in fork(2):\n        1 / (a + b)",
        "JoinError",
        "in branch 0, line 3: Zero",
        (1,),
    ),
    Raises(
        "a gen read in its branch",
        "for k in fork(2):\n    f'{k}'\n    x = gen()\n    x.upper()",
        "JoinError",
        "in branch 1, line 4: Cell In[3]:3",
        (1,),
        {"x": _odd},
    ),
    Raises(
        "a list of gens, where it is read",
        "for k in fork(4):\n    f'{k}'\n    x = gen()\ny = 1\nlen(x)",
        "JoinError",
        "2 of 4 branches failed",
        (5,),
        {"x": _odd},
    ),
    Raises(
        "its lines",
        "for k in fork(4):\n    f'{k}'\n    x = gen()\nlen(x)",
        "JoinError",
        "in branch 3: Cell In[3]:3 in cell: gen 'x' failed",
        (4,),
        {"x": _odd},
    ),
    Raises(
        "a list of gens that nobody reads",
        "for k in fork(4):\n    f'{k}'\n    x = gen()",
        "JoinError",
        "in branch 1: Cell In[3]:3",
        (),
        {"x": _odd},
    ),
    Raises(
        "nested gens that nobody reads",
        "for a in fork(['u', 'v']):\n    for b in fork(2):\n        f'{b}'\n        x = gen()",
        "JoinError",
        "in branch 1 in branch 'v'",
        (),
        {"x": _odd},
    ),
    Raises(
        "nested gens that are read",
        "for a in fork(['u']):\n    for b in fork(2):\n        f'{b}'\n        x = gen()\nx",
        "JoinError",
        "in branch 'u'",
        (5,),
        {"x": _odd},
    ),
    Raises(
        "the outer gen failed",
        "bad = gen()\nfor k in fork(2):\n    x = gen()\nlen(x)",
        "JoinError",
        "Cell In[3]:1",
        (4,),
        BAD,
    ),
]

CASES: list[Case] = [*SYNTAX, *R2, *R5, *RUN, *BRANCHES]
