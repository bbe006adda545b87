"""Cases of R5: branches, what they see, what is left of them."""

# ruff: noqa: E501 (a table: a case a line)
from __future__ import annotations

from nbsglang.errors import BackendError
from tests.lang.cell_table import Case, Gives


def _even(prompt: str) -> str:
    """Fails where the prompt ends in an odd number."""
    if int(prompt[-1]) % 2:
        raise BackendError(f"odd {prompt[-1]}")
    return prompt[-1]


BASIC: list[Case] = [
    Gives(
        "a list",
        """
        for k in fork(["a", "b"]):
            f"{k}:"
            x = gen()
            y = x + k
        f"{x} {y}"
        """,
        "['X', 'X'] ['Xa', 'Xb']",
        {"k": ["a", "b"], "x": ["X", "X"], "y": ["Xa", "Xb"]},
    ),
    Gives("a number", "for k in fork(3):\n    x = k * 2", "", {"k": [0, 1, 2], "x": [0, 2, 4]}),
    Gives("a dict", "for k in fork({'a': 1, 'b': 2}):\n    x = k", "", {"x": ["a", "b"]}),
    Gives("items", "d = {'a': 1}\nfor k, v in fork(d.items()):\n    x = k * v", "", {"k": ["a"], "v": [1], "x": ["a"]}),
    Gives(
        "enumerate",
        "for i, w in fork(enumerate('ab')):\n    x = w * i",
        "",
        {"i": [0, 1], "w": ["a", "b"], "x": ["", "b"]},
    ),
    Gives("a generator", "for k in fork(c for c in 'ab'):\n    x = k", "", {"x": ["a", "b"]}),
    Gives(
        "nested unpacking",
        "for (a, b), *c in fork([((1, 2), 3, 4)]):\n    x = a + b",
        "",
        {"a": [1], "c": [[3, 4]], "x": [3]},
    ),
    Gives("none", "x = 1\nfor k in fork(0):\n    x = gen()", "", {"k": [], "x": []}),
    Gives("no key", "for k in fork([]):\n    pass", "", {"k": []}),
    Gives("one", "for k in fork(1):\n    x = gen()", "", {"x": ["X"]}),
    Gives("keys that were generated", "n: int = gen()\nfor k in fork(n):\n    x = k", "2", {"x": [0, 1]}, {"n": "2"}),
    Gives("keys that are lists", "for k in fork([[1], [2]]):\n    x = k[0]", "", {"k": [[1], [2]], "x": [1, 2]}),
    Gives("typed", "for k in fork(2):\n    x: int = gen()\ntotal = sum(x)", "", {"x": [4, 4], "total": 8}, {"x": "4"}),
    Gives("two names at once", "for k in fork(2):\n    a, b = gen(), k", "", {"a": ["A", "A"], "b": [0, 1]}),
    Gives(
        "a walrus", "for k in fork(2):\n    if (a := gen()) == 'A':\n        b = 1", "", {"a": ["A", "A"], "b": [1, 1]}
    ),
    Gives(
        "a name that one branch binds", "for k in fork(3):\n    if k == 1:\n        x = k", "", {"x": [None, 1, None]}
    ),
    Gives("a name that none binds", "for k in fork(2):\n    if k == 9:\n        x = k", "", {"x": [None, None]}),
    Gives(
        "text goes to the branch",
        '"p"\nfor k in fork(2):\n    f"{k}"\n    t = s.text()\n"q"',
        "pq",
        {"t": ["p0", "p1"]},
    ),
    Gives(
        "the branch's state",
        "for k in fork(2):\n    s += gen('x')\n    y = s['x']",
        "",
        {"y": ["X", "X"], "x": ["X", "X"]},
    ),
    Gives("names in branches only", "for k in fork(2):\n    f\"{gen('n')}\"", "", {"n": ["N", "N"]}),
    Gives("a loop after a loop", "for k in fork(2):\n    x = k\nfor j in fork(x):\n    y = j + 1", "", {"y": [1, 2]}),
    Gives(
        "lists can be changed",
        "for k in fork(3):\n    x: int = gen()\nx.sort()\nx.append(9)",
        "",
        {"x": [4, 4, 4, 9]},
        {"x": "4"},
    ),
]

INSIDE: list[Case] = [
    Gives("continue", "for k in fork(3):\n    if k == 1:\n        continue\n    x = k", "", {"x": [0, None, 2]}),
    Gives(
        "continue in with",
        'for k in fork(2):\n    with user():\n        "u"\n        continue\n    "no"\nt = 1',
        "",
        {"t": 1},
    ),
    Gives(
        "continue in try",
        "for k in fork(2):\n    try:\n        continue\n    finally:\n        x = k",
        "",
        {"x": [0, 1]},
    ),
    Gives(
        "loops of its own",
        "for k in fork(2):\n    n = 0\n    for i in range(5):\n        if i == 1:\n            continue\n        if i == 3:\n            break\n        n += i",
        "",
        {"n": [2, 2]},
    ),
    Gives(
        "else of a loop of its own",
        "for k in fork(2):\n    for i in range(2):\n        pass\n    else:\n        continue\n    x = 1",
        "",
        {"x": [None, None]},
    ),
    Gives(
        "a function of its own", "for k in fork(2):\n    def f():\n        return k + 1\n    x = f()", "", {"x": [1, 2]}
    ),
    Gives(
        "lambdas keep their branch", "for k in fork(3):\n    f = lambda: k\nx = [g() for g in f]", "", {"x": [0, 1, 2]}
    ),
    Gives(
        "a nonlocal of its own",
        "for k in fork(2):\n    n = k\n    def f():\n        nonlocal n\n        n += 1\n    f()",
        "",
        {"n": [1, 2]},
    ),
    Gives("a class of its own", "for k in fork(2):\n    class C:\n        x = k\n    y = C.x", "", {"y": [0, 1]}),
    Gives(
        "comprehensions", "w = 2\nfor k in fork(2):\n    x = [k * w + i for i in range(2)]", "", {"x": [[0, 1], [2, 3]]}
    ),
    Gives(
        "the outer value is read",
        "a = gen()\nfor k in fork(2):\n    x = a + str(k)",
        "A",
        {"x": ["A0", "A1"], "a": "A"},
    ),
    Gives(
        "the outer value is kept",
        "a = 'o'\nfor k in fork(2):\n    if k:\n        a = a + 'n'\n    b = a",
        "",
        {"a": [None, "on"], "b": ["o", "on"]},
    ),
    Gives("an equal value counts as bound", "a = 1\nfor k in fork(2):\n    if k:\n        a = 1", "", {"a": [None, 1]}),
    Gives("a notebook's name", "for k in fork(2):\n    a = a + k", "", {"a": [5, 6]}, {}, {"a": 5}),
    Gives("added to after it is bound", "for k in fork(2):\n    n = k\n    n += 1", "", {"n": [1, 2]}),
    Gives("outer containers", "d = {}\nfor k in fork(2):\n    d[k] = k * 2\n    d[k] += 1", "", {"d": {0: 1, 1: 3}}),
    Gives(
        "other ways of binding stay inside",
        "i = 9\nfor k in fork(2):\n    for i in range(2):\n        pass\n    import json\ny = i",
        "",
        {"y": 9, "i": 9},
    ),
    Gives(
        "try in a branch",
        "for k in fork(3):\n    f'{k}'\n    try:\n        x = gen()\n        y = x\n    except Exception:\n        y = 'bad'",
        "",
        {"x": ["0", None, "2"], "y": ["0", "bad", "2"]},
        {"x": _even},
    ),
    Gives(
        "holes after a caught JoinError",
        "try:\n    for k in fork(2):\n        x = 1 // k\nexcept Exception as e:\n    n = len(e.errors)",
        "",
        {"x": [None, 1], "k": [0, 1], "n": 2},
    ),
    Gives(
        "a role open around it",
        'with user():\n    "a"\n    for k in fork(2):\n        f"{k}"\n        t = s.text()\n    "b"',
        "[user ab]",
        {"t": ["[user a0", "[user a1"]},
    ),
    Gives(
        "a turn open before it",
        'user("q")\na = gen()\nfor k in fork(2):\n    user("r")\n    b = gen()\n    b2 = b\n    t = s.text()\nuser("z")',
        "[user q][assistant A][user z]",
        {"t": ["[user q][assistant A][user r][assistant B"] * 2},
    ),
    Gives(
        "lazy text of the outer value",
        'a = gen()\nfor k in fork(2):\n    f"<{a}>"\n    x = gen()\n    t = s.text()',
        "A",
        {"t": ["A<A>X"] * 2},
    ),
    Gives(
        "an import in a branch", "for k in fork(2):\n    import math\n    x = math.floor(k + 0.5)", "", {"x": [0, 1]}
    ),
    Gives(
        "match in a branch",
        "for k in fork(2):\n    match k:\n        case 0:\n            x = 'zero'\n        case n:\n            x = f'{n}'",
        "",
        {"x": ["zero", "1"]},
    ),
    Gives(
        "a match class from outside",
        "K = int\nfor k in fork(2):\n    match k:\n        case K():\n            x = k",
        "",
        {"x": [0, 1]},
    ),
    Gives(
        "the keys are read once",
        "def keys():\n    seen.append(1)\n    return 2\nseen = []\nfor k in fork(keys()):\n    pass\nn = len(seen)",
        "",
        {"n": 1},
    ),
    Gives(
        "a helper of the cell is called in branches",
        "def ask(q):\n    return f\"{q}{gen('x')}\"\nfor k in fork('ab' and ['a', 'b']):\n    ask(k)\n    t = s.text()",
        "",
        {"t": ["aX", "bX"]},
    ),
]

NESTED: list[Case] = [
    Gives(
        "lists of lists",
        "for a in fork(2):\n    for b in fork(3):\n        x = a * 10 + b",
        "",
        {"a": [0, 1], "b": [[0, 1, 2]] * 2, "x": [[0, 1, 2], [10, 11, 12]]},
    ),
    Gives(
        "of generations",
        "for a in fork(2):\n    for b in fork([1, 2]):\n        x: int = gen()\n    y = sum(x)",
        "",
        {"x": [[3, 3], [3, 3]], "y": [6, 6]},
        {"x": "3"},
    ),
    Gives(
        "of different widths", "for a in fork(3):\n    for b in fork(a):\n        x = b", "", {"x": [[], [0], [0, 1]]}
    ),
    Gives(
        "skipped",
        "for a in fork(2):\n    if a:\n        continue\n    for b in fork(1):\n        x = b",
        "",
        {"x": [[0], None], "b": [[0], None]},
    ),
    Gives(
        "the outer key",
        "for a in fork('xy' and ['x', 'y']):\n    for b in fork(2):\n        z = f'{a}{b}'",
        "",
        {"z": [["x0", "x1"], ["y0", "y1"]]},
    ),
    Gives(
        "three deep",
        "for a in fork(2):\n    for b in fork(2):\n        for c in fork(2):\n            x = a + b + c",
        "",
        {"x": [[[0, 1], [1, 2]], [[1, 2], [2, 3]]]},
    ),
    Gives(
        "continue in the inner",
        "for a in fork(2):\n    for b in fork(2):\n        if b:\n            continue\n        x = b\n    y = x",
        "",
        {"x": [[0, None]] * 2, "y": [[0, None]] * 2},
    ),
    Gives("in an if", "if True:\n    for k in fork(2):\n        x = k", "", {"x": [0, 1]}),
    Gives(
        "in a loop",
        "n = []\nfor i in range(2):\n    for k in fork(2):\n        x = i + k\n    n.append(x)",
        "",
        {"n": [[0, 1], [1, 2]]},
    ),
    Gives(
        "in a while",
        "i = 0\nwhile i < 2:\n    i += 1\n    for k in fork(1):\n        x = k\n    if i == 1:\n        continue",
        "",
        {"x": [0]},
    ),
    Gives("break around it", "for i in range(3):\n    for k in fork(2):\n        x = i\n    break", "", {"x": [0, 0]}),
]

CASES: list[Case] = [*BASIC, *INSIDE, *NESTED]
